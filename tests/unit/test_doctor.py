"""The diagnosis."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import anyio
import pytest

from sandboxio import BackendReport, Capability, Check, ConnectError, DoctorReport, IsolationTier, doctor
from sandboxio.diagnosis import examination as module


class AcmeConfig:
    backend_name: ClassVar[str] = "acme"

    @classmethod
    def from_dsn(cls, template: str | None, params: Mapping[str, str]) -> AcmeConfig:
        return cls()


class PlainBackend:
    config_type = AcmeConfig
    name = "acme"
    capabilities = Capability.RUN_COMMAND | Capability.STREAMING
    isolation = IsolationTier.CONTAINER

    def __init__(self, config: AcmeConfig) -> None:
        self.config = config


class HealthyBackend(PlainBackend):
    async def diagnose(self) -> tuple[Check, ...]:
        await anyio.lowlevel.checkpoint()
        return (Check("engine", "ok", "version 1"), Check("runtime", "warning", "slow", "install another"))

    async def verify_isolation(self) -> IsolationTier:
        return IsolationTier.GVISOR


class SickBackend(PlainBackend):
    async def diagnose(self) -> tuple[Check, ...]:
        raise ConnectError("no engine answers", hint="start it")

    async def verify_isolation(self) -> IsolationTier:
        raise RuntimeError("token=hunter2")


class StuckBackend(PlainBackend):
    async def diagnose(self) -> tuple[Check, ...]:
        await anyio.sleep_forever()
        raise AssertionError

    async def verify_isolation(self) -> IsolationTier:
        await anyio.sleep_forever()
        raise AssertionError


class OddBackend(PlainBackend):
    """Whose properties raise what they like."""

    @property
    def capabilities(self) -> Capability:  # type: ignore[override]
        raise RuntimeError("token=hunter2")


class OddTierBackend(PlainBackend):
    @property
    def isolation(self) -> IsolationTier:  # type: ignore[override]
        raise RuntimeError("token=hunter2")


class CarelessBackend(PlainBackend):
    async def diagnose(self) -> Any:
        return ["fine"]


class BabblingBackend(PlainBackend):
    async def diagnose(self) -> Any:
        return (Check("engine", "failed", None),)  # type: ignore[arg-type]


class ExcitedBackend(PlainBackend):
    async def diagnose(self) -> Any:
        return (Check("engine", "great"),)  # type: ignore[arg-type]


class UnmakeableBackend(PlainBackend):
    def __init__(self, config: AcmeConfig) -> None:
        raise ConnectError("no configuration", hint="write one")


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Make exactly these backends the installed ones."""

    def install(**backends: type[PlainBackend]) -> None:
        monkeypatch.setattr(module, "installed_backends", lambda: tuple(sorted(backends)))
        monkeypatch.setattr(module, "backend_class", backends.__getitem__)

    return install


def only_backend(report: DoctorReport) -> BackendReport:
    (backend,) = report.backends
    return backend


def test_a_healthy_backend_is_reported(install: Install) -> None:
    install(acme=HealthyBackend)
    report = doctor()
    backend = only_backend(report)
    assert report.ok
    assert (backend.name, backend.isolation) == ("acme", "gvisor")
    assert backend.capabilities == ("RUN_COMMAND", "STREAMING")
    assert [check.status for check in backend.checks] == ["ok", "warning"]


def test_a_backend_that_offers_no_diagnosis_is_no_failure(install: Install) -> None:
    install(acme=PlainBackend)
    report = doctor()
    assert report.ok
    assert only_backend(report).isolation == "container"
    assert only_backend(report).checks[0].status == "warning"


def test_a_failed_check_fails_the_report(install: Install) -> None:
    install(acme=SickBackend, fine=HealthyBackend)
    report = doctor()
    sick, fine = report.backends
    assert not report.ok
    assert not sick.ok
    assert fine.ok
    assert sick.checks[0] == Check("diagnosis", "failed", "[SBX_E1202] no engine answers", "start it")


def test_the_text_of_a_strange_error_is_not_shown(install: Install) -> None:
    install(acme=SickBackend)
    report = doctor()
    assert only_backend(report).isolation == "unknown"
    assert "hunter2" not in json.dumps(report.as_dict())


def test_a_backend_that_cannot_be_made_is_a_finding(install: Install) -> None:
    install(acme=UnmakeableBackend)
    (check,) = only_backend(doctor()).checks
    assert (check.name, check.status, check.hint) == ("configuration", "failed", "write one")


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        (OddBackend, "configuration"),
        (OddTierBackend, "isolation"),
        (CarelessBackend, "diagnosis"),
        (BabblingBackend, "diagnosis"),
        (ExcitedBackend, "diagnosis"),
    ],
)
def test_whatever_a_backend_does_is_a_finding(
    backend: type[PlainBackend], name: str, install: Install
) -> None:
    install(acme=backend, fine=HealthyBackend)
    report = doctor()
    odd, fine = report.backends
    assert fine.ok
    assert [check.name for check in odd.checks if check.status == "failed"] == [name]
    assert "hunter2" not in json.dumps(report.as_dict())


def test_backends_are_looked_at_together(install: Install) -> None:
    arrived: list[str] = []

    class Meeting(PlainBackend):
        async def diagnose(self) -> tuple[Check, ...]:
            arrived.append("here")
            while len(arrived) < 3:
                await anyio.sleep(0.001)
            return (Check("meeting", "ok"),)

    install(a=Meeting, b=Meeting, c=Meeting)
    report = doctor()
    assert [backend.name for backend in report.backends] == ["a", "b", "c"]
    assert report.ok


def test_a_report_cannot_be_changed_and_can_be_hashed(install: Install) -> None:
    install(e2b=HealthyBackend)
    report = doctor()
    with pytest.raises(TypeError):
        report.not_installed["docker"] = ""  # type: ignore[index]
    with pytest.raises(TypeError):
        only_backend(report).credentials["E2B_API_KEY"] = True  # type: ignore[index]
    assert hash(report) == hash(pickle.loads(pickle.dumps(report)))


def test_every_step_is_bounded(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STEP_SECONDS", 0.05)
    install(acme=StuckBackend)
    backend = only_backend(doctor())
    (check,) = backend.checks
    assert (check.name, check.detail) == ("diagnosis", "[SBX_E1202] no answer within 0.05 s")
    assert "see whether the engine or service answers" in check.hint


def test_the_tier_and_the_checks_are_asked_for_together(install: Install) -> None:
    class Meeting(PlainBackend):
        def __init__(self, config: AcmeConfig) -> None:
            super().__init__(config)
            self.asked_for_tier = anyio.Event()

        async def diagnose(self) -> tuple[Check, ...]:
            with anyio.fail_after(5):
                await self.asked_for_tier.wait()
            return (Check("meeting", "ok"),)

        async def verify_isolation(self) -> IsolationTier:
            self.asked_for_tier.set()
            return IsolationTier.CONTAINER

    install(acme=Meeting)
    assert doctor().ok


@pytest.mark.parametrize(
    "error", [AttributeError("x"), KeyError("y"), TypeError(), ExceptionGroup("z", [OSError()])]
)
def test_whatever_a_backend_raises_has_a_code_and_a_fix(error: Exception, install: Install) -> None:
    class Broken(PlainBackend):
        async def diagnose(self) -> tuple[Check, ...]:
            raise error

    install(acme=Broken)
    (check,) = only_backend(doctor()).checks
    assert check.detail == f"[SBX_E1202] the backend failed with {type(error).__name__}"
    assert check.hint.endswith("if it does, report this to the authors of the backend acme")


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("", "see whether the engine or service answers its own tools, and look at its log"),
        ("check the address, then run `sandboxio doctor`", "check the address"),
        ("try again; run `sandboxio doctor` when it happens repeatedly", "try again"),
    ],
)
def test_no_fix_is_to_run_what_has_just_run(hint: str, shown: str, install: Install) -> None:
    class Refused(PlainBackend):
        async def diagnose(self) -> tuple[Check, ...]:
            raise ConnectError("no answer", hint=hint)

    install(acme=Refused)
    (check,) = only_backend(doctor()).checks
    assert check.hint == shown


def test_what_executes_nothing_isolates_nothing() -> None:
    by_name = {backend.name: backend for backend in doctor().backends}
    assert by_name["fake"].isolation == "none"


def test_variables_are_named_but_never_shown(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E2B_API_KEY", "hunter2")
    monkeypatch.setenv("SBX_TEARDOWN_GRACE", "3.25")
    install(e2b=PlainBackend)
    report = doctor()
    assert only_backend(report).credentials == {"E2B_API_KEY": True}
    assert "SBX_TEARDOWN_GRACE" in report.variables
    text = json.dumps(report.as_dict())
    assert "hunter2" not in text
    assert "3.25" not in text


def test_an_unset_credential_is_told(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2B_API_KEY", raising=False)
    install(e2b=PlainBackend)
    assert only_backend(doctor()).credentials == {"E2B_API_KEY": False}


def test_what_is_not_installed_comes_with_its_command(install: Install) -> None:
    install()
    report = doctor()
    assert report.ok
    assert report.not_installed == {
        "docker": "uv sync --inexact --extra docker",
        "e2b": "uv sync --inexact --extra e2b",
    }


def test_the_report_is_plain_json(install: Install) -> None:
    install(acme=HealthyBackend)
    values = json.loads(json.dumps(doctor().as_dict()))
    assert values["ok"] is True
    assert values["backends"][0]["ok"] is True
    assert values["backends"][0]["checks"][0] == {
        "name": "engine",
        "status": "ok",
        "detail": "version 1",
        "hint": "",
    }
    assert set(values) == {
        "version",
        "python",
        "platform",
        "variables",
        "backends",
        "not_installed",
        "ok",
        "versions",
    }


async def test_it_works_inside_a_running_loop(install: Install) -> None:
    install(acme=HealthyBackend)
    assert doctor().ok


def test_an_error_inside_a_running_loop_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tuple[str, ...]:
        raise ConnectError("two providers")

    monkeypatch.setattr(module, "installed_backends", refuse)

    async def inside() -> Any:
        return doctor()

    with pytest.raises(ConnectError, match="two providers"):
        asyncio.run(inside())


def test_no_thread_is_needed_outside_a_loop(install: Install) -> None:
    threads: list[str] = []

    class Witness(PlainBackend):
        async def diagnose(self) -> tuple[Check, ...]:
            threads.append(threading.current_thread().name)
            return ()

    install(acme=Witness)
    doctor()
    assert threads == [threading.main_thread().name]


class TalkativeBackend(PlainBackend):
    """Says more than a report may show."""

    said: ClassVar[str]

    async def diagnose(self) -> tuple[Check, ...]:
        return (Check("engine", "failed", self.said, f"look at {self.said}"),)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("engine at tcp://build-7:2375, gone", "engine at $DOCKER_HOST, gone"),
        ("engine at ssh://alice@build-8 is gone", "engine at ssh://… is gone"),
        ("image acme/private:1", "image $SBX_DOCKER_IMAGE"),
        ("/srv/people/alice/.docker/run/docker.sock", "~/.docker/run/docker.sock"),
        ("/srv/people/alice2/x", "/srv/people/alice2/x"),
        ("/home/bob/x and /Users/carol/y", "~/x and ~/y"),
        ("unix:///var/run/docker.sock, 1 of 1", "unix:///var/run/docker.sock, 1 of 1"),
    ],
)
def test_a_report_names_variables_and_no_place_of_a_person(
    said: str, shown: str, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://build-7:2375")
    monkeypatch.setenv("SBX_DOCKER_IMAGE", "acme/private:1")
    monkeypatch.setenv("SBX_DEBUG", "1")
    monkeypatch.setenv("HOME", "/srv/people/alice")
    TalkativeBackend.said = said
    install(docker=TalkativeBackend)
    (check,) = only_backend(doctor()).checks
    assert (check.detail, check.hint) == (shown, f"look at {shown}")


@pytest.mark.parametrize(
    ("name", "value", "said", "shown"),
    [
        ("E2B_API_KEY", "e2b_0123456789", "Bearer:e2b_0123456789_x", "Bearer:$E2B_API_KEY_x"),
        ("E2B_API_KEY", "abcd", "xabcdx", "x$E2B_API_KEYx"),
        ("SBX_LEVEL", "warn", "warn: a warning", "$SBX_LEVEL: a warning"),
        ("SBX_ODD", "12345678abcd", "x12345678abcd", "x$SBX_ODD"),
        ("E2B_\\q", "abcd", "is abcd", "is $E2B_\\q"),
        ("DOCKER_HOST", "tcp://u\x01r:s3cret@h:1", "at tcp://u\ufffdr:s3cret@h:1", "at $DOCKER_HOST"),
        ("DOCKER_HOST", "tcp://u\x01r:s3cret@h:1", "at 'tcp://u\\x01r:s3cret@h:1'", "at '$DOCKER_HOST'"),
        ("DOCKER_HOST", "tcp://u\n\tr:s3cret@h:1", "at u r:s3cret@h:1", "at $DOCKER_HOST"),
        (
            "DOCKER_HOST",
            "http://user:s3cret@h:1",
            "the password s3cret is wrong",
            "the password $DOCKER_HOST is wrong",
        ),
        ("HTTPS_PROXY", "http://bob:pass\\word@proxy", "'pass\\\\word'", "'$HTTPS_PROXY'"),
        ("SBX_X", "1", "http://bob:word@proxy/ and http://example.org/", "http://… and http://example.org/"),
    ],
)
def test_a_value_is_not_shown_in_any_form(
    name: str, value: str, said: str, shown: str, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    TalkativeBackend.said = said
    install(docker=TalkativeBackend, e2b=PlainBackend)
    check = doctor().backends[0].checks[0]
    assert (check.detail, check.hint) == (shown, f"look at {shown}")


def test_relevant_variables_are_those_of_the_library_the_providers_and_proxies(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SBX_DEBUG", "DOCKER_HOST", "E2B_DOMAIN", "ACME_SANDBOX_URL", "https_proxy", "PGPASSWORD"):
        monkeypatch.setenv(name, "x")
    install(**{"acme-sandbox": PlainBackend})
    found = set(doctor().variables)
    assert {"SBX_DEBUG", "DOCKER_HOST", "E2B_DOMAIN", "ACME_SANDBOX_URL", "https_proxy"} <= found
    assert "PGPASSWORD" not in found


def test_what_nothing_answers_is_told_once(install: Install) -> None:
    class Away(PlainBackend):
        async def diagnose(self) -> tuple[Check, ...]:
            return (Check("engine", "failed", "no engine answers", "start it"),)

        async def verify_isolation(self) -> IsolationTier:
            raise ConnectError("no engine answers", hint="start it")

    install(acme=Away)
    assert [check.name for check in only_backend(doctor()).checks] == ["engine"]


def test_the_versions_of_an_adapter_and_its_sdk_are_told() -> None:
    report = doctor()
    by_name = {backend.name: backend for backend in report.backends}
    assert {"sandboxio-e2b", "e2b", "e2b-code-interpreter"} <= set(by_name["e2b"].versions)
    assert {"sandboxio-docker", "docker"} <= set(by_name["docker"].versions)
    assert by_name["fake"].versions == {}
    assert "anyio" in report.versions
