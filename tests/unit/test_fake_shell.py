"""The shell of the fake: what it knows, it does as a POSIX shell does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.fake import FakeBackend

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox() -> AsyncIterator[AsyncSandbox]:
    created = await FakeBackend().create(
        template=None,
        resources=None,
        network=None,
        env={"WHO": "a b"},
        secrets=None,
        timeout=300,
        metadata=None,
    )
    async with created as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo one; echo two", "one\ntwo\n"),
        ("true && echo yes || echo no", "yes\n"),
        ("false && echo yes || echo no", "no\n"),
        ("! false && echo negated", "negated\n"),
        ("echo 'a  b'  \"c  d\" e\\ f", "a  b c  d e f\n"),
        ("printf '[%s]' $WHO; printf '[%s]' \"$WHO\"", "[a][b][a b]"),
        ("X=1; echo $X ${X}2 '$X'", "1 12 $X\n"),
        ("X=1 sh -c 'echo $X'; echo \"[$X]\"", "1\n[]\n"),
        ("export X=1; sh -c 'echo $X'", "1\n"),
        ("echo a b c | wc -w | cat", "3\n"),
        ("yes | head -n 2", "y\ny\n"),
        ("echo $(echo inner; echo more)", "inner more\n"),
        ("echo \"$(printf 'x\\n\\n')\"", "x\n"),
        ("(cd /tmp; pwd); pwd", "/tmp\n/work\n"),
        ("{ echo a; echo b; } | cat", "a\nb\n"),
        ("for i in 1 2 3; do printf $i; done", "123"),
        ("if test -d /tmp; then echo dir; else echo none; fi", "dir\n"),
        ("if [ 1 -gt 2 ]; then echo a; elif [ x = x ]; then echo b; fi", "b\n"),
        ("false; echo $?", "1\n"),
        ("sh -c 'exit 3'; echo $?", "3\n"),
        ("sleep 9 & wait; echo done", "done\n"),
        ("sh -c 'echo $1-$2-$#' x one two", "one-two-2\n"),
        ("echo hidden >/dev/null; echo shown # a comment", "shown\n"),
        ("echo out; echo err >&2", "out\n"),
        ("{ echo out; echo err >&2; } 2>&1", "out\nerr\n"),
        ("echo a > f; echo b >> f; cat < f", "a\nb\n"),
        ("touch x1 x2 y; echo x*; echo 'x*'; echo z*", "x1 x2\nx*\nz*\n"),
        ("mkdir -p a/b && cd a/b && pwd && cd .. && pwd", "/work/a/b\n/work/a\n"),
        ("echo data > f; ln -s f g; cat g; rm g; cat f", "data\ndata\n"),
        ("echo abc | tr b x", "axc\n"),
        ("printf 'a\\nb\\nc\\n' | tail -n 2", "b\nc\n"),
        ("printf 'a\\nb\\n' | grep b", "b\n"),
        ("seq 3 | tee f | wc -l; cat f", "3\n1\n2\n3\n"),
        ("echo one two | python3 -c 'import sys\nprint(sys.stdin.read().upper())'", "ONE TWO\n\n"),
        ("printf '#!/bin/sh\\necho script $1\\n' > s; chmod +x s; ./s arg", "script arg\n"),
    ],
)
async def test_a_script_writes(sandbox: AsyncSandbox, script: str, output: str) -> None:
    result = await sandbox.run(script)
    assert result.stdout == output, result.stderr


@pytest.mark.parametrize(
    ("script", "code", "complaint"),
    [
        ("nosuch", 127, "not found"),
        ("nosuch || exit 4", 4, "not found"),
        ("cat missing", 1, "No such file or directory"),
        ("rm missing", 1, "No such file or directory"),
        ("cat < missing", 1, "No such file or directory"),
        ("echo x > missing/file", 1, "No such file or directory"),
        ("cd missing", 1, "No such file or directory"),
        ("mkdir /tmp", 1, "File exists"),
        ("rm /tmp", 1, "Is a directory"),
        ("/tmp", 126, "Is a directory"),
        ("echo 'open", 2, "missing"),
        ("if true", 2, "ends early"),
        ("kill 99999", 1, "no such process"),
    ],
)
async def test_a_script_fails(sandbox: AsyncSandbox, script: str, code: int, complaint: str) -> None:
    result = await sandbox.run(script)
    assert (result.exit_code, result.stdout) == (code, "")
    assert complaint in result.stderr


async def test_a_reader_that_ends_ends_the_writer(sandbox: AsyncSandbox) -> None:
    result = await sandbox.run("yes | head -n 1; echo over")
    assert (result.exit_code, result.stdout) == (0, "y\nover\n")
