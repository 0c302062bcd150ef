"""Seeds from the examples of torch's docstrings, several one after another.

A call that only makes a tensor becomes an input. Of the other statements those are kept that are expressions
of torch's functions and methods alone, so that an example has no other effect.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from functools import cache

import torch

from fuzzing.mutate.programs.seeds import REFUSALS, Seed, register_seed_kind
from fuzzing.mutate.programs.straight_line import StraightLine, is_usable
from fuzzing.rng import Rng

#: Examples of a seed: most have one to three statements.
_EXAMPLES = (2, 5)
_MODULES = ("torch", "torch.Tensor", "torch.nn.functional", "torch.special", "torch.fft")
_MAKERS = frozenset(
    {"torch.arange", "torch.complex", "torch.eye", "torch.full", "torch.linspace", "torch.ones", "torch.rand"}
    | {"torch.randint", "torch.randn", "torch.randperm", "torch.tensor", "torch.zeros"}
)
#: Functions that set something, need more than this process has, write to an operand, or jump.
_LEFT_OUT = re.compile(
    r"(set|use|get|is|save|load|seed|manual|initial|cuda|jit|compile|hub|sparse|quant|fake|rand|empty|to_|from)_?.*"
    r"|.*[^_]_|.*(svd|eig|qr|lu|cholesky|lstsq|pinv|solve|inv|det|sort|topk|median|mode|unique|arg|round|floor)"
    r"|.*(ceil|trunc|frac|sign|remainder|fmod|hist|bucketize|searchsorted|nonzero|dropout|bernoulli|backward)"
    r"|numpy|tolist|item|register_hook|requires_grad|grad|cpu|data|share_memory|multinomial|normal|poisson|tan"
)
_ALLOWED = (
    *(
        ast.Call,
        ast.Attribute,
        ast.Name,
        ast.Constant,
        ast.List,
        ast.Tuple,
        ast.UnaryOp,
        ast.BinOp,
        ast.Subscript,
    ),
    *(ast.Slice, ast.keyword, ast.Load, ast.operator, ast.unaryop),
)


@register_seed_kind("documentation")
def make_examples(seed: int) -> Seed | None:
    """Some examples as one program; None if none can be used."""
    rng, program = Rng(seed), StraightLine()
    for _ in range(rng.between(*_EXAMPLES)):
        torch.default_generator.manual_seed(rng.seed())
        _add_example(program, rng.choice(_examples()))
    return program.finish() if len(program) > 1 else None


@cache
def _examples() -> tuple[tuple[ast.stmt, ...], ...]:
    """The statements of each docstring with examples, in the order of the names."""
    texts = dict.fromkeys(_docstrings())
    found = (tuple(_statements(text)) for text in texts)
    return tuple(statements for statements in found if statements)


def _docstrings() -> Iterator[str]:
    for module in _MODULES:
        owner = torch
        for part in module.split(".")[1:]:
            owner = getattr(owner, part)
        for name in sorted(dir(owner)):
            text = "" if name.startswith("_") else getattr(getattr(owner, name, None), "__doc__", "")
            if isinstance(text, str) and ">>>" in text:
                yield text


def _statements(docstring: str) -> Iterator[ast.stmt]:
    try:
        examples = doctest.DocTestParser().get_examples(docstring)
        for example in examples:
            yield from (
                node for node in ast.parse(example.source).body if isinstance(node, (ast.Assign, ast.Expr))
            )
    except (ValueError, SyntaxError):  # an example that is not Python
        return


def _add_example(program: StraightLine, statements: tuple[ast.stmt, ...]) -> None:
    """Adds the statements that can be used; a variable of one that cannot is unknown to the next."""
    names: dict[str, str] = {}
    for statement in statements:
        assert isinstance(statement, (ast.Assign, ast.Expr))
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""
        if len(targets) > 1 or (targets and not name):
            continue
        names.pop(name, None)
        value = _Inputs(program, names).visit(ast.parse(ast.unparse(statement.value), mode="eval").body)
        if isinstance(value, ast.Name):
            names[name] = value.id
        elif _is_plain(value, program):
            try:
                added = program.add(ast.unparse(value))
            except REFUSALS:
                continue
            if added is not None:
                names[name] = added


class _Inputs(ast.NodeTransformer):
    """Turns calls that make tensors into inputs, and the example's variables into the program's."""

    def __init__(self, program: StraightLine, names: dict[str, str]) -> None:
        self._program, self._names = program, names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A name, if the call makes a tensor from numbers."""
        given = [*node.args, *(item.value for item in node.keywords)]
        literal = all(
            not isinstance(inner, ast.Name) or inner.id == "torch" for one in given for inner in ast.walk(one)
        )
        if (
            ast.unparse(node.func) in _MAKERS
            and literal
            and not any(isinstance(one, ast.Starred) for one in given)
        ):
            try:
                tensor = eval(ast.unparse(node), {"torch": torch})  # noqa: S307 - numbers and torch's own maker
            except REFUSALS:
                return node
            if is_usable(tensor):
                return ast.Name(self._program.add_input(tensor), ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The program's name; one that it lacks for a variable that is unknown."""
        return node if node.id == "torch" else ast.Name(self._names.get(node.id, "unknown"), ast.Load())


def _is_plain(value: ast.expr, program: StraightLine) -> bool:
    for node in ast.walk(value):
        if not isinstance(node, _ALLOWED):
            return False
        if isinstance(node, ast.Name) and node.id != "torch" and node.id not in program.values:
            return False
        if isinstance(node, ast.Attribute) and (node.attr.startswith("_") or _LEFT_OUT.fullmatch(node.attr)):
            return False
        if isinstance(node, ast.keyword) and node.arg in (
            "out",
            "generator",
            "inplace",
            "device",
            "requires_grad",
            None,
        ):
            return False
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute):
            return False
    return any(isinstance(node, ast.Name) and node.id != "torch" for node in ast.walk(value))
