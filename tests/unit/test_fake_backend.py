"""The fake as a tool of tests: scripted responses, recorded calls, failures, a clock of its own."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable

import anyio
import pytest

from sandboxio.errors import (
    CapabilityNotSupported,
    ConfigurationError,
    ConnectError,
    CreateTimeout,
    CreationError,
    ExecutionTimeout,
    OrphanedSandboxWarning,
    ResourceLimitExceeded,
    SandboxGone,
)
from sandboxio.models import Capability, ExecResult, Resources, RichOutput
from sandboxio.network import NetworkPolicy
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.fake import FakeBackend, FakeCall, FakeConfig

pytestmark = pytest.mark.anyio

Create = Callable[..., Awaitable[AsyncSandbox]]


async def answer_later(call: FakeCall) -> str:
    """Not a function that the fake can ask: what it gives is a coroutine."""
    return call.text


@pytest.fixture
def fake() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def create(fake: FakeBackend) -> Create:
    async def make(timeout: float = 300, **options: object) -> AsyncSandbox:
        arguments: dict[str, object] = dict.fromkeys(
            ("template", "resources", "network", "env", "secrets", "metadata")
        )
        return await fake.create(**(arguments | options), timeout=timeout)  # type: ignore[arg-type]

    return make


class TestScripts:
    async def test_text_matches_what_a_command_line_contains(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run("pytest -q", returns="3 passed")
        async with await create() as sandbox:
            assert (await sandbox.run(["pytest", "-q", "tests"])).stdout == "3 passed"
            assert (await sandbox.run("cd x; pytest -q")).stdout == "3 passed"

    async def test_a_pattern_is_searched_for(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run(re.compile(r"^git \w+$"), returns="on main")
        async with await create() as sandbox:
            assert (await sandbox.run(["git", "status"])).stdout == "on main"
            assert (await sandbox.run(["git", "status", "-v"])).exit_code == 127

    async def test_a_predicate_decides_on_the_whole_call(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run(lambda call: call.env.get("MODE") == "x", returns="in mode x")
        async with await create() as sandbox:
            assert (await sandbox.run(["build"], env={"MODE": "x"})).stdout == "in mode x"
            assert (await sandbox.run(["build"])).exit_code == 127

    async def test_a_whole_result_can_be_scripted(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run("make", returns=ExecResult(2, "built", "warned"))
        async with await create() as sandbox:
            result = await sandbox.run(["make"])
        assert (result.exit_code, result.stdout, result.stderr) == (2, "built", "warned")

    async def test_a_response_can_be_computed_from_the_call(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run_code(returns=lambda call: f"{len(call.code or '')} characters")
        async with await create() as sandbox:
            assert (await sandbox.run_code("import pandas")).stdout == "13 characters"

    async def test_rich_results_of_code_can_be_scripted(self, fake: FakeBackend, create: Create) -> None:
        chart, table = RichOutput("image/png", b"..."), RichOutput("text/html", "<table>")
        fake.on_run_code("plot", returns=ExecResult(0, "", "", results=(chart, table)))
        async with await create() as sandbox:
            assert (await sandbox.run_code("plot()")).results == (chart, table)

    async def test_an_exception_can_be_scripted(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run("deploy", raises=ConnectError("the line is cut"))
        async with await create() as sandbox:
            with pytest.raises(ConnectError, match="the line is cut"):
                await sandbox.run(["deploy"])

    async def test_an_end_for_want_of_memory_can_be_scripted(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run_code("train", returns=ExecResult(137, "epoch 1", "", oom_killed=True))
        async with await create(resources=Resources(memory_mb=64)) as sandbox:
            with pytest.raises(ResourceLimitExceeded, match="64") as caught:
                await sandbox.run_code("train()")
        assert caught.value.partial is not None
        assert caught.value.partial.stdout == "epoch 1"

    async def test_of_two_that_match_the_later_one_is_given(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run("ls", returns="first")
        fake.on_run("ls", returns="second")
        async with await create() as sandbox:
            assert (await sandbox.run(["ls"])).stdout == "second"

    async def test_a_script_holds_for_streams(self, fake: FakeBackend, create: Create) -> None:
        fake.on_run("make", returns=ExecResult(0, "out", "err"))
        async with await create() as sandbox, sandbox.stream(["make"]) as process:
            chunks = {chunk.stream: chunk.data async for chunk in process}
        assert chunks == {"stdout": b"out", "stderr": b"err"}

    @pytest.mark.parametrize("outcome", [{}, {"returns": "x", "raises": ConnectError("x")}])
    def test_a_script_needs_exactly_one_outcome(self, fake: FakeBackend, outcome: dict[str, object]) -> None:
        with pytest.raises(ConfigurationError):
            fake.on_run("ls", **outcome)  # type: ignore[arg-type]

    @pytest.mark.parametrize("match", [5, b"ls", None, str, re.compile(b"ls"), answer_later])
    def test_what_matches_no_call_is_refused_when_it_is_scripted(
        self, fake: FakeBackend, match: object
    ) -> None:
        with pytest.raises(ConfigurationError, match="matches no call") as caught:
            fake.on_run_code(match, returns="x")  # type: ignore[arg-type]
        assert "text that the call contains" in caught.value.hint

    @pytest.mark.parametrize("returns", [5, b"x", ["x"], ExecResult, answer_later])
    def test_what_is_no_answer_is_refused_when_it_is_scripted(
        self, fake: FakeBackend, returns: object
    ) -> None:
        with pytest.raises(ConfigurationError, match="is no answer") as caught:
            fake.on_run("ls", returns=returns)  # type: ignore[arg-type]
        assert "ExecResult" in caught.value.hint

    @pytest.mark.parametrize("raises", ["x", ConnectError, KeyboardInterrupt(), 5])
    def test_what_is_no_exception_object_is_refused_when_it_is_scripted(
        self, fake: FakeBackend, raises: object
    ) -> None:
        with pytest.raises(ConfigurationError, match="cannot be raised") as caught:
            fake.on_run("ls", raises=raises)  # type: ignore[arg-type]
        assert "exception object" in caught.value.hint
        with (
            pytest.raises(ConfigurationError, match="cannot be raised"),
            fake.failing_creates(raises),  # type: ignore[arg-type]
        ):
            pytest.fail("a creation cannot fail with it")

    async def test_nothing_that_was_refused_is_scripted(self, fake: FakeBackend, create: Create) -> None:
        with pytest.raises(ConfigurationError):
            fake.on_run("echo", returns=5)  # type: ignore[arg-type]
        async with await create() as sandbox:
            assert (await sandbox.run(["echo", "hi"])).stdout == "hi\n"

    @pytest.mark.parametrize("answer", [5, None, b"x"])
    async def test_a_function_that_gives_no_answer_is_told_as_such(
        self, fake: FakeBackend, create: Create, answer: object
    ) -> None:
        fake.on_run("ls", returns=lambda call: answer)  # type: ignore[arg-type]
        async with await create() as sandbox:
            with pytest.raises(ConfigurationError, match="a scripted function answered"):
                await sandbox.run(["ls"])

    async def test_an_exception_of_a_providers_own_reaches_the_caller_as_an_error_of_the_library(
        self, fake: FakeBackend, create: Create
    ) -> None:
        fake.on_run("ls", raises=RuntimeError("confused"))
        async with await create() as sandbox:
            with pytest.raises(ConnectError, match="RuntimeError") as caught:
                await sandbox.run(["ls"])
        assert isinstance(caught.value.__cause__, RuntimeError)


class TestHonesty:
    @pytest.mark.parametrize("code", ["import pandas", "def f(): pass", "x = lambda: 1", "print(*[1])"])
    async def test_code_that_is_not_simulated_names_the_fix(self, create: Create, code: str) -> None:
        async with await create() as sandbox:
            with pytest.raises(CapabilityNotSupported) as caught:
                await sandbox.run_code(code)
        assert "on_run_code" in caught.value.hint

    @pytest.mark.parametrize("command", ["while true; do :; done", "f() { :; }", "ls -l", "echo $((1+1))"])
    async def test_a_command_that_is_not_simulated_names_the_fix(self, create: Create, command: str) -> None:
        async with await create() as sandbox:
            with pytest.raises(CapabilityNotSupported) as caught:
                await sandbox.run(command)
        assert "on_run" in caught.value.hint

    async def test_nothing_before_an_unknown_construct_has_run(self, create: Create) -> None:
        async with await create() as sandbox:
            with pytest.raises(CapabilityNotSupported):
                await sandbox.run_code("open('made', 'w').close()\nclass X: pass")
            assert not await sandbox.files.exists("made")

    async def test_code_that_never_ends_is_stopped_by_its_deadline(self, create: Create) -> None:
        async with await create() as sandbox:
            with pytest.raises(ExecutionTimeout):
                await sandbox.run_code("while True:\n    pass", timeout=0.3)

    def test_what_it_cannot_do_cannot_be_declared(self) -> None:
        with pytest.raises(ConfigurationError, match="GPU"):
            FakeConfig(capabilities=Capability.GPU)

    def test_a_dsn_has_no_parameters(self) -> None:
        with pytest.raises(ConfigurationError, match="speed"):
            FakeConfig.from_dsn("python", {"speed": "9"})


class TestCalls:
    async def test_calls_are_recorded_with_the_policy_in_effect(
        self, fake: FakeBackend, create: Create
    ) -> None:
        policy = NetworkPolicy(allow=("pkg.example.org",))
        async with await create(network=policy) as sandbox:
            await sandbox.run(["echo", "hi"], cwd="/tmp", env={"A": "1"})
            await sandbox.run_code("print(1)", context_id="one")
            await sandbox.files.write("file", b"x")
        assert [call.operation for call in fake.calls] == ["create", "run", "run_code", "files", "kill"]
        assert {call.network for call in fake.calls} == {policy}
        run, code, file = fake.calls[1:4]
        assert (run.command, run.cwd, run.env) == (("echo", "hi"), "/tmp", {"A": "1"})
        assert (code.code, code.language, code.context_id) == ("print(1)", "python", "one")
        assert file.path == "/work/file"

    async def test_a_recorded_call_shows_no_variable(self, fake: FakeBackend, create: Create) -> None:
        async with await create(secrets={"TOKEN": "sk-12345"}) as sandbox:
            await sandbox.run(["true"])
        assert fake.calls[1].env == {"TOKEN": "sk-12345"}
        assert "sk-12345" not in repr(fake.calls)

    def test_a_call_without_a_command_has_its_code_as_text(self) -> None:
        call = FakeCall("run_code", "id", NetworkPolicy(), code="print(1)")
        assert call.text == "print(1)"


class TestTime:
    async def test_sleeping_takes_virtual_time_only(self, fake: FakeBackend, create: Create) -> None:
        started = time.monotonic()
        async with await create(timeout=7200) as sandbox:
            await sandbox.run(["sleep", "1h"])
        assert fake.clock() == 3600
        assert time.monotonic() - started < 60

    async def test_a_timeout_strikes_at_its_moment(self, fake: FakeBackend, create: Create) -> None:
        async with await create() as sandbox:
            with pytest.raises(ExecutionTimeout):
                await sandbox.run("sleep 1; echo one; sleep 100", timeout=20)
        assert fake.clock() == 20

    async def test_what_ends_before_a_deadline_ends_although_another_sleeps_on(
        self, fake: FakeBackend, create: Create
    ) -> None:
        async with await create() as sandbox, anyio.create_task_group() as group:
            outputs: list[str] = []

            async def execute(command: str, timeout: float) -> None:
                outputs.append((await sandbox.run(command, timeout=timeout)).stdout)

            group.start_soon(execute, "sleep 50; echo slow", 60)
            group.start_soon(execute, "sleep 1; echo quick", 2)
        assert sorted(outputs) == ["quick\n", "slow\n"]

    async def test_a_background_child_works_on_as_time_passes(self, create: Create) -> None:
        async with await create() as sandbox:
            await sandbox.run("(sleep 5; echo late > file) &")
            assert not await sandbox.files.exists("file")
            await sandbox.run(["sleep", "10"])
            assert await sandbox.files.read("file") == b"late\n"

    async def test_moving_the_clock_ends_what_has_lived_its_time(
        self, fake: FakeBackend, create: Create
    ) -> None:
        async with await create(timeout=60) as sandbox:
            fake.clock.advance(61)
            assert fake.sandboxes == ()
            with pytest.raises(SandboxGone):
                await sandbox.run(["true"])

    def test_time_does_not_run_backwards(self, fake: FakeBackend) -> None:
        with pytest.raises(ValueError, match="backwards"):
            fake.clock.advance(-1)


class TestFailures:
    async def test_creations_fail_on_demand(self, fake: FakeBackend, create: Create) -> None:
        with fake.failing_creates(CreationError("no room")), pytest.raises(CreationError, match="no room"):
            await create()
        async with await create():
            pass

    async def test_a_creation_that_is_too_slow_is_a_create_timeout_and_leaves_nothing(self) -> None:
        fake = FakeBackend(FakeConfig(create_timeout=0.05))
        with fake.slow_creates(5), pytest.raises(CreateTimeout):
            await fake.create(
                template=None,
                resources=None,
                network=None,
                env=None,
                secrets=None,
                timeout=60,
                metadata=None,
            )
        assert fake.sandboxes == ()

    async def test_a_provider_can_be_made_unreachable(self, fake: FakeBackend, create: Create) -> None:
        async with await create() as sandbox:
            with fake.unreachable(), pytest.raises(ConnectError):
                await sandbox.files.ls()
            assert await sandbox.files.ls() == ()

    async def test_a_kill_can_be_refused(self, fake: FakeBackend, create: Create) -> None:
        sandbox = await create()
        with fake.refusing_kills(sandbox), pytest.warns(OrphanedSandboxWarning):
            async with sandbox:
                pass
        assert [held.id for held in fake.sandboxes] == [sandbox.id]

    async def test_only_a_sandbox_of_its_own_can_be_expired(self, fake: FakeBackend, create: Create) -> None:
        sandbox = await create()
        with pytest.raises(ConfigurationError):
            FakeBackend().expire(sandbox)
        fake.expire(sandbox)
        with pytest.raises(SandboxGone):
            await sandbox.run(["true"])

    async def test_the_diagnosis_tells_what_was_made_of_it(self, fake: FakeBackend) -> None:
        assert [check.status for check in await fake.diagnose()] == ["ok"]
        with fake.unreachable():
            assert [check.status for check in await fake.diagnose()] == ["failed"]


class TestNetwork:
    URLOPEN = "import urllib.request\nprint(urllib.request.urlopen('https://pkg.example.org/simple').read().decode())"

    async def test_a_listed_server_answers(self, fake: FakeBackend, create: Create) -> None:
        server = fake.serve("pkg.example.org", body="packages")
        async with await create(network=NetworkPolicy(allow=("pkg.example.org",))) as sandbox:
            assert (await sandbox.run_code(self.URLOPEN)).stdout == "packages\n"
            assert (await sandbox.run(["curl", "-s", "https://pkg.example.org/simple"])).stdout == "packages"
        assert server.hits == 2
        assert fake.denials == ()

    async def test_a_denied_connection_fails_in_the_code_and_is_recorded(
        self, fake: FakeBackend, create: Create
    ) -> None:
        server = fake.serve("pkg.example.org", body="packages")
        async with await create() as sandbox:
            result = await sandbox.run_code(self.URLOPEN)
            fetched = await sandbox.run(["curl", "https://pkg.example.org"])
        assert result.exit_code == 1
        assert "URLError" in result.stderr
        assert fetched.exit_code == 6
        assert server.hits == 0
        assert [(denial.host, denial.port) for denial in fake.denials] == [("pkg.example.org", 443)] * 2

    async def test_code_can_handle_a_denied_connection(self, create: Create) -> None:
        code = (
            "import socket\n"
            "try:\n"
            "    socket.create_connection(('1.1.1.1', 80), timeout=1)\n"
            "except OSError as exc:\n"
            "    print('blocked:', exc)\n"
        )
        async with await create() as sandbox:
            assert (await sandbox.run_code(code)).stdout.startswith("blocked: [Errno")

    async def test_nobody_is_there_unless_a_test_put_it_there(self, create: Create) -> None:
        async with await create(network=NetworkPolicy(egress="allow")) as sandbox:
            assert "Name or service not known" in (await sandbox.run_code(self.URLOPEN)).stderr
