"""`import sandboxio` is fast, silent, opens no socket, and loads nothing but the base dependencies.

The same holds of each adapter's package: a provider's SDK is loaded when a backend is asked for.

Each gate takes the folder that a package is imported from, so the same code judges the real package and a
planted one that breaks the rule.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
ADAPTERS = {
    "sandboxio_docker": ROOT / "packages" / "sandboxio-docker" / "src",
    "sandboxio_e2b": ROOT / "packages" / "sandboxio-e2b" / "src",
}
BUDGET_MS = 150.0
BASE_DEPENDENCIES = {"anyio", "typing_extensions", "idna", "sniffio"}
EVERY_PUBLIC_NAME = "import sandboxio\nfor name in sandboxio.__all__: getattr(sandboxio, name)"

MEASURE = """
import time
started = time.perf_counter()
{statement}
elapsed = (time.perf_counter() - started) * 1000
import json, pathlib
pathlib.Path({report!r}).write_text(json.dumps(elapsed))
"""

LIST_MODULES = """
import sys
before = set(sys.modules)
{statement}
loaded = set(sys.modules) - before
import json, pathlib
pathlib.Path({report!r}).write_text(json.dumps(sorted(loaded)))
"""

WITHOUT_SOCKETS = """
import pytest_socket
pytest_socket.disable_socket()
{statement}
import pathlib
pathlib.Path({report!r}).write_text("null")
"""


@dataclass(frozen=True, slots=True)
class Import:
    """A fresh interpreter that ran one statement with `source` first on its path."""

    value: object
    output: str
    returncode: int


def fresh_interpreter(program: str, statement: str, source: Path, scratch: Path) -> Import:
    report = scratch / "report.json"
    report.unlink(missing_ok=True)
    body = f"import sys; sys.path.insert(0, {str(source)!r})\n"
    body += program.format(statement=statement, report=str(report))
    done = subprocess.run([sys.executable, "-I", "-c", body], capture_output=True, text=True, timeout=60)
    value = json.loads(report.read_text()) if report.exists() else None
    return Import(value, done.stdout + done.stderr, done.returncode)


def import_cost_ms(package: str, source: Path, scratch: Path, rounds: int = 7) -> float:
    """Return the median time that the import adds to a bare interpreter, its byte code being cached."""
    times: list[float] = []
    for _ in range(rounds + 1):
        measured = fresh_interpreter(MEASURE, f"import {package}", source, scratch)
        assert isinstance(measured.value, float), measured.output
        times.append(measured.value)
    return statistics.median(times[1:])


def foreign_modules(statement: str, package: str, source: Path, scratch: Path) -> set[str]:
    """Return the top-level modules loaded that are neither the package, the library nor a base dependency."""
    loaded = fresh_interpreter(LIST_MODULES, statement, source, scratch)
    assert isinstance(loaded.value, list), loaded.output
    names = {str(module).partition(".")[0] for module in loaded.value}
    return names - {package} - BASE_DEPENDENCIES - set(sys.stdlib_module_names)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder for a package that breaks a rule."""
    source = tmp_path / "planted"
    source.mkdir()
    return source


@pytest.mark.parametrize(("package", "source"), [("sandboxio", SOURCE), *ADAPTERS.items()])
def test_import_stays_within_the_budget(
    package: str, source: Path, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    cost = import_cost_ms(package, source, tmp_path)
    record_property("import_ms", cost)
    print(f"import {package}: {cost:.1f} ms over a bare interpreter (budget {BUDGET_MS:.0f} ms)")
    assert cost < BUDGET_MS


def test_the_budget_notices_a_slow_import(tmp_path: Path, planted: Path) -> None:
    (planted / "eager.py").write_text(f"import time\ntime.sleep({BUDGET_MS} / 1000)\n")
    assert import_cost_ms("eager", planted, tmp_path, rounds=1) >= BUDGET_MS


@pytest.mark.parametrize("statement", ["import sandboxio", EVERY_PUBLIC_NAME], ids=["import", "every-name"])
def test_import_loads_only_the_base_dependencies(statement: str, tmp_path: Path) -> None:
    assert foreign_modules(statement, "sandboxio", SOURCE, tmp_path) == set()


@pytest.mark.parametrize("package", ADAPTERS)
def test_an_adapters_package_does_not_load_its_sdk(package: str, tmp_path: Path) -> None:
    assert foreign_modules(f"import {package}", package, ADAPTERS[package], tmp_path) <= {"sandboxio"}


@pytest.mark.parametrize("sdk", ["docker", "e2b"])
def test_the_module_gate_notices_an_eager_import(sdk: str, tmp_path: Path, planted: Path) -> None:
    (planted / "eager.py").write_text(f"import {sdk}\n")
    assert sdk in foreign_modules("import eager", "eager", planted, tmp_path)


def test_bare_import_does_not_load_anyio(tmp_path: Path) -> None:
    loaded = fresh_interpreter(LIST_MODULES, "import sandboxio", SOURCE, tmp_path)
    assert isinstance(loaded.value, list)
    assert "anyio" not in loaded.value


@pytest.mark.parametrize("statement", ["import sandboxio", EVERY_PUBLIC_NAME], ids=["import", "every-name"])
def test_import_opens_no_socket_and_prints_nothing(statement: str, tmp_path: Path) -> None:
    done = fresh_interpreter(WITHOUT_SOCKETS, statement, SOURCE, tmp_path)
    assert (done.returncode, done.output) == (0, "")


@pytest.mark.parametrize("package", ADAPTERS)
def test_an_adapter_opens_no_socket_and_prints_nothing(package: str, tmp_path: Path) -> None:
    statement = f"import {package}\nfor name in {package}.__all__: getattr({package}, name)"
    done = fresh_interpreter(WITHOUT_SOCKETS, statement, ADAPTERS[package], tmp_path)
    assert (done.returncode, done.output) == (0, "")


def test_the_socket_gate_notices_a_socket_at_import(tmp_path: Path, planted: Path) -> None:
    (planted / "chatty.py").write_text("import socket\nsocket.socket().close()\n")
    done = fresh_interpreter(WITHOUT_SOCKETS, "import chatty", planted, tmp_path)
    assert done.returncode != 0
    assert "SocketBlockedError" in done.output


def test_the_output_gate_notices_a_print_at_import(tmp_path: Path, planted: Path) -> None:
    (planted / "loud.py").write_text("print('hello')\n")
    assert fresh_interpreter(WITHOUT_SOCKETS, "import loud", planted, tmp_path).output == "hello\n"
