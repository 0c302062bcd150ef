"""Variables of expressions: those that are read, and other expressions in their places."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TypeAlias

_Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"


def replace_variables(value: str, expressions: Mapping[str, str]) -> str:
    """The expression with other expressions in place of variables.

    Parameters of lambdas and targets of comprehensions are variables of their own and stay.
    """
    parsed = {name: ast.parse(text, mode="eval").body for name, text in expressions.items()}
    return ast.unparse(_Replacer(parsed).visit(ast.parse(value, mode="eval").body))


class _Replacer(ast.NodeTransformer):
    def __init__(self, expressions: Mapping[str, ast.expr]) -> None:
        self._expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._expressions.get(node.id, node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        given = node.args
        given.defaults = [self.visit(item) for item in given.defaults]
        given.kw_defaults = [item and self.visit(item) for item in given.kw_defaults]
        own = {argument.arg for argument in ast.walk(given) if isinstance(argument, ast.arg)}
        node.body = self._without(own).visit(node.body)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return self._replace_in_comprehension(node)
        return super().generic_visit(node)

    def _replace_in_comprehension(self, node: _Comprehension) -> ast.AST:
        # The first iterable belongs to the scope around; whatever else binds a name hides it everywhere.
        first = node.generators[0]
        iterable = self.visit(first.iter)
        bound = {
            name.id
            for part in node.generators
            for name in ast.walk(part.target)
            if isinstance(name, ast.Name)
        }
        first.iter = ast.Constant(None)
        super(_Replacer, self._without(bound)).generic_visit(node)
        first.iter = iterable
        return node

    def _without(self, names: set[str]) -> _Replacer:
        return _Replacer({name: one for name, one in self._expressions.items() if name not in names})
