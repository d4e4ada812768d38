"""A Griffe extension: the example of a docstring is shown as code on the reference pages.

The docstrings write an example as an indented block below `Example:`. Left alone, the site would set it as a
paragraph, without its lines and indents.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

EXAMPLE = re.compile(r"^Example:\n(?P<body>(?: {4}.*\n|[ \t]*\n)+)", re.MULTILINE)


def with_code_blocks(docstring: str) -> str:
    """Return a docstring whose examples are fenced blocks."""

    def fenced(match: re.Match[str]) -> str:
        return f"**Example**\n\n```python\n{textwrap.dedent(match['body']).strip()}\n```\n\n"

    return EXAMPLE.sub(fenced, f"{docstring}\n").rstrip()


class DocstringExamples(griffe.Extension):
    """Rewrites the docstring of each object as it is read."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = with_code_blocks(obj.docstring.value)
