"""Where the engine is looked for."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from sandboxio.errors import ConfigurationError
from sandboxio_docker.address import Address, TLSFiles, resolve_address, simple_address


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def certificates(folder: Path) -> TLSFiles:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (folder / name).write_text("")
    return TLSFiles(str(folder / "ca.pem"), str(folder / "cert.pem"), str(folder / "key.pem"))


def context(config: Path, name: str, host: str) -> Path:
    digest = hashlib.sha256(name.encode()).hexdigest()
    folder = config / "contexts" / "meta" / digest
    folder.mkdir(parents=True)
    endpoint = {"docker": {"Host": host, "SkipTLSVerify": False}}
    (folder / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": endpoint}))
    return config / "contexts" / "tls" / digest / "docker"


def test_nothing_set_is_the_default_socket() -> None:
    assert resolve_address() == Address("unix", "/var/run/docker.sock")


def test_nothing_set_does_not_import_the_sdk() -> None:
    code = (
        "import sys; from sandboxio_docker.address import resolve_address; resolve_address(); "
        "assert not [m for m in sys.modules if m.partition('.')[0] in ('docker', 'requests')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("unix:///run/user/1000/docker.sock", Address("unix", "/run/user/1000/docker.sock")),
        ("tcp://10.0.0.1:2375", Address("tcp", "10.0.0.1", 2375)),
        ("tcp://[::1]:2375", Address("tcp", "::1", 2375)),
        ("ssh://me@build.example", Address("ssh", "build.example", 22, user="me")),
        ("ssh://build.example:2222", Address("ssh", "build.example", 2222)),
    ],
)
def test_the_variable_says_where(monkeypatch: pytest.MonkeyPatch, host: str, expected: Address) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert resolve_address() == expected


@pytest.mark.parametrize("host", ["tcp://", "ftp://x:1", "tcp://host", "tcp://a:b@host:1"])
def test_a_malformed_variable_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(ConfigurationError):
        resolve_address()


def test_tls_comes_from_its_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = certificates(tmp_path / "certs")
    monkeypatch.setenv("DOCKER_HOST", "tcp://engine.example:2376")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path / "certs"))
    assert resolve_address() == Address("tcp", "engine.example", 2376, tls=files)


def test_the_configured_address_goes_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:1")
    assert resolve_address(base_url="tcp://10.0.0.2:2").target == "10.0.0.2"


def test_the_current_context_is_followed(no_settings: Path) -> None:
    (no_settings / "config.json").write_text(json.dumps({"currentContext": "away"}))
    context(no_settings, "away", "tcp://10.1.1.1:99")
    assert resolve_address() == Address("tcp", "10.1.1.1", 99)


def test_a_context_brings_its_tls_files(no_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (no_settings / "config.json").write_text("{}")
    files = certificates(context(no_settings, "safe", "tcp://10.1.1.1:99"))
    monkeypatch.setenv("DOCKER_CONTEXT", "safe")
    assert resolve_address() == Address("tcp", "10.1.1.1", 99, tls=files)


def test_a_context_that_is_not_there_is_no_other_engine(no_settings: Path) -> None:
    (no_settings / "config.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="no docker context named 'nowhere'"):
        resolve_address(context="nowhere")


@pytest.mark.parametrize("text", ["{}", '{"currentContext": "default"}', '{"auths": {}}'])
def test_a_configuration_without_a_context_changes_nothing(no_settings: Path, text: str) -> None:
    (no_settings / "config.json").write_text(text)
    assert simple_address({"DOCKER_CONFIG": str(no_settings)}) == Address("unix", "/var/run/docker.sock")


@pytest.mark.parametrize("text", ["[]", "nonsense", '{"currentContext": "other"}'])
def test_a_configuration_that_may_say_more_is_left_to_the_sdk(no_settings: Path, text: str) -> None:
    (no_settings / "config.json").write_text(text)
    assert simple_address({"DOCKER_CONFIG": str(no_settings)}) is None


def test_the_sdk_gets_the_address_back() -> None:
    assert Address("tcp", "::1", 2375).sdk_arguments() == {"base_url": "tcp://[::1]:2375"}
    assert Address("ssh", "h", 22, user="me").sdk_arguments()["use_ssh_client"] is True


@pytest.mark.parametrize(
    "address",
    [
        "tcp://user:s3cr3tpw@127.0.0.1:1",
        "tcp://user:s3cr3tpw@127.0.0.1:x",
        "tcp://user:s3cr3tpw@127.0.0.1:99999",
        "odd://user:s3cr3tpw@127.0.0.1:1",
        "ssh://user:s3cr3tpw@127.0.0.1",
    ],
)
def test_a_password_in_an_address_shows_nowhere(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    try:
        shown = repr(resolve_address())
    except ConfigurationError as exc:
        shown = "".join(traceback.format_exception(exc))
    assert "s3cr3tpw" not in shown
