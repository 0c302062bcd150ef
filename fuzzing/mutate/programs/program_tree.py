"""A torch program as a concrete syntax tree: its blocks, their statements, and edits of them.

Statements are named by what they say, not by where they are: an assignment by its targets ("v7", "v8, v9"),
any other statement by its first line. A name therefore still finds its statement after edits elsewhere.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import libcst as cst

Statement = cst.BaseStatement
_SCOPES = (
    ast.FunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_LEAVES = (
    *(ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global),
    ast.Delete,  # a function around it could not return the variable
)


@dataclass(frozen=True)
class Block:
    """An indented run of statements inside `forward`.

    number      in textual order of the blocks
    function    the number of the body block of the innermost function that it belongs to
    parameters  of that function
    """

    number: int
    node: cst.IndentedBlock
    function: int
    parameters: frozenset[str]

    @property
    def statements(self) -> Sequence[Statement]:
        """Its statements, in order."""
        return self.node.body


@dataclass(frozen=True)
class StatementNames:
    """The names that a statement uses.

    reads    anywhere in it, nested functions included
    binds    in its own scope, for good: assigned, looped over, defined, imported, but not `except … as`
    stores   binds, and variables whose elements or attributes it assigns
    leaves   whether it may end its block early, declares names of other scopes, unbinds one or calls `super`,
             which finds its class in no function but the method
    """

    reads: frozenset[str]
    binds: frozenset[str]
    stores: frozenset[str]
    leaves: bool


@dataclass(frozen=True)
class ProgramTree:
    """A program whose outermost function is `forward`.

    codes  texts of statements that are known; shared by the programs of a chain of edits
    """

    module: cst.Module
    codes: dict[Statement, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> ProgramTree:
        """The tree of a text; raises libcst.ParserSyntaxError."""
        return cls(cst.parse_module(text))

    @cached_property
    def text(self) -> str:
        """The program's text."""
        return self.module.code

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of `forward`, outermost first; bodies of classes are left out."""
        blocks: list[Block] = []
        for statement in self.module.body:
            if isinstance(statement, cst.FunctionDef) and statement.name.value == "forward":
                _collect_blocks(statement, blocks, 0, frozenset())
        return tuple(blocks)

    @cached_property
    def forward_parameters(self) -> tuple[str, ...]:
        """The parameters of `forward`, in order."""
        return tuple(
            parameter.name.value
            for statement in self.module.body
            if isinstance(statement, cst.FunctionDef) and statement.name.value == "forward"
            for parameter in statement.params.params
        )

    def code(self, statement: Statement) -> str:
        """The text of a statement, without the indentation of its block."""
        if statement not in self.codes:
            self.codes[statement] = self.module.code_for_node(statement).strip("\n")
        return self.codes[statement]

    def names(self, statement: Statement) -> StatementNames:
        """The names that a statement uses."""
        return analyze(self.code(statement))

    def name(self, statement: Statement) -> str:
        """What the statement is called: its targets, or its first line."""
        return _name(self.code(statement))

    def find(self, name: str) -> tuple[Block, int] | None:
        """The block and index of the statement of this name; None if there is none, or more than one."""
        found = self._places.get(name, ())
        return found[0] if len(found) == 1 else None

    @cached_property
    def _places(self) -> Mapping[str, Sequence[tuple[Block, int]]]:
        found: dict[str, list[tuple[Block, int]]] = {}
        for block in self.blocks:
            for index, statement in enumerate(block.statements):
                found.setdefault(self.name(statement), []).append((block, index))
        return found

    def replace(self, block: Block, statements: Sequence[Statement]) -> ProgramTree:
        """The program with other statements in a block; none at all becomes `pass`."""
        body = list(statements) or parse_statements("pass")
        module = _replace(self.module, block.node, block.node.with_changes(body=body))
        assert isinstance(module, cst.Module)
        return ProgramTree(module, self.codes)

    @cached_property
    def functions(self) -> Mapping[str, frozenset[str]]:
        """The local functions by name, with every name that they read, through other local functions too.

        A variable that holds a lambda or a generator is one: both read when they are used.
        """
        direct = {
            name: self.names(statement).reads
            for block in self.blocks
            for statement in block.statements
            for name in _defined(statement, self.code(statement))
        }
        return {name: _close(reads, direct) for name, reads in direct.items()}

    @cached_property
    def nonlocals(self) -> frozenset[str]:
        """The variables that some function assigns in another function's scope."""
        return frozenset(
            name
            for node in ast.walk(ast.parse(self.text))
            if isinstance(node, ast.Nonlocal)
            for name in node.names
        )

    def insert_before_forward(self, statements: Sequence[Statement]) -> ProgramTree:
        """The program with outermost statements just before `forward`."""
        body = self.module.body
        place = next(
            index
            for index, statement in enumerate(body)
            if isinstance(statement, cst.FunctionDef) and statement.name.value == "forward"
        )
        module = self.module.with_changes(body=[*body[:place], *statements, *body[place:]])
        return ProgramTree(module, self.codes)

    def reads_deep(self, statement: Statement) -> frozenset[str]:
        """The names that a statement reads, with those read by the local functions that it names."""
        return _close(self.names(statement).reads, self.functions)


def parse_statements(text: str, **runs: Sequence[Statement]) -> list[Statement]:
    """The statements of a text. A line that is only the name of a run stands for the run's statements."""
    body: list[Statement] = []
    for statement in cst.parse_module(text).body:
        filled = statement.visit(_RunInserter(runs)) if runs else statement
        placeholder = _placeholder(statement)
        if placeholder in runs:
            body += runs[placeholder]
        else:
            assert isinstance(filled, cst.BaseStatement)
            body.append(filled)
    return body


@lru_cache(maxsize=4096)
def analyze(code: str) -> StatementNames:
    """The names that a statement's text uses."""
    tree = ast.parse(code)
    everything = list(ast.walk(tree))
    reads = {node.id for node in everything if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    reads |= {
        node.target.id
        for node in everything
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    binds = frozenset(_bound(tree))
    stores = {
        root
        for node in everything
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store)
        if (root := _root(node))
    }
    leaves = any(
        isinstance(node, _LEAVES) or (isinstance(node, ast.Name) and node.id == "super")
        for node in _own_scope(tree)
    )
    return StatementNames(frozenset(reads), binds, binds | stores, leaves)


@lru_cache(maxsize=4096)
def count_bindings(code: str) -> Counter[str]:
    """How often a text binds each name in its own scope."""
    return Counter(_bound(ast.parse(code)))


def _defined(statement: Statement, code: str) -> frozenset[str]:
    """The local functions that a statement defines."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return frozenset({statement.name.value})
    return _lazy_variables(code) if isinstance(statement, cst.SimpleStatementLine) else frozenset()


@lru_cache(maxsize=4096)
def _lazy_variables(code: str) -> frozenset[str]:
    """The variables to which a text assigns a lambda or a generator itself."""
    return frozenset(
        target.id
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Lambda, ast.GeneratorExp))
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _own_scope(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree, without the insides of functions, classes and comprehensions."""
    for child in ast.iter_child_nodes(tree):
        yield child
        if not isinstance(child, _SCOPES):
            yield from _own_scope(child)


def _bound(tree: ast.AST) -> Iterator[str]:
    for node in _own_scope(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]


@lru_cache(maxsize=4096)
def _name(code: str) -> str:
    node = ast.parse(code).body[0]
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        items = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [item.id for item in items if isinstance(item, ast.Name)]
        if len(names) == len(items):
            return ", ".join(names)
    return code.split("\n", 1)[0].strip()


def _close(reads: frozenset[str], functions: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The names, with those that the functions among them read."""
    seen: set[str] = set()
    waiting = list(reads)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += functions.get(name, ())
    return frozenset(seen)


#: Where a statement holds blocks, in textual order; in libcst and in ast.
BLOCK_FIELDS = ("body", "handlers", "orelse", "finalbody")


def _collect_blocks(
    node: cst.CSTNode, blocks: list[Block], function: int, parameters: frozenset[str]
) -> None:
    """Adds the blocks of a statement to the list, in textual order."""
    own = isinstance(node, cst.FunctionDef)
    if isinstance(node, cst.FunctionDef):
        function, parameters = len(blocks), _parameters(node)
    for inner in _inner_nodes(node):
        if isinstance(inner, cst.IndentedBlock) and (own or not isinstance(node, cst.ClassDef)):
            blocks.append(Block(len(blocks), inner, function, parameters))
        _collect_blocks(inner, blocks, function, parameters)


def _inner_nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statements, blocks and clauses directly inside a node."""
    for name in BLOCK_FIELDS:
        inner = getattr(node, name, None)
        if isinstance(inner, cst.CSTNode) and not isinstance(inner, cst.BaseExpression):
            yield inner
        elif isinstance(inner, (list, tuple)):
            yield from inner


def _replace(node: cst.CSTNode, old: cst.CSTNode, new: cst.CSTNode) -> cst.CSTNode | None:
    """The node with one of its blocks replaced; None if it is not in it. All other nodes stay the same."""
    if node is old:
        return new
    for name in BLOCK_FIELDS:
        inner = getattr(node, name, None)
        items = inner if isinstance(inner, (list, tuple)) else [inner]
        for place, item in enumerate(items):
            if isinstance(item, (cst.BaseExpression, cst.BaseSmallStatement)) or item is None:
                continue
            changed = _replace(item, old, new)
            if changed is not None and item is inner:
                return node.with_changes(**{name: changed})
            if changed is not None:
                return node.with_changes(**{name: [*items[:place], changed, *items[place + 1 :]]})
    return None


def _parameters(function: cst.FunctionDef) -> frozenset[str]:
    given = function.params
    listed = [*given.posonly_params, *given.params, *given.kwonly_params]
    listed += [star for star in (given.star_arg, given.star_kwarg) if isinstance(star, cst.Param)]
    return frozenset(parameter.name.value for parameter in listed)


class _RunInserter(cst.CSTTransformer):
    """Puts runs of statements in place of their names."""

    def __init__(self, runs: Mapping[str, Sequence[Statement]]) -> None:
        super().__init__()
        self._runs = runs

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        """Fills the blocks of the text."""
        if not isinstance(updated_node, cst.IndentedBlock):
            return super().on_leave(original_node, updated_node)
        body: list[Statement] = []
        for statement in updated_node.body:
            body += self._runs.get(_placeholder(statement), [statement])
        return updated_node.with_changes(body=body or parse_statements("pass"))


def _placeholder(statement: cst.BaseStatement | cst.BaseSmallStatement) -> str:
    """The name that is all a statement says; "" if it says more."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        if isinstance(only, cst.Expr) and isinstance(only.value, cst.Name):
            return only.value.value
    return ""
