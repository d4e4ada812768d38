"""The wheels hold what they should and nothing else, and a base install brings no adapter.

First-party names are installed from the folder the wheels were built into, without any index, and then
compared byte for byte with the wheels: a distribution of the same name from anywhere else would be noticed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    "sandboxio": ROOT / "src",
    "sandboxio_docker": ROOT / "packages" / "sandboxio-docker" / "src",
    "sandboxio_e2b": ROOT / "packages" / "sandboxio-e2b" / "src",
}
FIRST_PARTY = {name.replace("_", "-") for name in SOURCES}
BASE_INSTALL = {"sandboxio", "anyio", "typing-extensions", "idna", "sniffio"}
SDKS = {"docker": {"docker", "h11"}, "e2b": {"e2b", "e2b-code-interpreter", "httpx"}}


def uv(*arguments: str, cwd: Path = ROOT) -> str:
    program = shutil.which("uv")
    assert program is not None, "uv is not on PATH"
    done = subprocess.run(
        [program, "--no-progress", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheels of all distributions."""
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--all-packages", "--wheel", "--out-dir", str(folder))
    return folder


def wheel_of(dist: Path, package: str) -> Path:
    (wheel,) = dist.glob(f"{package}-0*.whl")
    return wheel


def expected_files(package: str) -> set[str]:
    source = SOURCES[package]
    files = (path for path in (source / package).rglob("*") if path.is_file())
    return {path.relative_to(source).as_posix() for path in files if "__pycache__" not in path.parts}


def packaged_files(wheel: Path) -> set[str]:
    """Return a wheel's files besides its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    return {name for name in names if not PurePosixPath(name).parts[0].endswith(".dist-info")}


def metadata_of(wheel: Path) -> dict[str, list[str]]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        message = Parser().parsestr(archive.read(name).decode("utf-8"))
    return {key: message.get_all(key, []) for key in ("Name", "Version", "Requires-Dist", "License-File")}


def distribution_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, requirement
    return match.group().lower().replace("_", "-")


def third_party(wheels: list[Path]) -> list[str]:
    """Return what the wheels require from others, extras left out."""
    requirements = [line for wheel in wheels for line in metadata_of(wheel)["Requires-Dist"]]
    return sorted({line for line in requirements if distribution_name(line) not in FIRST_PARTY})


def environment_with(wheels: list[Path], dist: Path, folder: Path, *, extra: str = "") -> Path:
    """Make an environment with an extra, which brings these wheels, and return its interpreter."""
    uv("venv", "--python", sys.executable, str(folder))
    python = folder / "bin" / "python"
    uv("pip", "install", "--python", str(python), *third_party(wheels))
    (version,) = metadata_of(wheel_of(dist, "sandboxio"))["Version"]
    ours = ["--no-index", "--find-links", str(dist), f"sandboxio[{extra}]=={version}"]
    uv("pip", "install", "--python", str(python), *ours)
    uv("pip", "check", "--python", str(python))
    return python


def installed(python: Path) -> set[str]:
    return {
        entry["name"] for entry in json.loads(uv("pip", "list", "--python", str(python), "--format=json"))
    }


def assert_came_from(wheel: Path, python: Path) -> None:
    (site_packages,) = python.parents[1].glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        for name in packaged_files(wheel):
            assert (site_packages / name).read_bytes() == archive.read(name), name


def test_every_distribution_has_a_wheel(dist: Path) -> None:
    distributions = {"sandboxio", *(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))}
    assert distributions == FIRST_PARTY
    assert {path.name.partition("-")[0] for path in dist.glob("*.whl")} == set(SOURCES)


@pytest.mark.parametrize("package", sorted(SOURCES))
def test_a_wheel_holds_its_package_and_nothing_else(package: str, dist: Path) -> None:
    wheel = wheel_of(dist, package)
    assert packaged_files(wheel) == expected_files(package)
    assert f"{package}/py.typed" in packaged_files(wheel)
    assert metadata_of(wheel)["License-File"] == ["LICENSE"]


@pytest.mark.parametrize(
    ("package", "stray"),
    [
        ("sandboxio", "sandboxio_docker/__init__.py"),
        ("sandboxio", "sandboxio_e2b/__init__.py"),
        ("sandboxio", "tests/test_x.py"),
        ("sandboxio", "sandboxio/stray.txt"),
        ("sandboxio", "conftest.py"),
        ("sandboxio_e2b", "e2b_server/__init__.py"),
        ("sandboxio_e2b", "e2b_code_interpreter/__init__.pyi"),
    ],
)
def test_a_stray_file_in_a_wheel_is_noticed(package: str, stray: str, dist: Path, tmp_path: Path) -> None:
    planted = shutil.copy(wheel_of(dist, package), tmp_path)
    with zipfile.ZipFile(planted, "a") as archive:
        archive.writestr(stray, "")
    assert packaged_files(Path(planted)) - expected_files(package) == {stray}


def test_the_base_distribution_requires_only_the_base_dependencies(dist: Path) -> None:
    requirements = metadata_of(wheel_of(dist, "sandboxio"))["Requires-Dist"]
    base = {distribution_name(line) for line in requirements if "extra ==" not in line}
    assert base == {"anyio", "typing-extensions"}


def test_every_extra_pins_our_own_version(dist: Path) -> None:
    metadata = metadata_of(wheel_of(dist, "sandboxio"))
    (version,) = metadata["Version"]
    ours = [line for line in metadata["Requires-Dist"] if distribution_name(line) in FIRST_PARTY]
    assert ours
    assert all(f"=={version} " in line for line in ours)


def test_a_base_install_brings_no_adapter(dist: Path, tmp_path: Path) -> None:
    wheel = wheel_of(dist, "sandboxio")
    base_only = [wheel]
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.startswith("sandboxio_")]
    python = environment_with(base_only, dist, tmp_path / "base")
    assert installed(python) <= BASE_INSTALL
    assert_came_from(wheel, python)
    subprocess.run([python, "-I", "-c", "import sandboxio"], check=True, timeout=60)
    help_text = subprocess.run(
        [python.parent / "sandboxio", "--help"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "demo" in help_text


@pytest.mark.parametrize("extra", sorted(SDKS))
def test_an_extra_installs_and_registers_its_backend_alone(extra: str, dist: Path, tmp_path: Path) -> None:
    wheels = [wheel_of(dist, "sandboxio"), wheel_of(dist, f"sandboxio_{extra}")]
    python = environment_with(wheels, dist, tmp_path / extra, extra=extra)
    assert SDKS[extra] <= installed(python)
    assert installed(python) & FIRST_PARTY == {"sandboxio", f"sandboxio-{extra}"}
    for wheel in wheels:
        assert_came_from(wheel, python)
    program = (
        "from importlib.metadata import entry_points;"
        "print(sorted(e.name for e in entry_points(group='sandboxio.backends') if e.load()))"
    )
    done = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{sorted([extra, 'fake'])}\n", done.stderr
