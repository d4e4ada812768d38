"""The very small Python of the fake: what it knows, it does as Python does."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sandboxio.errors import CapabilityNotSupported, ResourceLimitExceeded
from sandboxio.protocols import AsyncSandbox
from sandboxio.testing.fake import FakeBackend

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox() -> AsyncIterator[AsyncSandbox]:
    created = await FakeBackend().create(
        template=None,
        resources=None,
        network=None,
        env={"WHO": "me"},
        secrets=None,
        timeout=300,
        metadata=None,
    )
    async with created as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print(6 * 7, 7 // 2, 2 ** 10, -1 % 3)", "42 3 1024 2\n"),
        ("x = 1\nx += 2\nprint(f'{x:03d} {x!r:>3}')", "003   3\n"),
        ("a, (b, c) = 1, (2, 3)\nprint(a + b + c)", "6\n"),
        ("d = {'a': [1, 2]}\nd['b'] = d['a'][::-1]\nprint(d, len(d))", "{'a': [1, 2], 'b': [2, 1]} 2\n"),
        ("print([i * i for i in range(5) if i % 2], sum(i for i in range(4)))", "[1, 9] 6\n"),
        ("for i in range(5):\n    if i == 3: break\n    if i == 1: continue\n    print(i)", "0\n2\n"),
        ("n = 0\nwhile n < 3:\n    n += 1\nelse:\n    print('end', n)", "end 3\n"),
        ("print('yes' if 1 < 2 <= 2 and not None else 'no', 3 in (1, 2))", "yes False\n"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print('got', e)", "got division by zero\n"),
        ("try:\n    {}['x']\nexcept (KeyError, IndexError) as e:\n    print(e.args)", "('x',)\n"),
        ("try:\n    x = 1\nexcept OSError:\n    pass\nelse:\n    print(1)\nfinally:\n    print(2)", "1\n2\n"),
        ("import os\nprint(os.environ.get('WHO'), os.environ['WHO'], os.getcwd())", "me me /work\n"),
        ("import sys\nsys.stdout.write('raw')\nsys.stdout.buffer.write(b'\\xe2\\x98\\x95')", "raw☕"),
        ("with open('f', 'w') as f:\n    f.write('text')\nprint(open('f').read())", "text\n"),
        ("import json\nprint(json.dumps({'a': [1, None]}))", '{"a": [1, null]}\n'),
        ("import math\nprint(math.floor(math.pi))", "3\n"),
        ("from math import sqrt\nprint(sqrt(9))", "3.0\n"),
        ("import time\nt = time.time()\ntime.sleep(60)\nprint(time.time() - t)", "60.0\n"),
        (
            "import subprocess\nr = subprocess.run(['echo', 'x'], capture_output=True)\nprint(r.stdout)",
            "b'x\\n'\n",
        ),
        ("import subprocess\nprint(subprocess.run('exit 3', shell=True).returncode)", "3\n"),
        ("print('a,b'.split(','), ' x '.strip().upper(), b'\\x00'.hex())", "['a', 'b'] X 00\n"),
        ("print(type(1 / 2).__name__, isinstance('x', (int, str)))", "float True\n"),
        ("assert 1 == 1, 'never'\nprint(__name__)", "__main__\n"),
    ],
)
async def test_code_writes(sandbox: AsyncSandbox, code: str, output: str) -> None:
    result = await sandbox.run_code(code)
    assert (result.stdout, result.stderr) == (output, "")
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("code", "exit_code", "complaint"),
    [
        ("import sys\nsys.exit(3)", 3, ""),
        ("import sys\nsys.exit('sorry')", 1, "sorry"),
        ("raise SystemExit", 0, ""),
        ("print(1)\nraise ValueError('bad')", 1, "line 2, in <module>\nValueError: bad"),
        ("missing", 1, "NameError: name 'missing' is not defined"),
        ("print('open", 1, "SyntaxError"),
        ("assert False, 'why'", 1, "AssertionError: why"),
        ("'x'.__class__", 1, "AttributeError"),
        ("print(1 + 'x')", 1, "TypeError"),
        ("open('missing')", 1, "FileNotFoundError"),
        ("input()", 1, "EOFError"),
    ],
)
async def test_code_fails(sandbox: AsyncSandbox, code: str, exit_code: int, complaint: str) -> None:
    result = await sandbox.run_code(code)
    assert result.exit_code == exit_code
    assert complaint in result.stderr


async def test_more_memory_than_there_is_ends_the_code(sandbox: AsyncSandbox) -> None:
    with pytest.raises(ResourceLimitExceeded, match="1024"):
        await sandbox.run_code("x = [0] * 10 ** 9")


@pytest.mark.parametrize("code", ["2 ** 10 ** 8", "1 << 10 ** 9", "sum(range(10 ** 9))", "f'{1:1000000000}'"])
async def test_what_would_be_a_burden_to_the_host_is_refused(sandbox: AsyncSandbox, code: str) -> None:
    with pytest.raises(CapabilityNotSupported):
        await sandbox.run_code(code)


@pytest.mark.parametrize(
    "code",
    [
        "().__class__.__base__.__subclasses__()",
        "print.function",
        "import os\nos.system('id')",
        "__import__('os')",
        "eval('1')",
        "import sys\nsys.modules",
        "'{0.__class__}'.format(1)",
    ],
)
async def test_there_is_no_way_to_the_hosts_python(sandbox: AsyncSandbox, code: str) -> None:
    try:
        result = await sandbox.run_code(code)
    except CapabilityNotSupported:
        return
    assert result.exit_code == 1
    assert "Error" in result.stderr
