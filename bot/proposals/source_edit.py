"""Adds a test to a Python file through its syntax tree.

`merge` takes a whole small module: imports, and a function or a class with a method. What the file lacks is
put where it belongs: names into existing `from` imports, methods into the existing class, the rest before
`if __name__ == "__main__"`. A test that is there and expected to fail loses that mark if the addition has
none. Everything else stays as it is, byte by byte, and merging twice changes nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TypeVar

import libcst as cst
from libcst.helpers import get_full_name_for_node

from bot.errors import RefusalError
from bot.proposals.imports import add_import

Definition = cst.FunctionDef | cst.ClassDef
Imports = TypeVar("Imports", cst.Import, cst.ImportFrom)


class NameTakenError(RefusalError):
    """The file has another test of this name."""


def merge(before: str, addition: str, reformat: Callable[[str], str], first_party: str = "") -> str:
    """The file with the addition.

    reformat     formats one statement, an import that grew
    first_party  the package of the repository, whose imports come last
    Raises NameTakenError, and RefusalError if the file is not Python of this version.
    """
    try:
        module = cst.parse_module(before)
    except cst.ParserSyntaxError as error:
        raise RefusalError(f"the file of the tests cannot be parsed: {error.message}") from error
    added = _without_known_classes(module, cst.parse_module(addition))
    for statement in added.body:
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            module = _add_definition(module, statement, added)
        elif _is_import(statement):
            module = add_import(module, statement, reformat, first_party)
    return module.code


def defined_names(source: str) -> frozenset[str]:
    """The names of functions and classes at the top of a file; none if it cannot be parsed."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(
        node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef))
    )


def prune_imports(source: str) -> str:
    """The module without the imports, and imported names, that it does not use."""
    module = cst.parse_module(source)
    code = "".join(module.code_for_node(one) for one in module.body if not _is_import(one))
    return module.visit(_Pruner(code)).code


class _Pruner(cst.CSTTransformer):
    """Removes the imports that a code does not use."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}

    def leave_Import(  # noqa: N802 (libcst's naming)
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> cst.Import | cst.RemovalSentinel:
        del original_node
        return self._kept(updated_node)

    def leave_ImportFrom(  # noqa: N802 (libcst's naming)
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.RemovalSentinel:
        del original_node
        if isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        return self._kept(updated_node)

    def _kept(self, node: Imports) -> Imports | cst.RemovalSentinel:
        assert not isinstance(node.names, cst.ImportStar)
        names = [alias for alias in node.names if self._is_used(alias)]
        if not names:
            return cst.RemovalSentinel.REMOVE
        names[-1] = names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return node.with_changes(names=names)

    def _is_used(self, alias: cst.ImportAlias) -> bool:
        """Whether the code has the name; of `import a.b`, which binds `a`, whether it has `a.b`."""
        if alias.evaluated_alias is None and "." in alias.evaluated_name:
            return alias.evaluated_name in self._code
        return (alias.evaluated_alias or alias.evaluated_name) in self._used


def _is_import(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(
        statement.body[0], (cst.Import, cst.ImportFrom)
    )


def _add_definition(module: cst.Module, new: Definition, added: cst.Module) -> cst.Module:
    there = _find(module.body, new.name.value)
    if there is None:
        return _append(module, new)
    if isinstance(new, cst.ClassDef) and isinstance(there, cst.ClassDef):
        return module.with_deep_changes(there, body=_add_methods(module, there, new, added).body)
    return module.with_deep_changes(there, decorators=_merged(module, there, added, new).decorators)


def _without_known_classes(module: cst.Module, added: cst.Module) -> cst.Module:
    """The addition without the imports that only the heads of classes need which the file has."""
    bodies = []
    for statement in added.body:
        if isinstance(statement, cst.ClassDef) and _find(module.body, statement.name.value) is not None:
            bodies.append(cst.ensure_type(statement.body, cst.IndentedBlock).body)
        elif isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            bodies.append([statement])
    code = "".join(added.code_for_node(one) for body in bodies for one in body)
    return added.visit(_Pruner(code))


def _append(module: cst.Module, new: Definition) -> cst.Module:
    """The module with a definition before its last `if __name__ == …`, else at its end."""
    body = list(module.body)
    at = len(body)
    if body and _is_main_guard(body[-1]):
        at -= 1
    blank = [cst.EmptyLine(indent=False)] * 2
    kept = [line for line in new.leading_lines if line.comment is not None]
    body.insert(at, new.with_changes(leading_lines=[*blank, *kept] if at else kept))
    footer = module.footer if at + 1 < len(body) else [line for line in module.footer if line.comment]
    return module.with_changes(body=body, footer=footer)


def _add_methods(
    module: cst.Module, there: cst.ClassDef, new: cst.ClassDef, added: cst.Module
) -> cst.ClassDef:
    block = there.body
    if not isinstance(block, cst.IndentedBlock):
        raise RefusalError(f"class {there.name.value} has no block of its own to add a test to")
    body = list(block.body)
    for method in new.body.body:
        if not isinstance(method, cst.FunctionDef):
            continue
        known = _find(body, method.name.value)
        if known is None:
            body.append(method.with_changes(leading_lines=[cst.EmptyLine(indent=False)]))
        elif method.name.value.startswith("test"):
            body[body.index(known)] = _merged(module, known, added, method)
    return there.with_changes(body=block.with_changes(body=body))


def _find(body: Sequence[cst.CSTNode], name: str) -> Definition | None:
    for statement in body:
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and statement.name.value == name:
            return statement
    return None


def _merged(module: cst.Module, there: Definition, added: cst.Module, new: Definition) -> Definition:
    """What is there if it is equal to the new one, without its mark if that makes it equal.

    Raises NameTakenError for another definition.
    """
    want = ast.dump(_parsed(added, new))
    unmarked = there.with_changes(decorators=[one for one in there.decorators if not _expects_failure(one)])
    for one in (there, unmarked):
        if ast.dump(_parsed(module, one)) == want:
            return one
    raise NameTakenError(f"there is another {new.name.value}")


def _expects_failure(decorator: cst.Decorator) -> bool:
    """Whether it is `unittest.expectedFailure`."""
    name = get_full_name_for_node(decorator.decorator) or ""
    return name.rpartition(".")[2] == "expectedFailure"


def _parsed(module: cst.Module, definition: Definition) -> ast.Module:
    return ast.parse(module.code_for_node(definition.with_changes(leading_lines=[])))


def _is_main_guard(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.If) or not isinstance(statement.test, cst.Comparison):
        return False
    return isinstance(statement.test.left, cst.Name) and statement.test.left.value == "__name__"
