"""`sbx_fake` leads every target to one fake, and only for the test that asked for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sandboxio
from sandboxio.errors import BackendNotFound
from sandboxio.registry import backend_class
from sandboxio.testing.fake import FakeBackend


class OtherConfig:
    """The configuration of a backend that is not installed."""

    backend_name = "acme"
    template = "large"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "target", [None, "docker://python:3.12", "e2b://base?timeout=60", "acme://?x=1", OtherConfig()]
)
async def test_every_target_leads_to_the_fake(sbx_fake: FakeBackend, target: object) -> None:
    async with sandboxio.create(target) as sandbox:  # type: ignore[arg-type]
        assert (await sandbox.run(["echo", "hi"])).stdout == "hi\n"
    assert [call.operation for call in sbx_fake.calls] == ["create", "run", "kill"]


@pytest.mark.anyio
async def test_what_was_created_can_be_connected_to(sbx_fake: FakeBackend) -> None:
    async with (
        sandboxio.create("docker://") as created,
        sandboxio.connect("docker://", created.id) as connected,
    ):
        assert connected.id == created.id


def test_the_synchronous_form_uses_the_fake(sbx_fake: FakeBackend) -> None:
    with sandboxio.create_sync() as sandbox:
        assert sandbox.run_code("print(6 * 7)").stdout == "42\n"
    assert len(sbx_fake.calls) == 3


def test_a_backend_object_is_used_as_it_is(sbx_fake: FakeBackend) -> None:
    other = FakeBackend()
    with sandboxio.create_sync(other):
        pass
    assert sbx_fake.calls == ()
    assert len(other.calls) == 2


@pytest.mark.anyio
async def test_without_the_fixture_the_fake_is_a_backend_by_name() -> None:
    async with sandboxio.create("fake://any?timeout=60") as sandbox:
        assert (sandbox.backend, sandbox.native.template) == ("fake", "any")


def test_the_registry_is_put_back_afterwards(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from sandboxio.errors import BackendNotFound
        from sandboxio.registry import backend_class

        def test_with(sbx_fake):
            backend_class("no-such-backend")

        def test_without():
            with pytest.raises(BackendNotFound):
                backend_class("no-such-backend")
        """
    )
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_a_name_that_nobody_provides_is_unknown_without_the_fixture() -> None:
    with pytest.raises(BackendNotFound):
        backend_class("no-such-backend")


def test_loading_the_plugin_imports_nothing_of_the_library_itself() -> None:
    code = (
        "import pytest, sys\n"
        "before = set(sys.modules)\n"
        "import sandboxio.testing.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(found.stdout.split())
    assert {name for name in loaded if name.startswith("sandboxio")} == {
        "sandboxio",
        "sandboxio.testing",
        "sandboxio.testing.pytest_plugin",
    }
    assert len(loaded) < 8
