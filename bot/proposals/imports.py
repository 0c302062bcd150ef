"""Adds imports to a module where its own order puts them."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable, Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node

Import = cst.Import | cst.ImportFrom
Key = Callable[[str], tuple[object, ...]]

#: Sections of imports in order, as isort has them.
_FUTURE, _STANDARD, _THIRD, _FIRST, _LOCAL = range(5)


def add_import(
    module: cst.Module, statement: cst.BaseStatement, reformat: Callable[[str], str], first_party: str
) -> cst.Module:
    """The module with the import, unless it binds all those names already."""
    assert isinstance(statement, cst.SimpleStatementLine)
    new = statement.body[0]
    assert isinstance(new, (cst.Import, cst.ImportFrom))
    missing = _missing(module, new)
    if not missing:
        return module
    if isinstance(new, cst.ImportFrom):
        for line, there in _imports(module):
            if isinstance(there, cst.ImportFrom) and _module_of(there) == _module_of(new):
                if isinstance(there.names, cst.ImportStar):
                    continue
                return module.with_deep_changes(
                    line, body=_grown(there, missing, reformat), leading_lines=line.leading_lines
                )
    kept = new.with_changes(names=_separated(missing))
    return _insert(module, cst.SimpleStatementLine([kept]), kept, first_party)


def _missing(module: cst.Module, new: Import) -> list[cst.ImportAlias]:
    assert not isinstance(new.names, cst.ImportStar)
    known = {text for _, there in _imports(module) for text in _texts(there)}
    return [alias for alias in new.names if _text(new, alias) not in known]


def _texts(there: Import) -> list[str]:
    return [] if isinstance(there.names, cst.ImportStar) else [_text(there, one) for one in there.names]


def _text(statement: Import, alias: cst.ImportAlias) -> str:
    of = _module_of(statement) if isinstance(statement, cst.ImportFrom) else ""
    return f"{of}:{alias.evaluated_name}:{alias.evaluated_alias or ''}"


def _module_of(statement: Import) -> str:
    if isinstance(statement, cst.Import):
        return statement.names[0].evaluated_name
    dots = "." * len(statement.relative)
    return dots + (get_full_name_for_node(statement.module) or "" if statement.module else "")


def _imports(module: cst.Module) -> list[tuple[cst.SimpleStatementLine, Import]]:
    """The imports among the outermost statements."""
    return [
        (statement, statement.body[0])
        for statement in module.body
        if isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], (cst.Import, cst.ImportFrom))
    ]


def _separated(names: Sequence[cst.ImportAlias]) -> list[cst.ImportAlias]:
    return [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in names]


def _grown(
    there: cst.ImportFrom, missing: list[cst.ImportAlias], reformat: Callable[[str], str]
) -> Sequence[cst.BaseSmallStatement]:
    """The import with further names, in the order in which it has its own."""
    assert not isinstance(there.names, cst.ImportStar)
    names = list(there.names)
    spelled = [one.evaluated_name for one in names]
    key = next((one for one in _ORDERS if sorted(spelled, key=one) == spelled), None)
    for alias in missing:
        at = len(names)
        if key is not None:
            at = bisect.bisect([key(one.evaluated_name) for one in names], key(alias.evaluated_name))
        names.insert(at, alias)
    grown = there.with_changes(names=_separated(names), lpar=None, rpar=None)
    text = reformat(cst.Module([cst.SimpleStatementLine([grown])]).code)
    statement = cst.parse_module(text).body[0]
    assert isinstance(statement, cst.SimpleStatementLine)
    return statement.body


def _isort(name: str) -> tuple[object, ...]:
    """Isort's default: constants, classes, then the rest."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name)


_ORDERS: tuple[Key, ...] = (_isort, lambda name: (name.lower(), name), lambda name: (name,))


def _insert(module: cst.Module, line: cst.SimpleStatementLine, new: Import, first_party: str) -> cst.Module:
    body = list(module.body)
    at, after_blank = _position(module, new, first_party)
    if at < len(body) and not at and isinstance(body[0], cst.SimpleStatementLine):
        after_blank = False
    section_starts = after_blank and at > 0
    line = line.with_changes(leading_lines=[cst.EmptyLine(indent=False)] if section_starts else [])
    follower = body[at] if at < len(body) else None
    if (
        isinstance(follower, cst.SimpleStatementLine)
        and not section_starts
        and _takes_place(module, at, new, first_party)
    ):
        line = line.with_changes(leading_lines=follower.leading_lines)
        body[at] = follower.with_changes(leading_lines=[])
    body.insert(at, line)
    return module.with_changes(body=body)


def _takes_place(module: cst.Module, at: int, new: Import, first_party: str) -> bool:
    """Whether the import becomes the first of the section that the statement at `at` began."""
    there = _import_at(module, at)
    return there is not None and _section(there, first_party) == _section(new, first_party)


def _import_at(module: cst.Module, at: int) -> Import | None:
    statement = module.body[at]
    if isinstance(statement, cst.SimpleStatementLine) and isinstance(
        statement.body[0], (cst.Import, cst.ImportFrom)
    ):
        return statement.body[0]
    return None


def _position(module: cst.Module, new: Import, first_party: str) -> tuple[int, bool]:
    """The index for a new import, and whether it starts a section of its own."""
    placed = [
        (index, one) for index in range(len(module.body)) if (one := _import_at(module, index)) is not None
    ]
    if not placed:
        return _after_docstring(module), True
    section = _section(new, first_party)
    same = [(index, one) for index, one in placed if _section(one, first_party) == section]
    if same:
        smaller = [index for index, one in same if _order(one) < _order(new)]
        return (smaller[-1] + 1, False) if smaller else (same[0][0], False)
    lower = [index for index, one in placed if _section(one, first_party) < section]
    return (lower[-1] + 1, True) if lower else (placed[0][0], False)


def _after_docstring(module: cst.Module) -> int:
    return 1 if module.get_docstring() is not None else 0


def _section(statement: Import, first_party: str) -> int:
    name = _module_of(statement)
    root = name.partition(".")[0]
    if name.startswith("."):
        return _LOCAL
    if root == "__future__":
        return _FUTURE
    if root in sys.stdlib_module_names:
        return _STANDARD
    return _FIRST if root == first_party else _THIRD


def _order(statement: Import) -> tuple[bool, str]:
    """Plain imports first, each kind by its module."""
    return isinstance(statement, cst.ImportFrom), _module_of(statement).lower()
