"""The outline of a Python file, from its syntax tree; nothing is run or imported.

Four bindings of operators to Python functions are recognized:

- the name of a function, at the top, in a class or in a function that defines many;
- a table, `{"Conv": Conv, "conv2d.default": self._conv2d, nn.Conv2d: …}`, or one entry set at a time;
- a decorator, `@register_lowering(aten.cat)`, `@register_decomposition([aten.a, aten.b])`;
- a call, `register_pointwise(aten.exp)`, `make_fallback(aten.sort)`, `register_lowering(aten.x)(f)`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache

from fuzzing.prioritize.change.symbols import Outline, Registration, Symbol

#: Names of functions and tables that bind operators, such as register_lowering, make_fallback, convert_map.
_BINDS = re.compile(
    r"regist|lower|decomp|legaliz|convert|fallback|impl|dispatch|_map$|_table$|_ops$", re.IGNORECASE
)
_MIN_TABLE = 4  # entries; smaller dictionaries are mostly keyword arguments, fewer functions helpers
_OPERATOR_ROOTS = frozenset({"aten", "prims", "prim", "quantized", "quantized_decomposed", "inductor_prims"})
_LIBRARY_ROOTS = frozenset({"torch", "nn", "F", "keras", "Ops"})  # Ops.MAX is tinygrad's
_ROOTS = _OPERATOR_ROOTS | _LIBRARY_ROOTS
_NAME = re.compile(r"[A-Za-z_][\w.:]{1,60}\Z")

_WITHOUT_BLOCK = re.compile(r"expected an indented block after .* on line (\d+)")
_MAX_UNREADABLE = 40  # lines of a source; each costs another attempt, of 100 ms for the longest file
_KEPT = 64  # outlines: a change is read once for its order and once for its explanation

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


@lru_cache(maxsize=_KEPT)
def outline(text: str) -> Outline | None:
    """The outline of a Python source, without the statements that this interpreter cannot parse.

    Those are a newer Python's, or cut off in a source of which only a diff's lines are known. None if there
    are too many.
    """
    try:
        tree = _parse(text)
        if tree is None:
            return None
        symbols = list(_symbols(tree.body, ""))
        registrations = list(_registrations(tree))
        code = _code(text, tree)
    except (ValueError, RecursionError, MemoryError):
        return None
    if code and not tree.body:
        return None  # nothing could be parsed
    return Outline(tuple(symbols), tuple(registrations), code)


def _parse(text: str) -> ast.Module | None:
    """The tree of a source without its unreadable lines; None after too many of them."""
    lines = text.split("\n")
    for _ in range(_MAX_UNREADABLE + 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about invalid escapes in its strings
                return ast.parse("\n".join(lines))
        except SyntaxError as error:
            if not _repair(lines, error):
                return None
    return None


def _repair(lines: list[str], error: SyntaxError) -> bool:
    """Makes the line that cannot be parsed empty, or closes a statement whose block is not there."""
    opened = _WITHOUT_BLOCK.search(error.msg)
    at = int(opened[1]) if opened else min(error.lineno or 0, len(lines))
    while at and not lines[at - 1].strip():
        at -= 1  # the error shows at the next statement, or at the end
    if not at:
        return False
    lines[at - 1] = f"{lines[at - 1]} pass" if opened and lines[at - 1].rstrip().endswith(":") else ""
    return True


def _symbols(body: Iterable[ast.stmt], owner: str) -> Iterator[Symbol]:
    for statement in body:
        if isinstance(statement, _Function):
            yield _symbol(statement, statement.name, owner)
            yield from _inner_functions(statement)
        elif isinstance(statement, ast.ClassDef):
            yield from _class(statement)
        elif isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            yield from _symbols(_inner(statement), owner)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield _symbol(statement, target.id, owner)


def _inner_functions(statement: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Symbol]:
    """The functions of one that defines a table of them, each for the operator of its name.

    So does tinygrad's `get_onnx_ops`. Where there are few, they are helpers of that function.
    """
    inner = [one for one in statement.body if isinstance(one, _Function)]
    if len(inner) >= _MIN_TABLE:
        yield from _symbols(inner, "")


def _class(statement: ast.ClassDef) -> Iterator[Symbol]:
    """A class with the mentions of its body outside of methods, and its methods."""
    bases = tuple(name for base in statement.bases if (name := dotted(base).rpartition(".")[2]))
    own = [item for item in statement.body if not isinstance(item, _Function)]
    mentions = frozenset[str]().union(*(_mentions(item) for item in own))
    whole = Symbol(
        statement.name,
        "",
        _first(statement),
        statement.end_lineno or statement.lineno,
        mentions,
        bases,
        _names(statement),
        is_class=True,
    )
    yield whole
    yield from _symbols(statement.body, statement.name)


def _inner(statement: ast.stmt) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(statement, name, ())
    for handler in getattr(statement, "handlers", ()):
        yield from handler.body


def _symbol(node: ast.stmt, name: str, owner: str) -> Symbol:
    is_test = isinstance(node, _Function) and name.startswith("test")
    last = node.end_lineno or node.lineno
    return Symbol(name, owner, _first(node), last, _mentions(node), (), _names(node), is_test=is_test)


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, in any order; twice as fast as `ast.walk`, which keeps one."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        for name in one._fields:
            value = getattr(one, name, None)
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting.extend(item for item in value if isinstance(item, ast.AST))


def _mentions(node: ast.AST) -> frozenset[str]:
    """The names that are read in a node, as in `Symbol.mentions`."""
    found = set()
    for one in _walk(node):
        if isinstance(one, ast.Name):
            found.add(one.id)
        elif isinstance(one, ast.Attribute):
            before = one.value
            if isinstance(before, ast.Call) and dotted(before.func) == "super":
                found.add(f"self.{one.attr}")
            elif isinstance(before, ast.Name):
                found.add(f"{'self' if before.id in ('self', 'cls') else before.id}.{one.attr}")
            else:
                found.add(f"?.{one.attr}")
    return frozenset(found)


def _names(node: ast.AST) -> frozenset[str]:
    """Possible names of operators in a node."""
    found = set()
    for one in _walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and _NAME.match(one.value):
            found.add(one.value)
        elif isinstance(one, ast.Attribute):
            spelled = dotted(one)
            if spelled.split(".")[0] in _ROOTS:
                found.add(spelled)
    return frozenset(found)


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text; "" for any other node."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def _registrations(tree: ast.Module) -> Iterator[Registration]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            yield from _table(node)
        elif isinstance(node, _Function):
            yield from _decorated(node)
        elif isinstance(node, ast.Assign):
            yield from _entry(node)
    for statement in _module_level(tree.body):
        if isinstance(statement, (ast.Expr, ast.Assign)):
            yield from _called(statement)


def _module_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.For, ast.With, ast.Try)):
            yield from _module_level(_inner(statement))


def _table(node: ast.Dict) -> Iterator[Registration]:
    if len(node.keys) < _MIN_TABLE:
        return
    for key, value in zip(node.keys, node.values, strict=True):
        for operator in _operators(key):
            last = value.end_lineno or value.lineno
            yield Registration(operator, _plain(_mentions(value)), key.lineno if key else value.lineno, last)


def _entry(node: ast.Assign) -> Iterator[Registration]:
    """An assignment `convert_map["Conv"] = Conv`."""
    for target in node.targets:
        if isinstance(target, ast.Subscript) and _BINDS.search(dotted(target.value)):
            for operator in _operators(target.slice):
                last = node.end_lineno or node.lineno
                yield Registration(operator, _plain(_mentions(node.value)), node.lineno, last)


def _decorated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Registration]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _BINDS.search(dotted(decorator.func)):
            for argument in decorator.args[:1]:
                for operator in _operators(argument):
                    last = decorator.end_lineno or decorator.lineno
                    yield Registration(operator, frozenset({node.name}), decorator.lineno, last)


def _called(statement: ast.Expr | ast.Assign) -> Iterator[Registration]:
    for call in ast.walk(statement.value):
        if isinstance(call, ast.Call) and call.args and _BINDS.search(dotted(call.func)):
            for operator in _operators(call.args[0]):
                last = statement.end_lineno or statement.lineno
                yield Registration(operator, _plain(_mentions(statement)), statement.lineno, last)


def _operators(node: ast.AST | None) -> Iterator[str]:
    """The operators in a key or an argument: a string, a dotted name, or a list of them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _NAME.match(node.value):
            yield node.value
    elif isinstance(node, ast.Attribute):
        if spelled := dotted(node):
            yield spelled
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for item in node.elts:
            yield from _operators(item)


def _plain(mentions: frozenset[str]) -> frozenset[str]:
    """Mentions without qualifiers: registrations name symbols by their own names."""
    return frozenset(mention.rpartition(".")[2] for mention in mentions)


def _code(text: str, tree: ast.Module) -> frozenset[int]:
    """The lines that hold more than blanks, comments and docstrings."""
    filled = {
        line
        for line, content in enumerate(text.split("\n"), 1)
        if content.strip() and not content.lstrip().startswith("#")
    }
    for node in _walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *_Function)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                filled -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return frozenset(filled)
