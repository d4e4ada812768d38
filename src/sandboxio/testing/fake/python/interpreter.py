"""A very small Python: literals, arithmetic, control flow and a few calls, evaluated over the virtual kernel.

Source text is parsed by `ast` and walked here. Nothing of it is compiled or executed by the host.
What is outside of the subset is refused before anything runs, by the name of the construct.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

from sandboxio.testing.fake.machine.calls import Body, Call, Exited, NotSimulatedError, OutOfMemoryError, Tick
from sandboxio.testing.fake.machine.process import Process
from sandboxio.testing.fake.python.builtin_names import builtin_names
from sandboxio.testing.fake.python.modules import import_module
from sandboxio.testing.fake.python.operations import COMPARE, CONVERSIONS, UNARY, binary, is_one_of, kind_of
from sandboxio.testing.fake.python.things import METHODS, Native, Thing

__all__ = ["run_python"]

Value = Generator[Call, Any, Any]
Steps = Generator[Call, Any, None]

_LONGEST_RANGE: Final = 1_000_000

_ERROR_ATTRIBUTES: Final = ("args", "code", "errno", "strerror", "reason")
_STATEMENTS: Final = (
    *(ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.alias),
    *(ast.If, ast.For, ast.While, ast.Try, ast.ExceptHandler, ast.With, ast.withitem, ast.Raise, ast.Assert),
    *(ast.Pass, ast.Break, ast.Continue),
)
_EXPRESSIONS: Final = (
    *(ast.Constant, ast.Name, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.UnaryOp, ast.BoolOp),
    *(ast.Compare, ast.IfExp, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Subscript, ast.Slice),
    *(ast.Attribute, ast.Call, ast.keyword, ast.ListComp, ast.GeneratorExp, ast.comprehension),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


class _BreakLoop(Exception):
    pass


class _ContinueLoop(Exception):
    pass


def run_python(source: str, variables: dict[str, Any] | None = None) -> Callable[[Process], Body]:
    """The program that source text is to the interpreter.

    Args:
        source: The text.
        variables: The global variables of a context that lasts; new ones for each run by default.

    Raises:
        NotSimulatedError: It uses a part of the language that the fake does not know.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as exc:
        lines = traceback.format_exception_only(exc)
        return _failing("".join(lines))
    for node in ast.walk(tree):
        if not isinstance(node, _STATEMENTS + _EXPRESSIONS):
            raise NotSimulatedError(f"Python's {type(node).__name__}")

    def program(process: Process) -> Body:
        interpreter = _Interpreter(process, {} if variables is None else variables)
        try:
            yield from interpreter.block(tree.body)
        except SystemExit as leaving:
            if leaving.code is None or isinstance(leaving.code, int):
                return (leaving.code or 0) & 0xFF
            yield from process.write(2, f"{leaving.code}\n".encode())
            return 1
        except (Exited, NotSimulatedError, OutOfMemoryError, BrokenPipeError):
            raise
        except Exception as exc:
            text = "".join(traceback.format_exception_only(exc))
            where = f'  File "<stdin>", line {interpreter.line}, in <module>\n'
            report = f"Traceback (most recent call last):\n{where}{text}"
            yield from process.write(2, report.encode("utf-8", "backslashreplace"))
            return 1
        return 0

    return program


def _failing(text: str) -> Callable[[Process], Body]:
    def program(process: Process) -> Body:
        yield from process.write(2, text.encode("utf-8", "backslashreplace"))
        return 1

    return program


class _Interpreter:
    """Walks the statements of one run."""

    def __init__(self, process: Process, variables: dict[str, Any]) -> None:
        self._process = process
        self._variables = variables
        self._builtins = builtin_names(process)
        self.line = 0

    def block(self, statements: Iterable[ast.stmt]) -> Steps:
        """Execute statements one after the other."""
        for statement in statements:
            self.line = statement.lineno
            handler: Callable[[Any], Steps] = getattr(self, f"_do_{type(statement).__name__.lower()}")
            yield from handler(statement)

    def _do_expr(self, node: ast.Expr) -> Steps:
        yield from self._value(node.value)

    def _do_pass(self, node: ast.Pass) -> Steps:
        yield from ()

    def _do_break(self, node: ast.Break) -> Steps:
        yield from ()
        raise _BreakLoop

    def _do_continue(self, node: ast.Continue) -> Steps:
        yield from ()
        raise _ContinueLoop

    def _do_assign(self, node: ast.Assign) -> Steps:
        value = yield from self._value(node.value)
        for target in node.targets:
            yield from self._bind(target, value)

    def _do_annassign(self, node: ast.AnnAssign) -> Steps:
        if node.value is not None:
            yield from self._bind(node.target, (yield from self._value(node.value)))

    def _do_augassign(self, node: ast.AugAssign) -> Steps:
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        old = yield from self._value(load)
        new = yield from self._value(node.value)
        yield from self._bind(node.target, binary(node.op, old, new))

    def _do_import(self, node: ast.Import) -> Steps:
        yield from ()
        for alias in node.names:
            found = import_module(self._process, alias.name)
            root = import_module(self._process, alias.name.partition(".")[0])
            self._variables[alias.asname or root.name] = found if alias.asname else root

    def _do_importfrom(self, node: ast.ImportFrom) -> Steps:
        yield from ()
        if node.level or node.module is None:
            raise NotSimulatedError("Python's relative imports")
        found = import_module(self._process, node.module)
        for alias in node.names:
            self._variables[alias.asname or alias.name] = found.attribute(alias.name)

    def _do_if(self, node: ast.If) -> Steps:
        yield from self.block(node.body if (yield from self._value(node.test)) else node.orelse)

    def _do_while(self, node: ast.While) -> Steps:
        while (yield from self._value(node.test)):
            yield Tick()
            try:
                yield from self.block(node.body)
            except _ContinueLoop:
                continue
            except _BreakLoop:
                return
        yield from self.block(node.orelse)

    def _do_for(self, node: ast.For) -> Steps:
        for item in (yield from self._value(node.iter)):
            yield Tick()
            yield from self._bind(node.target, item)
            try:
                yield from self.block(node.body)
            except _ContinueLoop:
                continue
            except _BreakLoop:
                return
        yield from self.block(node.orelse)

    def _do_try(self, node: ast.Try) -> Steps:
        try:
            try:
                yield from self.block(node.body)
            except (Exited, NotSimulatedError, OutOfMemoryError, _BreakLoop, _ContinueLoop):
                raise
            except (Exception, SystemExit) as exc:
                yield from self._handle(node.handlers, exc)
            else:
                yield from self.block(node.orelse)
        finally:
            yield from self.block(node.finalbody)

    def _handle(self, handlers: list[ast.ExceptHandler], exc: BaseException) -> Steps:
        for handler in handlers:
            kind = BaseException if handler.type is None else (yield from self._value(handler.type))
            if isinstance(exc, kind):
                if handler.name is not None:
                    self._variables[handler.name] = exc
                yield from self.block(handler.body)
                return
        raise exc

    def _do_with(self, node: ast.With) -> Steps:
        opened: list[Thing] = []
        for item in node.items:
            thing = yield from self._value(item.context_expr)
            if not isinstance(thing, Thing) or "close" not in thing.attributes:
                raise TypeError(
                    f"{type(thing).__name__!r} object does not support the context manager protocol"
                )
            opened.append(thing)
            if item.optional_vars is not None:
                yield from self._bind(item.optional_vars, thing)
        yield from self.block(node.body)
        for thing in reversed(opened):
            yield from self._call(thing.attribute("close"), [], {})

    def _do_raise(self, node: ast.Raise) -> Steps:
        if node.exc is None:
            raise RuntimeError("No active exception to reraise")
        raised = yield from self._value(node.exc)
        if isinstance(raised, type) and issubclass(raised, BaseException):
            raised = raised()
        if not isinstance(raised, BaseException):
            raise TypeError("exceptions must derive from BaseException")
        raise raised

    def _do_assert(self, node: ast.Assert) -> Steps:
        if not (yield from self._value(node.test)):
            raise AssertionError(*([] if node.msg is None else [(yield from self._value(node.msg))]))

    def _bind(self, target: ast.expr, value: Any) -> Steps:
        if isinstance(target, ast.Name):
            self._variables[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = list(value)
            if len(values) != len(target.elts):
                raise ValueError(f"cannot unpack {len(values)} values into {len(target.elts)}")
            for element, item in zip(target.elts, values, strict=True):
                yield from self._bind(element, item)
        elif isinstance(target, ast.Subscript):
            container = yield from self._value(target.value)
            container[(yield from self._value(target.slice))] = value
        else:
            raise NotSimulatedError("Python's assignment to an attribute")

    def _value(self, node: ast.expr) -> Value:
        handler: Callable[[Any], Value] = getattr(self, f"_of_{type(node).__name__.lower()}")
        return (yield from handler(node))

    def _values(self, nodes: Iterable[ast.expr]) -> Generator[Call, Any, list[Any]]:
        values: list[Any] = []
        for node in nodes:
            values.append((yield from self._value(node)))  # noqa: PERF401 -- no yield in a comprehension
        return values

    def _of_constant(self, node: ast.Constant) -> Value:
        yield from ()
        return node.value

    def _of_name(self, node: ast.Name) -> Value:
        yield from ()
        if node.id in self._variables:
            return self._variables[node.id]
        if node.id in self._builtins:
            return self._builtins[node.id]
        raise NameError(f"name {node.id!r} is not defined")

    def _of_joinedstr(self, node: ast.JoinedStr) -> Value:
        return "".join((yield from self._values(node.values)))

    def _of_formattedvalue(self, node: ast.FormattedValue) -> Value:
        value = yield from self._value(node.value)
        if node.conversion != -1:
            value = CONVERSIONS[node.conversion](value)
        spec = "" if node.format_spec is None else (yield from self._value(node.format_spec))
        if any(len(digits) > 4 for digits in "".join(c if c.isdigit() else " " for c in spec).split()):
            raise NotSimulatedError("Python's very wide formats")
        return format(value, spec)

    def _of_binop(self, node: ast.BinOp) -> Value:
        left = yield from self._value(node.left)
        return binary(node.op, left, (yield from self._value(node.right)))

    def _of_unaryop(self, node: ast.UnaryOp) -> Value:
        return UNARY[type(node.op)]((yield from self._value(node.operand)))

    def _of_boolop(self, node: ast.BoolOp) -> Value:
        value: Any = None
        for operand in node.values:
            value = yield from self._value(operand)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _of_compare(self, node: ast.Compare) -> Value:
        left = yield from self._value(node.left)
        for kind, operand in zip(node.ops, node.comparators, strict=True):
            right = yield from self._value(operand)
            if not COMPARE[type(kind)](left, right):
                return False
            left = right
        return True

    def _of_ifexp(self, node: ast.IfExp) -> Value:
        return (yield from self._value(node.body if (yield from self._value(node.test)) else node.orelse))

    def _of_list(self, node: ast.List) -> Value:
        return (yield from self._values(node.elts))

    def _of_tuple(self, node: ast.Tuple) -> Value:
        return tuple((yield from self._values(node.elts)))

    def _of_set(self, node: ast.Set) -> Value:
        return set((yield from self._values(node.elts)))

    def _of_dict(self, node: ast.Dict) -> Value:
        items: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise NotSimulatedError("Python's dictionary unpacking")
            name = yield from self._value(key)
            items[name] = yield from self._value(value)
        return items

    def _of_subscript(self, node: ast.Subscript) -> Value:
        container = yield from self._value(node.value)
        if not is_one_of(container, str, bytes, list, tuple, dict, range):
            raise TypeError(f"{type(container).__name__!r} object is not subscriptable")
        found: Any = container[(yield from self._value(node.slice))]
        return found

    def _of_slice(self, node: ast.Slice) -> Value:
        bounds: list[Any] = []
        for bound in (node.lower, node.upper, node.step):
            value = None if bound is None else (yield from self._value(bound))
            bounds.append(value)
        return slice(*bounds)

    def _of_attribute(self, node: ast.Attribute) -> Value:
        thing: Any = yield from self._value(node.value)
        kind = kind_of(thing)
        if kind is Thing:
            return thing.attribute(node.attr)
        if is_one_of(thing, BaseException) and node.attr in _ERROR_ATTRIBUTES:
            return getattr(thing, node.attr)
        if is_one_of(thing, type) and node.attr == "__name__":
            return thing.__name__
        if node.attr in METHODS.get(kind, ()):
            return Native(node.attr, getattr(thing, node.attr))
        raise AttributeError(f"{kind.__name__!r} object has no attribute {node.attr!r}")

    def _of_call(self, node: ast.Call) -> Value:
        called = yield from self._value(node.func)
        arguments = yield from self._values(node.args)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise NotSimulatedError("Python's argument unpacking")
            keywords[keyword.arg] = yield from self._value(keyword.value)
        return (yield from self._call(called, arguments, keywords))

    def _call(self, called: Any, arguments: list[Any], keywords: dict[str, Any]) -> Value:
        for argument in arguments:
            if isinstance(argument, range) and len(argument) > _LONGEST_RANGE:
                raise NotSimulatedError("Python's calls with a very long range")
        if is_one_of(called, Native):
            result: Any = called.function(*arguments, **keywords)
            if not is_one_of(result, Generator):
                return result
            waiting: Value = result
            return (yield from waiting)
        if is_one_of(called, type) and issubclass(called, BaseException):
            return called(*arguments)
        raise TypeError(f"{type(called).__name__!r} object is not callable")

    def _of_listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        if len(node.generators) != 1 or node.generators[0].is_async:
            raise NotSimulatedError("Python's nested comprehensions")
        loop = node.generators[0]
        values: list[Any] = []
        for item in (yield from self._value(loop.iter)):
            yield Tick()
            yield from self._bind(loop.target, item)
            if all((yield from self._values(loop.ifs))):
                values.append((yield from self._value(node.elt)))
        return values

    _of_generatorexp = _of_listcomp
