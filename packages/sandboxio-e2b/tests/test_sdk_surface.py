"""What the adapter binds to in E2B's SDK, public or not: an SDK that changes it fails here, with its name."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import e2b
import httpx
import pytest
from connectrpc.errors import ConnectError as RpcError
from e2b import exceptions
from e2b.api import handle_api_exception
from e2b.api.client.api.sandboxes import get_v2_sandboxes
from e2b.api.client.models import ListedSandbox
from e2b.api.client.types import Response
from e2b.api.client_async import get_api_client
from e2b.connection_config import ApiParams
from e2b.sandbox.commands.main import ProcessInfo
from e2b.sandbox.filesystem.filesystem import AsyncFileStreamReader
from e2b.sandbox.sandbox_api import SandboxLifecycle, SandboxNetworkOpts
from e2b.sandbox_async.commands.command import Commands
from e2b.sandbox_async.filesystem.filesystem import Filesystem
from e2b_code_interpreter import AsyncSandbox, Context
from e2b_code_interpreter.constants import JUPYTER_PORT
from e2b_code_interpreter.models import aextract_exception

from sandboxio_e2b.handle import EXACT_OUTPUT, Listener

STUBS = Path(__file__).parents[3] / "stubs" / "e2b_code_interpreter"
OPTIONS = {"request_timeout", "retries", "domain"}
KEYWORD = inspect.Parameter.VAR_KEYWORD


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(function).parameters)
    found.pop("self", None)
    return found


def accepts(function: Callable[..., Any], *positional: str, **keywords: Any) -> None:
    """Require that a call with these positional and these keyword arguments means what it says."""
    found = parameters(function)
    assert tuple(found)[: len(positional)] == positional
    options = {name for name, parameter in found.items() if parameter.kind is KEYWORD}
    for name in keywords:
        assert name in found or (options and name in ApiParams.__annotations__), name


@pytest.mark.parametrize(
    ("function", "positional", "keywords"),
    [
        (
            AsyncSandbox.create,
            (),
            {
                "template",
                "timeout",
                "metadata",
                "envs",
                "allow_internet_access",
                "network",
                "lifecycle",
                "idempotency_key",
                *OPTIONS,
            },
        ),
        (AsyncSandbox._cls_connect_sandbox, ("sandbox_id",), {"timeout", *OPTIONS}),
        (AsyncSandbox._cls_kill, ("sandbox_id",), OPTIONS),
        (AsyncSandbox._cls_get_info, ("sandbox_id",), OPTIONS),
        (get_v2_sandboxes.asyncio_detailed, (), {"client", "metadata", "limit", "next_token"}),
        (handle_api_exception, ("e",), set()),
        (get_api_client, ("config",), set()),
        (e2b.ConnectionConfig, (), OPTIONS),
        (AsyncSandbox.kill, (), {"request_timeout"}),
        (AsyncSandbox.is_running, (), {"request_timeout"}),
        (AsyncSandbox.create_code_context, (), {"cwd", "language", "request_timeout"}),
        (AsyncSandbox.list_code_contexts, (), set()),
        (AsyncSandbox.restart_code_context, ("context",), set()),
        (AsyncSandbox.remove_code_context, ("context",), set()),
        (
            Commands.run,
            ("cmd",),
            {
                "background",
                "envs",
                "user",
                "cwd",
                "on_stdout",
                "on_stderr",
                "stdin",
                "timeout",
                "request_timeout",
                "retain_output",
            },
        ),
        (Commands.list, (), {"request_timeout"}),
        (e2b.AsyncCommandHandle.wait, (), set()),
        (e2b.AsyncCommandHandle.disconnect, (), set()),
        (e2b.AsyncCommandHandle.send_stdin, ("data",), {"request_timeout"}),
        (e2b.AsyncCommandHandle.close_stdin, (), set()),
        (Filesystem.read, ("path",), {"format", "stream_idle_timeout"}),
        (Filesystem.write, ("path", "data"), {"user"}),
        (Filesystem.get_info, ("path",), {"request_timeout"}),
        (Filesystem.make_dir, ("path",), set()),
        (Filesystem.remove, ("path",), set()),
        (Filesystem.rename, ("old_path", "new_path"), set()),
        (aextract_exception, ("res",), set()),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_what_is_called_takes_what_it_is_given(
    function: Callable[..., Any], positional: tuple[str, ...], keywords: set[str]
) -> None:
    accepts(function, *positional, **dict.fromkeys(keywords))
    required = {
        name
        for name, parameter in parameters(function).items()
        if parameter.default is parameter.empty and parameter.kind in (0, 1, inspect.Parameter.KEYWORD_ONLY)
    }
    assert required <= {*positional, *keywords}


@pytest.mark.parametrize(
    "function",
    [
        AsyncSandbox.create,
        AsyncSandbox._cls_connect_sandbox,
        AsyncSandbox._cls_kill,
        AsyncSandbox._cls_get_info,
        AsyncSandbox.is_running,
        get_v2_sandboxes.asyncio_detailed,
        AsyncSandbox.create_code_context,
        AsyncSandbox.list_code_contexts,
        AsyncSandbox.restart_code_context,
        AsyncSandbox.remove_code_context,
        Commands.run,
        Commands.list,
        e2b.AsyncCommandHandle.wait,
        e2b.AsyncCommandHandle.disconnect,
        e2b.AsyncCommandHandle.send_stdin,
        e2b.AsyncCommandHandle.close_stdin,
        Filesystem.read,
        Filesystem.write,
        Filesystem.get_info,
        Filesystem.make_dir,
        Filesystem.remove,
        Filesystem.rename,
        aextract_exception,
    ],
    ids=lambda function: function.__qualname__,
)
def test_what_is_awaited_can_be(function: Callable[..., Any]) -> None:
    assert inspect.iscoroutinefunction(function)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (ListedSandbox, {"sandbox_id", "metadata", "started_at", "end_at", "state"}),
        (Response, {"status_code", "content", "headers", "parsed"}),
    ],
)
def test_a_listing_tells_what_is_read_in_it(kind: type[Any], fields: set[str]) -> None:
    assert fields <= kind.__annotations__.keys()


@pytest.mark.parametrize("name", ["connect", "kill", "get_info"])
def test_what_a_class_does_goes_to_the_method_that_is_pinned(name: str) -> None:
    variant = inspect.getattr_static(AsyncSandbox, name)
    target = "_cls_connect_sandbox" if name == "connect" else f"_cls_{name}"
    assert variant.class_method_name == target


@pytest.mark.parametrize("option", sorted(OPTIONS))
def test_an_option_of_every_call_is_known(option: str) -> None:
    assert option in ApiParams.__annotations__


@pytest.mark.parametrize("key", ["allow_out", "deny_out", "allow_public_traffic", "dns_servers"])
def test_a_rule_of_the_network_is_known(key: str) -> None:
    assert key in SandboxNetworkOpts.__annotations__


def test_what_happens_at_the_end_of_the_lifetime_can_be_chosen() -> None:
    assert "on_timeout" in SandboxLifecycle.__annotations__


@pytest.mark.parametrize(
    "name",
    [
        "sandbox_id",
        "traffic_access_token",
        "commands",
        "files",
        "_client",
        "_jupyter_url",
        "_envd_access_token",
    ],
)
def test_a_sandbox_has_the_property(name: str) -> None:
    assert isinstance(inspect.getattr_static(AsyncSandbox, name), property)


def test_the_address_of_the_code_interpreter_is_built_from_what_the_sdk_knows() -> None:
    assert JUPYTER_PORT == 49999
    assert inspect.getattr_static(AsyncSandbox, "_client").fget.__annotations__["return"] is httpx.AsyncClient
    assert AsyncSandbox.default_template == "code-interpreter-v1"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (
            e2b.SandboxInfo,
            {"sandbox_id", "template_id", "name", "metadata", "started_at", "end_at", "state"},
        ),
        (e2b.EntryInfo, {"name", "type", "size", "mode", "modified_time", "symlink_target"}),
        (e2b.CommandExitException, {"stdout", "stderr", "exit_code", "error"}),
        (e2b.CommandResult, {"stdout", "exit_code"}),
        (ProcessInfo, {"envs"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_record_has_the_fields(kind: type[Any], fields: set[str]) -> None:
    assert fields <= {field.name for field in dataclasses.fields(kind)}


def test_the_words_for_kinds_and_states_are_the_ones_that_are_compared_with() -> None:
    assert e2b.FileType.DIR.value == "dir"
    assert e2b.SandboxState.RUNNING.value == "running"
    assert Context("c1", "python", "/").id == "c1"


def test_a_streamed_file_is_an_iterator_that_is_closed_with_a_block() -> None:
    for name in ("__aiter__", "__anext__", "__aenter__", "__aexit__"):
        assert callable(getattr(AsyncFileStreamReader, name))


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("TimeoutException", "SandboxException"),
        ("SandboxNotRunningException", "TimeoutException"),
        ("SandboxUnreachableException", "TimeoutException"),
        ("InvalidArgumentException", "SandboxException"),
        ("NotEnoughSpaceException", "SandboxException"),
        ("NotFoundException", "SandboxException"),
        ("FileNotFoundException", "NotFoundException"),
        ("SandboxNotFoundException", "NotFoundException"),
        ("TemplateException", "SandboxException"),
        ("RateLimitException", "SandboxException"),
        ("GuestUnresponsiveException", "SandboxException"),
        ("AuthenticationException", "Exception"),
        ("ServiceBusyException", "Exception"),
        ("SandboxException", "Exception"),
    ],
)
def test_the_tree_of_exceptions(name: str, base: str) -> None:
    expected = Exception if base == "Exception" else getattr(exceptions, base)
    assert getattr(exceptions, name).__bases__ == (expected,)


def test_an_exit_is_an_exception_of_the_sandbox_and_a_status_is_told_of_most() -> None:
    assert issubclass(e2b.CommandExitException, exceptions.SandboxException)
    assert exceptions.SandboxException("why").status_code is None
    assert exceptions.SandboxException("why", status_code=404).status_code == 404
    assert issubclass(RpcError, Exception)


class TestExactOutput:
    """The decoders of a handle, which the adapter replaces."""

    def test_this_sdk_lets_bytes_through(self) -> None:
        assert EXACT_OUTPUT is True

    def test_every_byte_arrives(self) -> None:
        from e2b.envd.process import process_pb
        from protobuf import Oneof

        every = bytes(range(256))

        async def events() -> Any:
            for stream in ("stdout", "stderr"):
                data = process_pb.ProcessEvent.DataEvent(output=Oneof(stream, every))
                yield process_pb.StartResponse(event=process_pb.ProcessEvent(event=Oneof("data", data)))
            end = process_pb.ProcessEvent.EndEvent(exit_code=0, exited=True, status="exit status 0")
            yield process_pb.StartResponse(event=process_pb.ProcessEvent(event=Oneof("end", end)))

        async def main() -> dict[str, bytes]:
            async def kill() -> bool:
                return True

            listener = Listener("word")
            handle: e2b.AsyncCommandHandle[Any] = e2b.AsyncCommandHandle(
                7, kill, events(), listener.stdout, listener.stderr, retain_output=False
            )
            listener.attach(handle)
            assert handle.pid == 7
            assert (await handle.wait()).exit_code == 0
            await listener.end(None)
            found = {"stdout": b"", "stderr": b""}
            while (chunk := await listener.feed.take()) is not None:
                found[chunk.stream] += chunk.data
            return found

        assert asyncio.run(main()) == {"stdout": every, "stderr": every}


def stubbed() -> list[tuple[str, str, ast.stmt]]:
    """Every definition of the stubs: its module, its qualified name, its node."""
    found: list[tuple[str, str, ast.stmt]] = []
    for path in sorted(STUBS.glob("*.pyi")):
        module = "e2b_code_interpreter" + ("" if path.stem == "__init__" else f".{path.stem}")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.append((module, node.name, node))
                found += [(module, f"{node.name}.{_name(item)}", item) for item in node.body if _name(item)]
            elif _name(node):
                found.append((module, _name(node), node))
    return found


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def test_the_stubs_are_read() -> None:
    names = {name for _, name, _ in stubbed()}
    assert {
        "AsyncSandbox",
        "AsyncSandbox.create",
        "Context.id",
        "JUPYTER_PORT",
        "aextract_exception",
    } <= names


@pytest.mark.parametrize(
    ("module", "name", "node"), stubbed(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_stubs_describe_the_sdk(module: str, name: str, node: ast.stmt) -> None:
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    if isinstance(node, ast.AnnAssign):
        assert hasattr(owner, last) or last in getattr(owner, "__annotations__", {})
        return
    static = inspect.getattr_static(owner, last)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        decorators = {item.id for item in node.decorator_list if isinstance(item, ast.Name)}
        assert isinstance(static, property) == ("property" in decorators)
        if "property" not in decorators:
            function = getattr(owner, "_cls_connect_sandbox" if last == "connect" else last)
            _require_compatible(node, function, bound="classmethod" in decorators)


def _require_compatible(
    node: ast.FunctionDef | ast.AsyncFunctionDef, function: Callable[..., Any], *, bound: bool
) -> None:
    assert inspect.iscoroutinefunction(function) == isinstance(node, ast.AsyncFunctionDef)
    arguments = [argument.arg for argument in node.args.args]
    if bound or arguments[:1] == ["self"]:
        arguments = arguments[1:]
    found = parameters(function)
    for argument in arguments:
        assert argument in found, argument
    required = {name for name, parameter in found.items() if parameter.default is parameter.empty}
    optional = arguments[len(arguments) - len(node.args.defaults) :]
    assert not required & set(optional)
    assert not {name for name in required if found[name].kind is not KEYWORD} - set(arguments)
    if node.args.kwarg is not None:
        assert any(parameter.kind is KEYWORD for parameter in found.values())
