"""Every fenced sample of the documentation is at least well-formed: Python compiles, data formats parse."""

from __future__ import annotations

import ast
import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^\n`]*\n"
    r"(?P<body>.*?)^(?P=indent)(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    body: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def samples_of(text: str, page: str) -> Iterator[Sample]:
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Sample(page, line, match["language"].lower(), textwrap.dedent(match["body"]))


def pages() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted(ROOT.glob("packages/*/README.md"))
    for folder in ("docs", "examples"):
        yield from sorted((ROOT / folder).rglob("*.md"))


def check_python(body: str) -> None:
    compile(body, "sample", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def check_yaml(body: str) -> None:
    list(yaml.safe_load_all(body))


def check_json_lines(body: str) -> None:
    for line in body.splitlines():
        json.loads(line)


CHECKS: dict[str, Callable[[str], object]] = {
    "python": check_python,
    "py": check_python,
    "yaml": check_yaml,
    "yml": check_yaml,
    "json": json.loads,
    "jsonl": check_json_lines,
    "toml": tomllib.loads,
}
SAMPLES = [
    sample
    for page in pages()
    for sample in samples_of(page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix())
    if sample.language in CHECKS
]


def test_there_are_samples_to_check() -> None:
    assert {"python"} <= {sample.language for sample in SAMPLES}


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_sample_is_well_formed(sample: Sample) -> None:
    CHECKS[sample.language](sample.body)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nif True print(1)\n```\n",
        '```python title="x.py"\nreturn (\n```\n',
        "    ~~~py\n    def broken(:\n    ~~~\n",
        "```yaml\na: [1, 2\n```\n",
        "```json\n{'a': 1}\n```\n",
        "```toml\na = \n```\n",
    ],
)
def test_a_malformed_sample_is_noticed(text: str) -> None:
    (sample,) = samples_of(text, "page.md")
    with pytest.raises((SyntaxError, ValueError, yaml.YAMLError)):
        CHECKS[sample.language](sample.body)


def test_a_sample_may_await_at_its_top_level() -> None:
    check_python("async with create() as sandbox:\n    await sandbox.run('true')\n")
