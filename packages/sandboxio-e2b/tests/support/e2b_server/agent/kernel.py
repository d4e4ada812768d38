"""The program of one kernel: a Python process that runs cells as the code interpreter's does.

It reads requests from one descriptor and writes messages to another, both as lines of JSON; what the
cell prints goes to descriptors 1 and 2 and is read by the agent.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import builtins
import inspect
import json
import linecache
import os
import signal
import sys
import traceback
import types
from typing import Any

_REPRESENTATIONS = {
    "_repr_html_": "text/html",
    "_repr_markdown_": "text/markdown",
    "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png",
    "_repr_jpeg_": "image/jpeg",
    "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex",
    "_repr_json_": "application/json",
    "_repr_javascript_": "application/javascript",
}
_KEYS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "application/vnd.e2b.data.v1+json": "data",
    "application/vnd.e2b.chart.v1+json": "chart",
}


class StdinNotImplementedError(RuntimeError):
    """A cell asked for input, and there is nobody to answer."""


class Interrupts:
    """What SIGINT does: it ends the cell that runs, and nothing else."""

    def __init__(self) -> None:
        self.task: asyncio.Task[Any] | None = None
        self._in_code = False
        self._held = False
        self._pending = False

    def arm(self) -> None:
        """A cell's own code begins."""
        self._pending = False
        signal.signal(signal.SIGINT, self._handle)
        self._in_code = True

    def disarm(self) -> None:
        """It has ended, whatever it did to the handler."""
        self._in_code = False
        signal.signal(signal.SIGINT, self._handle)

    def hold(self) -> None:
        """Put it off, while a message is written."""
        self._held = True

    def release(self) -> None:
        """Do what was put off."""
        self._held = False
        if self._pending and self._in_code:
            self._pending = False
            raise KeyboardInterrupt

    def _handle(self, *_: object) -> None:
        if not self._in_code:
            return
        if self.task is not None:  # the event loop itself must not be broken, only woken
            self.task.get_loop().call_soon_threadsafe(self.task.cancel)
        elif self._held:
            self._pending = True
        else:
            raise KeyboardInterrupt


class Kernel:
    """Runs cells in one namespace."""

    def __init__(self, requests: int, messages: int) -> None:
        self._requests = requests
        self._messages = messages
        self._pid = os.getpid()
        self._count = 0
        self._interrupts = Interrupts()
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self._names: dict[str, Any] = module.__dict__
        self._names["__builtins__"] = builtins
        builtins.display = self.display  # type: ignore[attr-defined]
        builtins.input = _refuse_input

    async def serve(self) -> None:
        """Run cells until there are no more."""
        self._interrupts.disarm()
        reader = asyncio.StreamReader(limit=2**30)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._requests, "rb", buffering=0)
        )
        while True:
            line = await reader.readline()
            if not line:
                return
            request = json.loads(line)
            await self._run(request["code"], silent=request["silent"])
            self._send({"type": "end"})

    def display(self, *objects: Any, raw: bool = False, **_: Any) -> None:
        """Show objects, as IPython's `display` does."""
        for item in objects:
            self._show(dict(item) if raw else _bundle(item), main=False)

    async def _run(self, code: str, *, silent: bool) -> None:
        if not silent:
            self._count += 1
            self._send({"type": "number_of_executions", "execution_count": self._count})
        name = f"<cell {self._count}>"
        value, failure = None, None
        try:
            self._interrupts.arm()
            value = await self._execute(_dedented(code), name)
        except BaseException as exc:
            failure = exc
        try:
            self._interrupts.disarm()
        except KeyboardInterrupt as exc:  # it came between the code's end and the handler's
            failure = failure or exc
            self._interrupts.disarm()
        if os.getpid() != self._pid:  # a fork that ran out of the cell
            os._exit(0)
        if silent:
            return
        if failure is not None:
            self._fail(failure, name)
        elif value is not None and not code.rstrip().endswith(";"):
            self._names["_"] = value
            self._show(_bundle(value), main=True)

    async def _execute(self, code: str, name: str) -> Any:
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        tree = ast.parse(code, name)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            await self._evaluate(tree, name, "exec")
            return None
        del tree.body[-1]
        await self._evaluate(tree, name, "exec")
        return await self._evaluate(ast.Expression(last.value), name, "eval")

    async def _evaluate(self, tree: ast.AST, name: str, mode: str) -> Any:
        code = compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)  # type: ignore[call-overload]
        value = eval(code, self._names)
        if not code.co_flags & inspect.CO_COROUTINE:
            return value
        self._interrupts.task = asyncio.get_running_loop().create_task(value)
        try:
            return await self._interrupts.task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            self._interrupts.task = None

    def _show(self, bundle: dict[str, Any], *, main: bool) -> None:
        message: dict[str, Any] = {"type": "result", "is_main_result": main}
        extra: dict[str, Any] = {}
        for kind, value in bundle.items():
            if isinstance(value, bytes):
                value = base64.b64encode(value).decode()
            if kind in _KEYS:
                message[_KEYS[kind]] = value
            else:
                extra[kind] = value
        text = message.get("text")
        if isinstance(text, str) and len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
            message["text"] = text[1:-1]
        if extra:
            message["extra"] = extra
        self._send(message)

    def _fail(self, exc: BaseException, name: str) -> None:
        step = exc.__traceback__
        while step is not None and step.tb_frame.f_code.co_filename != name:
            step = step.tb_next
        try:
            value = str(exc)
        except Exception:
            value = "<unprintable>"
        text = "".join(traceback.format_exception(type(exc), exc, step))
        self._send({"type": "error", "name": type(exc).__name__, "value": value, "traceback": text})

    def _send(self, message: dict[str, Any]) -> None:
        view = memoryview(json.dumps(message, default=repr).encode() + b"\n")
        self._interrupts.hold()
        _flush()
        try:
            while view:
                view = view[os.write(self._messages, view) :]
        finally:
            self._interrupts.release()


def _bundle(item: Any) -> dict[str, Any]:
    bundle: dict[str, Any] = {}
    if not isinstance(item, type):
        complete = _represented(item, "_repr_mimebundle_", include=None, exclude=None)
        bundle.update(complete[0] if isinstance(complete, tuple) else complete or {})
        for method, kind in _REPRESENTATIONS.items():
            value = None if kind in bundle else _represented(item, method)
            if value is not None:
                bundle[kind] = value[0] if isinstance(value, tuple) else value
    if "text/plain" not in bundle:
        try:
            bundle["text/plain"] = repr(item)
        except Exception:
            traceback.print_exc()
    return bundle


def _represented(item: Any, method: str, **arguments: Any) -> Any:
    try:
        function = getattr(item, method, None)
        return function(**arguments) if callable(function) else None
    except NotImplementedError:
        return None
    except Exception:
        traceback.print_exc()
        return None


def _dedented(code: str) -> str:
    """Without the first line's indentation, as IPython takes it away."""
    lines = code.splitlines(keepends=True)
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    if not indent:
        return code
    return "".join(line.removeprefix(indent) for line in lines)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the cell may have closed or replaced it
            continue


def _refuse_input(prompt: object = "", /) -> str:
    raise StdinNotImplementedError("raw_input was called, but this frontend does not support input requests.")


def main(arguments: list[str]) -> None:
    """Run a kernel over the two descriptors that the arguments name."""
    requests, messages = int(arguments[0]), int(arguments[1])
    for fd in (requests, messages):
        os.set_inheritable(fd, False)
    sys.argv[:] = [""]
    asyncio.run(Kernel(requests, messages).serve())


if __name__ == "__main__":
    main(sys.argv[1:])
