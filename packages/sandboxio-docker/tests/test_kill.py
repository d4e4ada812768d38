"""The end of one execution is the end of its whole tree, and of nothing else."""

from __future__ import annotations

import anyio
import pytest
from docker_suite.factory import SandboxFactory
from docker_suite.images import BUSYBOX_IMAGE, PYTHON_IMAGE, SHELLLESS_IMAGE

from sandboxio.adapter.sandbox import Sandbox
from sandboxio.errors import ExecutionTimeout, SandboxError, SandboxGone

pytestmark = pytest.mark.docker

LOWER_LIMIT = "(ulimit -x 5 || ulimit -w 5) 2>/dev/null"

ESCAPES = {
    "a child": "sleep 300 & sleep 300",
    "a session of its own": "setsid sleep 300 & sleep 300",
    "a double fork": "(setsid sh -c 'sleep 300 & sleep 300 &' &); sleep 300",
    "an emptied environment": "env -i setsid sleep 300 & sleep 300",
    "a lowered limit": f"{LOWER_LIMIT}; (setsid sh -c 'sleep 300 &' &); sleep 300",
    "fifty children": "i=0; while [ $i -lt 50 ]; do setsid sleep 300 & i=$((i+1)); done; sleep 300",
    "ignored signals": "trap '' TERM HUP INT; setsid sh -c \"trap '' TERM; sleep 300\" & wait",
    "a stopped tree": "setsid sh -c 'kill -STOP $$; sleep 300' & sleep 300",
    "a dead leader's name": "exec sh -c 'setsid sleep 300 & exec sleep 300'",
}

COUNT_SLEEPERS = r"""
count=0
for dir in /proc/[0-9]*; do
    [ "$dir" = /proc/1 ] && continue
    { IFS= read -r line <$dir/stat; } 2>/dev/null || continue
    case $line in *'(sleep) Z'*) ;; *'(sleep)'*) count=$((count + 1)) ;; esac
done
echo $count
"""


async def sleepers(sandbox: Sandbox) -> int:
    return int((await sandbox.run(COUNT_SLEEPERS)).stdout)


@pytest.mark.parametrize("template", [PYTHON_IMAGE, BUSYBOX_IMAGE])
async def test_whatever_a_tree_does_it_ends_with_its_execution(create: SandboxFactory, template: str) -> None:
    sandbox = await create(template=template)
    for escape, command in ESCAPES.items():
        with pytest.raises(ExecutionTimeout):
            await sandbox.run(command, timeout=1)
        assert await sleepers(sandbox) == 0, escape
    assert (await sandbox.run(["echo", "alive"])).stdout == "alive\n"


@pytest.mark.parametrize("template", [PYTHON_IMAGE, BUSYBOX_IMAGE])
async def test_other_executions_and_their_background_children_go_on(
    create: SandboxFactory, template: str
) -> None:
    sandbox = await create(template=template)
    await sandbox.run("setsid sleep 300 >/dev/null 2>&1 & sleep 300 >/dev/null 2>&1 &")
    assert await sleepers(sandbox) == 2
    finished: list[str] = []

    async def innocent() -> None:
        finished.append((await sandbox.run("sleep 2; echo done")).stdout)

    async with anyio.create_task_group() as group:
        group.start_soon(innocent)
        with pytest.raises(ExecutionTimeout):
            await sandbox.run("sleep 300 & setsid sleep 300 & wait", timeout=0.5)
    assert finished == ["done\n"]
    assert await sleepers(sandbox) == 2


BOMBS = {
    "a bomb that stays in its group": "bomb() { bomb | bomb & }; (bomb) 2>/dev/null & while :; do :; done",
    "a bomb of sessions": (
        "import os\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass"
    ),
}


async def test_a_fork_bomb_ends_and_the_sandbox_lives(create: SandboxFactory) -> None:
    sandbox = await create()
    await sandbox.run("sleep 300 >/dev/null 2>&1 &")
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(BOMBS["a bomb that stays in its group"], timeout=1)
    assert await sleepers(sandbox) == 1
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(["python3", "-c", BOMBS["a bomb of sessions"]], timeout=1)
    assert await sleepers(sandbox) == 1
    assert (await sandbox.run("cat /proc/[0-9]*/comm | grep -c python3")).stdout.strip() == "0"


async def test_a_process_cannot_hide_behind_its_name(sandbox: Sandbox) -> None:
    code = (
        "import ctypes, os, time\n"
        "os.setsid() if os.fork() == 0 else None\n"
        "ctypes.CDLL(None).prctl(15, b') Z 1 1\\n1 (x', 0, 0, 0)\n"
        "time.sleep(300)\n"
    )
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(["python3", "-c", code], timeout=1)
    left = await sandbox.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'import ctype[s]'")
    assert left.stdout.strip() == "0"


async def test_in_an_image_without_a_shell_a_timeout_ends_the_sandbox(create: SandboxFactory) -> None:
    sandbox = await create(template=SHELLLESS_IMAGE)
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(["sleep", "300"], timeout=0.5)
    with pytest.raises(SandboxGone):
        await sandbox.run(["echo", "hi"])


BEATING = """
import ctypes, os, resource, threading, time

def beat():
    while True:
        open('/work/beat', 'w').write(str(time.time()))
        time.sleep(0.02)

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(0.2)
        {forgery}
    os._exit(0)
time.sleep(300)
"""

FORGERIES = {
    "a made-up number": "number = 71 * 10**17 + 1; resource.setrlimit(10, (number, number)); beat()",
    "a dead main thread": "threading.Thread(target=beat).start(); ctypes.CDLL(None).syscall(60, 0)",
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_descendant_that_disguises_itself_is_found(sandbox: Sandbox, forgery: str) -> None:
    code = BEATING.format(forgery=FORGERIES[forgery])
    with pytest.raises(ExecutionTimeout):
        await sandbox.run(["python3", "-c", code], timeout=1.5)
    look = "cat /work/beat; sleep 0.5; echo; cat /work/beat"
    before, after = (await sandbox.run(look)).stdout.split()
    assert before == after


SPEAKING_FOR_OTHERS = """
import glob, os, time
end = time.time() + 8
while time.time() < end:
    for fd in glob.glob('/proc/[0-9]*/fd/1'):
        try:
            if b'ready' in open(fd[:-5] + '/cmdline', 'rb').read():
                open(fd, 'w').write('missing\\n')
        except OSError:
            pass
"""


async def test_nobody_can_say_of_another_command_that_it_did_not_start(sandbox: Sandbox) -> None:
    await sandbox.files.write("liar.py", SPEAKING_FOR_OTHERS)
    await sandbox.run("python3 liar.py >/dev/null 2>&1 &")
    silent = anyio.current_time() + 9
    for _ in range(4):
        with pytest.raises(SandboxError) as caught:
            await sandbox.run(["sleep", "301"], timeout=1)
        if isinstance(caught.value, SandboxGone):  # the last resort, when even the end was disturbed
            return
    await anyio.sleep_until(silent)
    assert await sleepers(sandbox) == 0
