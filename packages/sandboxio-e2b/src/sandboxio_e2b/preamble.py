"""What runs in a Python kernel before the caller's code: its number, and its variables.

It takes up no name and no line of the caller's: it is one expression, run in a namespace of its own.
Variables are not given to the code interpreter, which would paste them between single quotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sandboxio.adapter.tree_kill import MARKER_VARIABLE

__all__ = ["HAS_NUMBER", "check_kernel", "number_kernel", "set_variables"]

HAS_NUMBER: Final = "sandboxio: this kernel has its number"

# Linux's number for the limit, for which Python has no name. The kernel's history is kept in memory
# alone, since the next cell holds secrets, which must not reach a file.
_NUMBER: Final = """
import os, resource
if {as_limit}:
    resource.setrlimit(10, ({marker}, {marker}))
else:
    os.environ[{variable!r}] = {marker!r}
try:
    get_ipython().history_manager.enabled = False
except Exception:
    pass
"""

_CHECK: Final = """
import os, resource, sys
if {as_limit}:
    same = resource.getrlimit(10)[1] == {marker}
else:
    same = os.environ.get({variable!r}) == {marker!r}
if same:
    sys.stdout.write({answer!r})
"""

_VARIABLES: Final = """
import os, sys
for name, value in getattr(sys, '_sandboxio_variables', {{}}).items():
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
given = {given!r}
sys._sandboxio_variables = {{name: os.environ.get(name) for name in given}}
os.environ.update(given)
"""


def number_kernel(marker: str, *, as_limit: bool) -> str:
    """Code that puts a kernel, and so all that it will start, under a number.

    Args:
        marker: The number.
        as_limit: Whether it is a limit; otherwise a variable, which what the kernel starts will have.

    Example: `number_kernel(numbers.next(), as_limit=True)`
    """
    return _isolated(_NUMBER.format(marker=marker, variable=MARKER_VARIABLE, as_limit=as_limit))


def check_kernel(marker: str, *, as_limit: bool) -> str:
    """Code that writes `HAS_NUMBER` if the kernel it runs in is the one that was put under the number.

    Example: `check_kernel(marker, as_limit=True)`
    """
    return _isolated(
        _CHECK.format(marker=marker, variable=MARKER_VARIABLE, as_limit=as_limit, answer=HAS_NUMBER)
    )


def set_variables(variables: Mapping[str, str]) -> str:
    """Code that takes back the variables of the last cell and sets those of the next one.

    Example: `set_variables({"TOKEN": "it's secret"})`
    """
    return _isolated(_VARIABLES.format(given=dict(variables)))


def _isolated(code: str) -> str:
    return f"exec({code!r}, {{'get_ipython': globals().get('get_ipython')}})"
