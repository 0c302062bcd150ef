"""Edits programs as syntax trees: what may be removed, and what remains necessary. Nothing is run."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence

Function = ast.FunctionDef
_BUILT_IN = frozenset(dir(builtins)) | {"torch"}  # torch is provided, whether the program imports it or not


def find_forward(tree: ast.Module) -> Function | None:
    """The compiled function: `forward`, or that of `class Model`."""
    for node in tree.body:
        body = node.body if isinstance(node, ast.ClassDef) and node.name == "Model" else [node]
        for item in body:
            if isinstance(item, ast.FunctionDef) and item.name == "forward":
                return item
    return None


def parameters(function: Function) -> list[ast.arg]:
    """The parameters that are inputs."""
    given = function.args.args
    return given[1:] if given and given[0].arg == "self" else given


def returned_names(function: Function) -> list[str] | None:
    """The names that it returns at its end; None if it returns anything but names."""
    last = function.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
    names = [item.id for item in items if isinstance(item, ast.Name)]
    return names if names and len(names) == len(items) else None


def set_returned_names(function: Function, names: Sequence[str]) -> None:
    """Makes it return these names at its end."""
    loads: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    value = loads[0] if len(loads) == 1 else ast.Tuple(loads, ast.Load())
    function.body[-1] = ast.Return(value)


def removable_statements(tree: ast.Module) -> list[ast.stmt]:
    """Statements that may be removed, in textual order: not `import torch`, the function, its class or its
    return.
    """
    forward = find_forward(tree)
    fixed: set[ast.stmt] = {
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"
    }
    if forward is not None:
        fixed.add(forward)
        if isinstance(forward.body[-1], ast.Return):
            fixed.add(forward.body[-1])
    return [node for node in _iter_statements(tree) if node not in fixed and not _is_torch_import(node)]


def count(tree: ast.Module) -> int:
    """Number of statements, without `import torch`."""
    return sum(isinstance(node, ast.stmt) and not _is_torch_import(node) for node in ast.walk(tree))


def _iter_statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _iter_statements(child)


def _is_torch_import(node: ast.AST) -> bool:
    """Whether it is `import torch`, without which the text does not run."""
    return isinstance(node, ast.Import) and [(n.name, n.asname) for n in node.names] == [("torch", None)]


class StatementRemover(ast.NodeTransformer):
    """Removes statements, and blocks that become empty."""

    def __init__(self, gone: Collection[ast.stmt]) -> None:
        self._gone = set(gone)

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """None for a removed node, else the node or its replacement."""
        if isinstance(node, ast.stmt) and node in self._gone:
            return None
        self.generic_visit(node)
        if isinstance(node, ast.ExceptHandler) and not node.body:
            node.body = [ast.Pass()]
        if isinstance(node, ast.stmt) and getattr(node, "body", None) == []:
            rest: list[ast.stmt] = getattr(node, "orelse", [])
            return rest or None
        return node


def block_bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies of a block, each a possible replacement."""
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name):
        yield [ast.Assign([node.target], ast.Constant(0)), *node.body]
    if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
        yield node.body
    if isinstance(node, ast.If) and node.orelse:
        yield node.orelse


def replace_node(tree: ast.Module, old: ast.AST, new: ast.AST | list[ast.stmt]) -> None:
    """Replaces one node by another, or by some statements."""

    class NodeReplacer(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
            if node is old:
                return new
            self.generic_visit(node)
            return node

    NodeReplacer().visit(tree)


# Names


def read_names(node: ast.AST) -> list[str]:
    """The distinct names that are read, in a fixed order."""
    found: dict[str, None] = {}
    for item in ast.walk(node):
        name = item.target if isinstance(item, ast.AugAssign) else item
        if isinstance(name, ast.Name) and (name is not item or not isinstance(name.ctx, ast.Store)):
            found[name.id] = None
    return list(found)


def bound_names(node: ast.AST) -> list[str]:
    """The distinct names that are bound inside: assigned, looped over, defined."""
    found: dict[str, None] = {}
    for item in ast.walk(node):
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            found[item.id] = None
        elif isinstance(item, ast.arg):
            found[item.arg] = None
        elif isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            found[item.name] = None
        elif isinstance(item, ast.alias):
            found[(item.asname or item.name).split(".")[0]] = None
    return list(found)


def rename(node: ast.AST, names: Mapping[str, str]) -> None:
    """Renames variables and parameters."""
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            item.id = names.get(item.id, item.id)
        elif isinstance(item, ast.arg):
            item.arg = names.get(item.arg, item.arg)


def unbound_names(tree: ast.Module, function: Function) -> list[str]:
    """Names that the function reads and nothing binds."""
    outside = {name for node in tree.body for name in _bound_by(node)}
    known = {*outside, *_BUILT_IN, *bound_names(function)}
    return [name for name in read_names(function) if name not in known]


def _bound_by(node: ast.stmt) -> list[str]:
    """Names that an outermost statement binds in the module."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    return bound_names(node)


def remove_dead_assignments(function: Function) -> None:
    """Removes assignments that are never read."""
    while True:
        used = set(read_names(function))
        dead = [node for node in function.body if (name := assigned_name(node)) and name not in used]
        if not dead:
            return
        function.body = [node for node in function.body if node not in dead]


def assigned_name(node: ast.stmt) -> str:
    """The one name that a statement assigns; "" for any other statement."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def loops_can_end(tree: ast.Module) -> bool:
    """Whether each `while` can end: something in it changes its condition, or leaves it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.While):
            leaves = any(isinstance(item, (ast.Break, ast.Return, ast.Raise)) for item in ast.walk(node))
            changed = {name for item in node.body for name in bound_names(item)}
            calls = any(isinstance(item, ast.Call) for item in ast.walk(node.test))
            if not leaves and not calls and changed.isdisjoint(read_names(node.test)):
                return False
    return True


# Expressions

_WITH_OPERANDS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript)


def operands(node: ast.AST) -> list[ast.expr]:
    """The expressions that may replace one: its operands, in order."""
    if not isinstance(node, _WITH_OPERANDS) or isinstance(getattr(node, "ctx", None), ast.Store):
        return []
    if isinstance(node, ast.Call):
        function = node.func
        method = isinstance(function, ast.Attribute) and not _is_module(function.value)
        owner = [function.value] if isinstance(function, ast.Attribute) and method else []
        return [*owner, *(item for item in node.args if not isinstance(item, ast.Starred))]
    if isinstance(node, ast.Subscript):
        return [node.value]
    return [item for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr)]


def _is_module(node: ast.expr) -> bool:
    """Whether it is `torch`, `torch.nn.functional`, `F`, `self`, which are not values."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in {"torch", "self", "F", "nn", "np"}
