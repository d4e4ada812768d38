"""No secret is in any span, and code only where the host captures it."""

from __future__ import annotations

import anyio
import pytest

import sandboxio
from sandboxio import AuditConfig, ExecResult
from sandboxio.testing.fake import FakeBackend, FakeConfig

CANARY = "c4n4ry-v4lue"
FOREVER = ("tail", "-f", "/dev/null")


async def everything_with_a_secret(fake: FakeBackend) -> None:
    """Put a secret wherever a caller can put one, and let operations succeed, fail and be cancelled."""
    fake.on_run("answer", returns=ExecResult(0, CANARY, CANARY))
    async with sandboxio.create(fake, secrets={"TOKEN": CANARY}) as sb:
        await sb.run(["answer", f"--key={CANARY}"], env={"ALSO": CANARY}, stdin=CANARY)
        await sb.run_code(f"print({CANARY!r})")
        await sb.files.write(CANARY, CANARY)
        await sb.files.rename(CANARY, f"{CANARY}.2")
        async with sb.stream(f"echo {CANARY}") as process:
            await process.wait()
        for failing in (
            lambda: sb.files.read(f"{CANARY}/none"),
            lambda: sb.run(["true"], cwd=f"/none/{CANARY}"),
            lambda: sb.run(f"sleep 1000 # {CANARY}", timeout=0.01),
        ):
            with pytest.raises(sandboxio.SandboxError):
                await failing()
        with anyio.move_on_after(0.01):
            await sb.run([*FOREVER, CANARY])
        for raised in (RuntimeError(CANARY), sandboxio.ExecutionError(CANARY, hint=CANARY)):
            with pytest.raises(type(raised)):
                async with sb.stream([*FOREVER, CANARY]):
                    raise raised


@pytest.mark.parametrize("captured", [False, True])
async def test_a_secret_is_in_no_span(spans, captured):
    fake = FakeBackend(FakeConfig(audit=AuditConfig(capture_code=captured)))
    await everything_with_a_secret(fake)
    exported = [span.to_json() for span in spans.get_finished_spans()]
    assert len(exported) == 13
    assert [text for text in exported if CANARY in text] == []
    assert any("[redacted]" in text for text in exported)


@pytest.mark.parametrize("captured", [False, True])
async def test_code_and_commands_are_shown_only_where_the_host_captures_them(spans, captured):
    fake = FakeBackend(FakeConfig(audit=AuditConfig(capture_code=captured)))
    async with sandboxio.create(fake) as sb:
        await sb.run(["echo", "words"])
        await sb.run_code("print('words')")
    run, code = spans.named("execute_tool run"), spans.named("execute_tool run_code")
    assert run.attributes.get("sandboxio.argv") == (("echo", "words") if captured else None)
    assert code.attributes.get("sandboxio.code") == ("print('words')" if captured else None)
    assert len(str(code.attributes["sandboxio.code.sha256"])) == 64
