"""The local server as the real SDK sees it when all is well."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from e2b import SandboxQuery
from e2b.exceptions import (
    FileNotFoundException,
    InvalidArgumentException,
    NotFoundException,
    SandboxException,
    SandboxNotFoundException,
    TimeoutException,
)
from e2b.sandbox.commands.command_handle import CommandExitException
from e2b_code_interpreter import AsyncSandbox
from e2b_server.ports import Egress
from e2b_server.server import E2BServer
from stand_in_machine import Boots, StandInMachine

pytestmark = pytest.mark.e2b


class TestCommands:
    async def test_output_and_exit_code_come_through(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.commands.run("echo out; echo err >&2")
        assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)

    async def test_a_failure_keeps_its_exit_code_and_output(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(CommandExitException) as caught:
            await sandbox.commands.run("echo partial; exit 3")
        assert (caught.value.exit_code, caught.value.stdout) == (3, "partial\n")

    async def test_envs_and_cwd_reach_the_command(self, sandbox: AsyncSandbox) -> None:
        result = await sandbox.commands.run('echo "$WHAT"; pwd', envs={"WHAT": "ünïcode"}, cwd="/usr")
        assert result.stdout == "ünïcode\n/usr\n"

    async def test_a_missing_cwd_is_an_invalid_argument(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(InvalidArgumentException, match="does not exist"):
            await sandbox.commands.run("true", cwd="/no/such/folder")

    async def test_stdin_is_served_until_it_is_closed(self, sandbox: AsyncSandbox) -> None:
        command = await sandbox.commands.run("cat", background=True, stdin=True)
        await command.send_stdin("one ")
        await sandbox.commands.send_stdin(command.pid, "two")
        await command.close_stdin()
        assert (await command.wait()).stdout == "one two"

    async def test_an_input_stream_keeps_its_order(self, sandbox: AsyncSandbox) -> None:
        command = await sandbox.commands.run("cat", background=True, stdin=True)
        async with sandbox.commands.stream_input(command.pid) as typing:
            for number in range(20):
                await typing.send(f"{number} ")
        await command.close_stdin()
        assert (await command.wait()).stdout.split() == [str(number) for number in range(20)]

    async def test_a_kill_ends_the_command(self, sandbox: AsyncSandbox) -> None:
        command = await sandbox.commands.run("sleep 60", background=True, timeout=0)
        assert await command.kill()
        with pytest.raises(CommandExitException) as caught:
            await command.wait()
        assert (caught.value.exit_code, caught.value.error) == (-1, "signal: killed")

    async def test_killing_what_does_not_run_is_false(self, sandbox: AsyncSandbox) -> None:
        assert not await sandbox.commands.kill(4_000_000)

    async def test_the_list_tells_how_a_command_was_started(
        self, server: E2BServer, sandbox: AsyncSandbox
    ) -> None:
        command = await sandbox.commands.run("sleep 60", background=True, envs={"MARK": "7"}, cwd="/usr")
        (listed,) = await sandbox.commands.list()
        assert (listed.pid, listed.envs, listed.cwd) == (command.pid, {"MARK": "7"}, "/usr")
        assert listed.args[-1] == "sleep 60"
        assert list(server.processes(sandbox.sandbox_id)) == [command.pid]

    async def test_a_second_listener_can_attach(self, sandbox: AsyncSandbox) -> None:
        command = await sandbox.commands.run("cat", background=True, stdin=True)
        await command.disconnect()
        again = await sandbox.commands.connect(command.pid)
        assert again.pid == command.pid
        await again.kill()

    async def test_attaching_to_nothing_is_not_found(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(NotFoundException):
            await sandbox.commands.connect(4_000_000)

    async def test_a_command_outlives_its_connection(self, server: E2BServer, sandbox: AsyncSandbox) -> None:
        command = await sandbox.commands.run("sleep 60", background=True, timeout=0)
        await command.disconnect()
        await sandbox.commands.list()
        assert list(server.processes(sandbox.sandbox_id)) == [command.pid]

    async def test_a_timeout_kills_the_command(
        self, server: E2BServer, sandbox: AsyncSandbox, until: Any
    ) -> None:
        with pytest.raises((TimeoutException, CommandExitException)):
            await sandbox.commands.run("sleep 60", timeout=0.3)
        await until(lambda: not server.processes(sandbox.sandbox_id))

    async def test_a_timeout_kills_a_command_that_nobody_listens_to(
        self, server: E2BServer, sandbox: AsyncSandbox, until: Any
    ) -> None:
        command = await sandbox.commands.run("sleep 60", background=True, timeout=0.3)
        await command.disconnect()
        assert server.processes(sandbox.sandbox_id)
        await until(lambda: not server.processes(sandbox.sandbox_id))


class TestFiles:
    async def test_bytes_survive(self, sandbox: AsyncSandbox) -> None:
        content = bytes(range(256)) * 1000
        written = await sandbox.files.write("a/b.bin", content)
        assert (written.name, written.path) == ("b.bin", "/a/b.bin")
        assert bytes(await sandbox.files.read("/a/b.bin", format="bytes")) == content

    async def test_several_files_keep_their_full_paths(self, sandbox: AsyncSandbox) -> None:
        names = ["/deep/er/one.txt", "/deep/back\\slash.txt", "/déep/two.txt"]
        written = await sandbox.files.write_files([{"path": each, "data": each} for each in names])
        assert [each.path for each in written] == names
        assert await sandbox.files.read("/déep/two.txt") == "/déep/two.txt"

    async def test_an_empty_file_is_a_file(self, sandbox: AsyncSandbox) -> None:
        await sandbox.files.write("empty", b"")
        assert bytes(await sandbox.files.read("empty", format="bytes")) == b""
        assert (await sandbox.files.get_info("empty")).size == 0

    @pytest.mark.parametrize("gzip", [False, True])
    async def test_streams_go_up_and_down(self, sandbox: AsyncSandbox, gzip: bool) -> None:
        pieces = [bytes([number]) * 100_000 for number in range(20)]

        async def produce() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        await sandbox.files.write("big", produce(), gzip=gzip)
        stream = await sandbox.files.read("big", format="stream")
        assert b"".join([piece async for piece in stream]) == b"".join(pieces)

    async def test_a_file_object_is_uploaded(self, sandbox: AsyncSandbox) -> None:
        await sandbox.files.write("object", io.BytesIO(b"from a file"))
        assert await sandbox.files.read("object") == "from a file"

    async def test_an_entry_tells_what_it_is(self, sandbox: AsyncSandbox) -> None:
        await sandbox.files.write("dir/file", b"12345")
        info = await sandbox.files.get_info("dir/file")
        assert (info.name, info.path, info.size) == ("file", "/dir/file", 5)
        assert info.type is not None
        assert info.type.value == "file"
        assert (info.permissions, info.owner, info.mode) == ("-rw-r--r--", "user", 0o644)
        assert abs(info.modified_time - datetime.now(UTC)) < timedelta(minutes=1)

    async def test_a_listing_goes_as_deep_as_asked(self, sandbox: AsyncSandbox) -> None:
        await sandbox.files.write("top/mid/low", b"")
        assert [each.path for each in await sandbox.files.list("top")] == ["/top/mid"]
        assert [each.path for each in await sandbox.files.list("top", depth=2)] == [
            "/top/mid",
            "/top/mid/low",
        ]

    async def test_making_moving_removing(self, sandbox: AsyncSandbox) -> None:
        assert await sandbox.files.make_dir("x/y")
        assert not await sandbox.files.make_dir("x/y")
        assert (await sandbox.files.rename("x/y", "x/z")).path == "/x/z"
        assert not await sandbox.files.exists("x/y")
        await sandbox.files.remove("x")
        await sandbox.files.remove("x")
        assert not await sandbox.files.exists("x/z")

    async def test_what_is_missing_is_not_found(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(FileNotFoundException):
            await sandbox.files.read("nothing")
        with pytest.raises(FileNotFoundException):
            await sandbox.files.get_info("nothing")

    async def test_the_wrong_kind_is_an_invalid_argument(self, sandbox: AsyncSandbox) -> None:
        await sandbox.files.write("kind/file", b"")
        with pytest.raises(InvalidArgumentException):
            await sandbox.files.read("kind")
        with pytest.raises(InvalidArgumentException):
            await sandbox.files.list("kind/file")
        with pytest.raises(InvalidArgumentException):
            await sandbox.files.write("kind", b"")


class TestCode:
    async def test_a_cell_tells_its_output_and_result(self, sandbox: AsyncSandbox) -> None:
        execution = await sandbox.run_code("say hello")
        assert execution.logs.stdout == ["hello"]
        assert execution.execution_count == 1
        assert execution.error is None

    async def test_an_error_of_the_code_is_no_exception(self, sandbox: AsyncSandbox) -> None:
        execution = await sandbox.run_code("fail")
        assert execution.error is not None
        assert execution.error.name == "ZeroDivisionError"

    async def test_without_a_context_the_default_one_runs_the_cell(
        self, server: E2BServer, sandbox: AsyncSandbox
    ) -> None:
        first = await sandbox.run_code("say 1")
        again = await sandbox.run_code("say 2", language="Python")
        assert first.text == again.text == server.contexts(sandbox.sandbox_id)[0].id
        assert len(server.contexts(sandbox.sandbox_id)) == 1

    async def test_contexts_are_opened_used_restarted_and_closed(
        self, sandbox: AsyncSandbox, machine: StandInMachine
    ) -> None:
        context = await sandbox.create_code_context(cwd="/tmp", language="python")
        assert (context.language, context.cwd) == ("python", "/tmp")
        assert (await sandbox.run_code("say it", context=context, envs={"A": "b"})).text == context.id
        assert machine.kernels.environments == [{"A": "b"}]
        await sandbox.restart_code_context(context)
        assert machine.kernels.restarted == [context.id]
        assert [each.id for each in await sandbox.list_code_contexts()] == [context.id]
        await sandbox.remove_code_context(context)
        assert await sandbox.list_code_contexts() == []

    async def test_an_unknown_context_is_not_found(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(NotFoundException):
            await sandbox.restart_code_context("nobody")
        with pytest.raises(NotFoundException):
            await sandbox.remove_code_context("nobody")

    async def test_a_language_without_a_kernel_is_refused(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(SandboxException, match="no kernel"):
            await sandbox.run_code("say", language="cobol")

    async def test_leaving_interrupts_the_cell(
        self, sandbox: AsyncSandbox, machine: StandInMachine, until: Any
    ) -> None:
        running = asyncio.create_task(sandbox.run_code("wait", timeout=0))
        await until(lambda: machine.kernels.environments)
        running.cancel()
        await until(machine.kernels.interrupted.is_set)


class TestLifecycle:
    async def test_a_sandbox_is_made_as_it_was_asked_for(self, server: E2BServer, boots: Boots) -> None:
        sandbox = await AsyncSandbox.create(
            template="base",
            timeout=30,
            metadata={"k": "v"},
            envs={"E": "1"},
            allow_internet_access=False,
            **server.connection,
        )
        (record,) = server.sandboxes({"k": "v"})
        assert record.id == sandbox.sandbox_id
        assert (record.template, record.envs, record.allow_internet_access) == ("base", {"E": "1"}, False)
        assert (boots.last.template, boots.last.envs) == ("base", {"E": "1"})
        assert boots.last.egress == Egress(open=False)
        assert timedelta(seconds=30) <= record.ends_at - record.started_at < timedelta(seconds=31)
        assert await sandbox.kill()

    async def test_info_tells_what_the_template_gives(self, sandbox: AsyncSandbox) -> None:
        info = await sandbox.get_info()
        assert (info.cpu_count, info.memory_mb) == (2, 1024)
        assert info.sandbox_id == sandbox.sandbox_id
        assert info.state.value == "running"

    async def test_a_killed_sandbox_is_gone(self, server: E2BServer) -> None:
        sandbox = await AsyncSandbox.create(timeout=60, **server.connection)
        assert await sandbox.is_running()
        assert await sandbox.kill()
        assert not await sandbox.kill()
        assert not await sandbox.is_running()
        with pytest.raises(SandboxNotFoundException):
            await AsyncSandbox.connect(sandbox.sandbox_id, **server.connection)
        assert sandbox.sandbox_id not in [each.id for each in server.leftovers()]

    async def test_connecting_gives_a_usable_sandbox_and_never_shortens_its_life(
        self, server: E2BServer, sandbox: AsyncSandbox
    ) -> None:
        await sandbox.set_timeout(1000)
        (before,) = [each for each in server.sandboxes() if each.id == sandbox.sandbox_id]
        again = await AsyncSandbox.connect(sandbox.sandbox_id, timeout=5, **server.connection)
        assert (await again.commands.run("echo here")).stdout == "here\n"
        (after,) = [each for each in server.sandboxes() if each.id == sandbox.sandbox_id]
        assert after.ends_at == before.ends_at

    async def test_a_lifetime_that_is_over_shuts_the_machine_down(
        self, server: E2BServer, boots: Boots, until: Any
    ) -> None:
        sandbox = await AsyncSandbox.create(timeout=60, **server.connection)
        machine = boots.last
        await sandbox.set_timeout(1)
        await until(lambda: machine.is_down)
        assert not await sandbox.is_running()

    async def test_one_key_makes_one_sandbox(self, server: E2BServer, boots: Boots) -> None:
        made = len(boots.machines)

        async def create() -> AsyncSandbox:
            return await AsyncSandbox.create(timeout=60, idempotency_key="once-1", **server.connection)

        first, second = await asyncio.gather(create(), create())
        assert first.sandbox_id == second.sandbox_id == (await create()).sandbox_id
        assert len(boots.machines) == made + 1
        await first.kill()

    async def test_the_network_can_be_changed(self, sandbox: AsyncSandbox, machine: StandInMachine) -> None:
        assert machine.egress == Egress(open=True)
        await sandbox.update_network(
            {"allow_out": ["*.example.com", "10.0.0.0/8"], "deny_out": ["0.0.0.0/0"]}
        )
        assert machine.egress == Egress(
            open=False, hosts=("*.example.com",), addresses=("10.0.0.0/8", "8.8.8.8")
        )
        await sandbox.update_network({})
        assert machine.egress == Egress(open=True)

    async def test_a_pause_is_refused(self, sandbox: AsyncSandbox) -> None:
        with pytest.raises(SandboxException, match="cannot be paused"):
            await sandbox.pause()
        assert await sandbox.is_running()

    async def test_a_private_sandbox_still_runs_code(self, server: E2BServer) -> None:
        sandbox = await AsyncSandbox.create(
            timeout=60, network={"allow_public_traffic": False}, **server.connection
        )
        assert sandbox.traffic_access_token
        assert (await sandbox.run_code("say hi")).logs.stdout == ["hi"]
        await sandbox.kill()

    async def test_lists_are_filtered_and_paged(self, server: E2BServer) -> None:
        made = [
            await AsyncSandbox.create(
                timeout=60, metadata={"group": "a b&c=d/é", "n": str(number)}, **server.connection
            )
            for number in range(3)
        ]
        pages = AsyncSandbox.list(
            query=SandboxQuery(metadata={"group": "a b&c=d/é"}), limit=2, order="asc", **server.connection
        )
        first = await pages.next_items()
        assert [each.sandbox_id for each in first] == [each.sandbox_id for each in made[:2]]
        assert pages.has_next
        assert [each.sandbox_id for each in await pages.next_items()] == [made[2].sandbox_id]
        assert not pages.has_next
        nobody = AsyncSandbox.list(query=SandboxQuery(metadata={"group": "none"}), **server.connection)
        assert await nobody.next_items() == []
        await asyncio.gather(*(each.kill() for each in made))
