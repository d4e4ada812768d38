"""What goes into an execution: its command, its code, its standard input."""

from __future__ import annotations

import anyio
import pytest

from sandboxio.errors import ConfigurationError, ExecutionError, ExecutionTimeout
from sandboxio.models import PIPE


@pytest.mark.parametrize("command", ["a\0b", ["a", "b\0"], ["\ud800"], [], [""], b"ls", ["-rf"], 7, [b"ls"]])
async def test_a_command_that_cannot_be_one_is_refused_before_anything_is_sent(make_sandbox, command):
    sandbox, driver = make_sandbox()
    with pytest.raises(ConfigurationError):
        await sandbox.run(command)
    assert driver.specs == []


async def test_code_goes_in_by_standard_input_whatever_its_length(make_sandbox, scripted):
    code = "#" + "x" * 200_000
    sandbox, driver = make_sandbox(scripted(echo=True))
    await sandbox.run_code(code)
    assert driver.process.input == code.encode()


async def test_input_larger_than_any_pipe_is_fed_while_output_is_read(make_sandbox, scripted):
    data = bytes(range(256)) * 400
    sandbox, driver = make_sandbox(scripted(echo=True))
    result = await sandbox.run(["cat"], stdin=data)
    assert driver.process.input == data
    assert result.stdout == data.decode("utf-8", "replace")


async def test_without_input_no_input_is_opened(make_sandbox):
    sandbox, driver = make_sandbox()
    await sandbox.run(["cat"])
    assert driver.specs[0].open_stdin is False


async def test_input_is_written_while_a_stream_runs(make_sandbox, scripted):
    sandbox, driver = make_sandbox(scripted(echo=True))
    async with sandbox.stream(["cat"], stdin=PIPE) as process:
        await process.write("abc")
        await process.close_stdin()
        assert [chunk.data async for chunk in process] == [b"abc"]
        with pytest.raises(ExecutionError):
            await process.write(b"more")
    assert driver.process.input == b"abc"


async def test_a_write_that_is_cancelled_loses_nothing_and_the_next_one_comes_behind_it(
    make_sandbox, scripted
):
    process = scripted(echo=True)
    blocked, take = True, process.send

    async def send(data):
        if process.input and blocked:
            await anyio.sleep_forever()
        return await take(data[:5])

    process.send = send
    sandbox, _ = make_sandbox(process)
    async with sandbox.stream(["cat"], stdin=PIPE) as stream:
        with anyio.move_on_after(0.05) as scope:
            await stream.write(b"0123456789")
        assert scope.cancelled_caught
        assert process.input == b"01234"
        blocked = False
        await stream.write(b"abc")
        await stream.close_stdin()
        await stream.wait()
    assert process.input == b"0123456789abc"


async def test_the_end_of_input_comes_behind_a_write_that_was_cancelled(make_sandbox, scripted):
    process = scripted(echo=True)
    take = process.send

    async def blocked(data):
        await anyio.sleep_forever()

    process.send = blocked
    sandbox, _ = make_sandbox(process)
    async with sandbox.stream(["cat"], stdin=PIPE) as stream:
        with anyio.move_on_after(0.05):
            await stream.write(b"abc")
        process.send = take
        await stream.close_stdin()
        await stream.wait()
    assert process.input == b"abc"


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_an_interrupt_while_input_is_fed_stays_bare(make_sandbox, scripted):
    process = scripted(echo=True)

    async def receive():
        raise KeyboardInterrupt

    process.receive = receive

    async def send(data):
        await anyio.sleep(1)
        return 0

    process.send = send
    sandbox, _ = make_sandbox(process)
    with pytest.raises(KeyboardInterrupt):
        await sandbox.run(["cat"], stdin=b"x")


async def test_the_end_of_input_that_cannot_be_sent_is_kept_to_the_deadline(make_sandbox, scripted):
    process = scripted(leader_exits=False, end_of_output=False)

    async def stuck():
        await anyio.sleep_forever()

    process.send_eof = stuck
    sandbox, _ = make_sandbox(process)
    async with sandbox.stream(["cat"], stdin=PIPE, timeout=0.2) as stream:
        with pytest.raises(ExecutionTimeout):
            await stream.close_stdin()
    assert process.kills


async def test_a_cancelled_end_of_input_can_be_sent_again(make_sandbox, scripted):
    process = scripted(echo=True)
    send_eof = process.send_eof

    async def stuck():
        await anyio.sleep_forever()

    process.send_eof = stuck
    sandbox, _ = make_sandbox(process)
    async with sandbox.stream(["cat"], stdin=PIPE, timeout=20) as stream:
        with anyio.move_on_after(0.05) as scope:
            await stream.close_stdin()
        assert scope.cancelled_caught
        process.send_eof = send_eof
        await stream.close_stdin()
        assert (await stream.wait()).exit_code == 0


async def test_where_no_input_is_open_there_is_none_to_end(make_sandbox, scripted):
    sandbox, _ = make_sandbox(scripted(echo=False))
    async with sandbox.stream(["true"], stdin=PIPE) as stream:
        await stream.wait()
        await stream.close_stdin()
    async with sandbox.stream(["true"]) as stream:
        await stream.close_stdin()
        assert (await stream.wait()).exit_code == 0
