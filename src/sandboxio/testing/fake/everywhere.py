"""A registry in which every backend's name leads to one fake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sandboxio.protocols import Backend
from sandboxio.registry import Registry
from sandboxio.testing.fake.backend import FakeBackend

__all__ = ["FakeRegistry"]


class _AnyKind(type):
    """The type of a class of which every object is an instance."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


@dataclass(frozen=True)
class _AnyConfig(metaclass=_AnyKind):
    """Stands for the configuration of any backend."""

    backend_name: ClassVar[str] = "fake"
    template: str | None = None

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> _AnyConfig:
        """Take any parameters: what they mean is not for the fake to judge."""
        return cls(template)


class _AlwaysTheFake:
    """Stands for the class of any backend."""

    config_type = _AnyConfig

    def __init__(self, fake: FakeBackend) -> None:
        self._fake = fake

    def __call__(self, config: Any, /) -> Backend:
        return self._fake


class FakeRegistry(Registry):
    """Knows every name, and leads each of them to `fake`."""

    def __init__(self) -> None:
        super().__init__(scan=lambda: ())
        self.fake = FakeBackend()

    def backend_class(self, name: str) -> _AlwaysTheFake:
        """The fake, whatever the name."""
        return _AlwaysTheFake(self.fake)
