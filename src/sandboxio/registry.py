"""Who provides which backend: names that were registered here, then installed entry points.

Nothing is scanned or imported before a name is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, cast

from sandboxio.backends import KNOWN_BACKENDS
from sandboxio.errors import BackendNotFound, BackendNotInstalled, ConfigurationError
from sandboxio.models import shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from sandboxio.protocols import Backend

__all__ = [
    "BACKEND_NAME",
    "ENTRY_POINT_GROUP",
    "BackendClass",
    "BackendConfig",
    "Registry",
    "backend_class",
    "backend_distribution",
    "installed_backends",
    "is_loaded",
    "register",
]

ENTRY_POINT_GROUP: Final = "sandboxio.backends"
BACKEND_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
_TARGET: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


class BackendConfig(Protocol):
    """What the configuration object of a backend offers to `create`.

    Example: `DockerConfig(template="python:3.12-slim")`
    """

    backend_name: ClassVar[str]

    @property
    def template(self) -> str | None:
        """The template that it names, or `None`."""
        ...

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> Self:
        """The configuration that a DSN means.

        Raises:
            ConfigurationError: A parameter is unknown or its value has no meaning.
        """
        ...


class BackendClass(Protocol):
    """What an entry point leads to: the class of a backend, made from its configuration.

    Example:
        class AcmeBackend:
            config_type = AcmeConfig

            def __init__(self, config: AcmeConfig) -> None: ...
    """

    @property
    def config_type(self) -> type[BackendConfig]:
        """The class of its configuration objects."""
        ...

    def __call__(self, config: Any, /) -> Backend:
        """Make a backend. This does no I/O."""
        ...


def _scan() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINT_GROUP)


class Registry:
    """Names and the classes behind them. The functions below use the one of this process.

    Args:
        scan: Gives the installed entry points; asked once, and again for a name that is missing.
    """

    def __init__(self, scan: Callable[[], Iterable[EntryPoint]] = _scan) -> None:
        self._scan = scan
        self._lock = Lock()
        self._targets: dict[str, str] = {}
        self._entry_points: dict[str, list[EntryPoint]] | None = None
        self._classes: dict[str, BackendClass] = {}

    def register(self, name: str, target: str) -> None:
        """See `sandboxio.register`."""
        if not isinstance(name, str) or not BACKEND_NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"{shown(name)} cannot be the name of a backend",
                hint="use a lower-case letter, then lower-case letters, digits, - or _; at most 64",
            )
        if not isinstance(target, str) or not _TARGET.fullmatch(target):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"{shown(target)} does not say where the class of the backend {name} is",
                hint='write it as "package.module:Class"',
            )
        with self._lock:
            self._targets[name] = target
            self._classes.pop(name, None)

    def installed(self) -> tuple[str, ...]:
        """The names that can be resolved, sorted. Nothing is imported."""
        return tuple(sorted({*self._targets, *self._installed_entry_points(fresh=True)}))

    def distribution(self, name: str) -> str | None:
        """The distribution that provides a name, or `None` for one that was registered here."""
        found = None if name in self._targets else self._installed_entry_points().get(name)
        return None if not found or found[0].dist is None else found[0].dist.name

    def backend_class(self, name: str) -> BackendClass:
        """The class behind a name.

        Raises:
            BackendNotInstalled: Its distribution is missing, or cannot be imported.
            BackendNotFound: Nobody provides this name.
            ConfigurationError: Two distributions provide it, or there is no class where it points.
        """
        found = self._classes.get(name)
        if found is not None:
            return found
        target = self._targets.get(name)
        if target is None:
            entry_point = self._entry_point(name)
            found = _load(name, entry_point.value, _provider(entry_point))
        else:
            found = _load(name, target, "register()")
        with self._lock:
            if self._targets.get(name) == target:
                self._classes[name] = found
        return found

    def is_loaded(self, name: str) -> bool:
        """Whether the class behind a name has been imported."""
        return name in self._classes

    def _entry_point(self, name: str) -> EntryPoint:
        found = self._installed_entry_points().get(name)
        if found is None:  # it may have been installed since
            found = self._installed_entry_points(fresh=True).get(name)
        if found is None:
            raise _missing(name, self.installed())
        return _only(name, found)

    def _installed_entry_points(self, *, fresh: bool = False) -> Mapping[str, list[EntryPoint]]:
        with self._lock:
            if self._entry_points is None or fresh:
                self._entry_points = _by_name(self._scan())
            return self._entry_points


def _by_name(entry_points: Iterable[EntryPoint]) -> dict[str, list[EntryPoint]]:
    by_name: dict[str, list[EntryPoint]] = {}
    for entry_point in entry_points:
        by_name.setdefault(entry_point.name, []).append(entry_point)
    return by_name


def _only(name: str, found: list[EntryPoint]) -> EntryPoint:
    """The one entry point of a name. Two that lead to the same place, as after an upgrade, are one."""
    if len({entry_point.value for entry_point in found}) > 1:
        providers = sorted({_provider(entry_point) for entry_point in found})
        raise ConfigurationError(
            f"the backend {name} is provided by more than one distribution: {', '.join(providers)}",
            hint=f"keep one of {', '.join(providers)} and uninstall the others",
        )
    return found[0]


def _provider(entry_point: EntryPoint) -> str:
    return "an unnamed distribution" if entry_point.dist is None else entry_point.dist.name


def _load(name: str, target: str, provider: str) -> BackendClass:
    module_name, _, attributes = target.partition(":")
    try:
        found: Any = import_module(module_name)
    except Exception as exc:  # what a third party's module raises while it is imported is anything
        known = KNOWN_BACKENDS.get(name)
        raise BackendNotInstalled(
            f"the backend {name} of {provider} cannot be imported: {type(exc).__name__}: {exc}",
            hint=(known and known.install_command) or f"repair {module_name}, or what it needs",
        ) from exc
    try:
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except AttributeError as exc:
        raise ConfigurationError(
            f"the backend {name} of {provider} points to {target}, where nothing is",
            hint='point to "package.module:Class"',
        ) from exc
    if not isinstance(found, type) or not hasattr(found, "config_type"):
        raise ConfigurationError(
            f"the backend {name} of {provider} points to {target}, which is no backend class",
            hint="point to a class with a `config_type`, made as BackendClass(config)",
        )
    return cast("BackendClass", found)


def _missing(name: str, installed: tuple[str, ...]) -> BackendNotFound | BackendNotInstalled:
    known = KNOWN_BACKENDS.get(name)
    if known is not None and known.install_command is not None:
        return BackendNotInstalled(
            f"the backend {name} is not installed: its distribution {known.distribution} is missing",
            hint=known.install_command,
        )
    have = ", ".join(installed) or "none"
    commands = [
        row.install_command
        for row in KNOWN_BACKENDS.values()
        if row.install_command is not None and row.name not in installed
    ]
    what = "has no adapter in this version" if known is not None else "is not known"
    return BackendNotFound(
        f"the backend {name} {what}; installed: {have}",
        hint=f"use one of these ({have}), or install one: {'; '.join(commands)}"
        if commands
        else f"use one of these: {have}",
    )


_registry: Final = Registry()


def register(name: str, target: str) -> None:
    """Give a backend a name in this process; it comes before an installed one of the same name.

    Args:
        name: The name in a DSN: a lower-case letter, then letters, digits, `-` or `_`.
        target: Where its class is, as `package.module:Class`. It is imported at the first use.

    Raises:
        ConfigurationError: The name or the target is malformed.

    Example: `register("acme", "acme_sandboxes.backend:AcmeBackend")`
    """
    _registry.register(name, target)


def backend_class(name: str) -> BackendClass:
    """The class behind a backend's name, imported at the first use.

    Raises:
        BackendNotInstalled: Its distribution is missing, or cannot be imported.
        BackendNotFound: Nobody provides this name.
        ConfigurationError: Two distributions provide it, or there is no class where it points.

    Example: `backend_class("docker").config_type()`
    """
    return _registry.backend_class(name)


def is_loaded(name: str) -> bool:
    """Whether a backend's class has been imported, so that `backend_class` returns at once.

    Example: `is_loaded("docker")`
    """
    return _registry.is_loaded(name)


def backend_distribution(name: str) -> str | None:
    """The installed distribution that provides a backend, or `None` when it was registered here.

    Example: `backend_distribution("docker") == "sandboxio-docker"`
    """
    return _registry.distribution(name)


def installed_backends() -> tuple[str, ...]:
    """The names of all backends that can be used, sorted. Nothing is imported.

    Example: `"docker" in sandboxio.installed_backends()`
    """
    return _registry.installed()
