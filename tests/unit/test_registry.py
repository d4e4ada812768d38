"""Who provides which backend."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from sandboxio.errors import BackendNotFound, BackendNotInstalled, ConfigurationError
from sandboxio.registry import ENTRY_POINT_GROUP, Registry


class AcmeConfig:
    backend_name = "acme"


class AcmeBackend:
    config_type = AcmeConfig


class OtherBackend:
    config_type = AcmeConfig


class Outer:
    Inner = AcmeBackend


class NoBackend:
    pass


a_function = print

HERE = __name__


class Distribution:
    """Stands for the metadata of an installed distribution."""

    def __init__(self, name: str) -> None:
        self.name = name


def entry_point(name: str, value: str, distribution: str = "acme-sandboxes") -> EntryPoint:
    point = EntryPoint(name, value, ENTRY_POINT_GROUP)
    vars(point)["dist"] = Distribution(distribution)
    return point


class Environment:
    """Installed entry points, and how often they were asked for."""

    def __init__(self, *points: EntryPoint) -> None:
        self.points = list(points)
        self.scans = 0

    def __call__(self) -> list[EntryPoint]:
        self.scans += 1
        return self.points


@pytest.fixture
def broken_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Makes a module of some source and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def make(source: str) -> str:
        name = f"broken_backend_{len(made)}_{tmp_path.name}".replace("-", "_")
        (tmp_path / f"{name}.py").write_text(source)
        made.append(name)
        return name

    yield make
    for name in made:
        sys.modules.pop(name, None)


def test_a_registered_class_is_found() -> None:
    registry = Registry(Environment())
    registry.register("acme", f"{HERE}:AcmeBackend")
    assert registry.backend_class("acme") is AcmeBackend
    assert registry.installed() == ("acme",)


def test_a_nested_class_is_found() -> None:
    registry = Registry(Environment())
    registry.register("acme", f"{HERE}:Outer.Inner")
    assert registry.backend_class("acme") is AcmeBackend


def test_an_installed_entry_point_is_found() -> None:
    registry = Registry(Environment(entry_point("acme", f"{HERE}:AcmeBackend")))
    assert registry.backend_class("acme") is AcmeBackend


def test_registration_comes_before_entry_points() -> None:
    registry = Registry(Environment(entry_point("acme", f"{HERE}:AcmeBackend")))
    assert registry.backend_class("acme") is AcmeBackend
    registry.register("acme", f"{HERE}:OtherBackend")
    assert registry.backend_class("acme") is OtherBackend
    assert registry.installed() == ("acme",)


def test_nothing_is_scanned_or_imported_before_it_is_asked_for() -> None:
    environment = Environment()
    registry = Registry(environment)
    registry.register("acme", "no_such_module_anywhere:Backend")
    assert environment.scans == 0


def test_the_scan_and_the_class_are_kept() -> None:
    environment = Environment(
        entry_point("acme", f"{HERE}:AcmeBackend"), entry_point("other", f"{HERE}:OtherBackend")
    )
    registry = Registry(environment)
    for _ in range(3):
        registry.backend_class("acme")
        registry.backend_class("other")
    assert environment.scans == 1


def test_what_was_installed_meanwhile_is_found() -> None:
    environment = Environment()
    registry = Registry(environment)
    with pytest.raises(BackendNotFound):
        registry.backend_class("acme")
    environment.points.append(entry_point("acme", f"{HERE}:AcmeBackend"))
    assert registry.backend_class("acme") is AcmeBackend


def test_an_unknown_name_lists_what_is_there_and_how_to_get_more() -> None:
    registry = Registry(Environment(entry_point("acme", f"{HERE}:AcmeBackend")))
    with pytest.raises(BackendNotFound, match="nope is not known; installed: acme") as caught:
        registry.backend_class("nope")
    assert "uv sync --inexact --extra docker" in caught.value.hint


def test_a_known_backend_without_its_distribution_tells_the_command() -> None:
    with pytest.raises(BackendNotInstalled, match="sandboxio-docker") as caught:
        Registry(Environment()).backend_class("docker")
    assert caught.value.hint == "uv sync --inexact --extra docker"


def test_a_provider_without_an_adapter_is_not_promised() -> None:
    with pytest.raises(BackendNotFound, match="no adapter in this version") as caught:
        Registry(Environment()).backend_class("modal")
    assert "--extra modal" not in caught.value.hint


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import no_such_dependency_anywhere", ModuleNotFoundError),
        ("raise RuntimeError('half installed')", RuntimeError),
        ("this is no python", SyntaxError),
    ],
)
def test_a_broken_module_keeps_its_cause(
    source: str, cause: type[Exception], broken_module: Callable[[str], str]
) -> None:
    module = broken_module(source)
    registry = Registry(Environment(entry_point("acme", f"{module}:Backend")))
    with pytest.raises(BackendNotInstalled, match="acme of acme-sandboxes cannot be imported") as caught:
        registry.backend_class("acme")
    assert isinstance(caught.value.__cause__, cause)
    assert module in caught.value.hint


def test_a_broken_known_backend_tells_its_command(broken_module: Callable[[str], str]) -> None:
    module = broken_module("import no_such_dependency_anywhere")
    registry = Registry(Environment(entry_point("docker", f"{module}:Backend")))
    with pytest.raises(BackendNotInstalled) as caught:
        registry.backend_class("docker")
    assert caught.value.hint == "uv sync --inexact --extra docker"


@pytest.mark.parametrize("attribute", ["Missing", "AcmeBackend.Missing", "NoBackend", "a_function"])
def test_a_target_that_is_no_backend_class_is_refused(attribute: str) -> None:
    registry = Registry(Environment(entry_point("acme", f"{HERE}:{attribute}")))
    with pytest.raises(ConfigurationError, match="acme-sandboxes points to"):
        registry.backend_class("acme")


def test_two_providers_of_one_name_are_refused_with_both_names() -> None:
    registry = Registry(
        Environment(
            entry_point("acme", f"{HERE}:AcmeBackend", "one"), entry_point("acme", "evil:Backend", "two")
        )
    )
    with pytest.raises(ConfigurationError, match="more than one distribution: one, two") as caught:
        registry.backend_class("acme")
    assert "keep one of one, two" in caught.value.hint


def test_a_name_that_two_provide_breaks_no_other() -> None:
    registry = Registry(
        Environment(
            entry_point("acme", f"{HERE}:AcmeBackend", "one"),
            entry_point("acme", "evil:Backend", "two"),
            entry_point("other", f"{HERE}:OtherBackend", "one"),
        )
    )
    assert registry.backend_class("other") is OtherBackend
    assert registry.installed() == ("acme", "other")
    with pytest.raises(BackendNotFound, match="installed: acme, other"):
        registry.backend_class("nope")


def test_a_registration_settles_which_of_two_is_meant() -> None:
    registry = Registry(
        Environment(
            entry_point("acme", "evil:Backend", "one"), entry_point("acme", f"{HERE}:OtherBackend", "two")
        )
    )
    registry.register("acme", f"{HERE}:OtherBackend")
    assert registry.backend_class("acme") is OtherBackend


def test_the_same_entry_point_twice_is_no_conflict() -> None:
    point = entry_point("acme", f"{HERE}:AcmeBackend")
    assert Registry(Environment(point, point)).backend_class("acme") is AcmeBackend


@pytest.mark.parametrize(
    "name", ["", "Acme", "1acme", "ac me", "acme://", "ac.me", "ac/me", "äcme", "a" * 65, "acme\n", None, 3]
)
def test_a_bad_name_is_refused(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the name"):
        Registry(Environment()).register(name, f"{HERE}:AcmeBackend")


@pytest.mark.parametrize(
    "target",
    ["", "module", "module:", ":Class", "a b:C", "a..b:C", "a:C.", "a:1C", "a:C()", AcmeBackend, None],
)
def test_a_bad_target_is_refused(target: Any) -> None:
    with pytest.raises(ConfigurationError, match="does not say where"):
        Registry(Environment()).register("acme", target)


def test_many_threads_get_the_same_class() -> None:
    environment = Environment(entry_point("acme", f"{HERE}:AcmeBackend"))
    registry = Registry(environment)
    found: list[object] = []
    barrier = threading.Barrier(8)

    def look() -> None:
        barrier.wait(10)
        found.append(registry.backend_class("acme"))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [AcmeBackend] * 8
    assert environment.scans == 1


def test_the_real_environment_provides_the_fake_without_importing_it() -> None:
    program = (
        "import sys, sandboxio.registry as registry\n"
        "assert 'fake' in registry.installed_backends()\n"
        "assert not any(name.startswith('sandboxio.testing') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
