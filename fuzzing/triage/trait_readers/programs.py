"""The traits of torch programs: what they call and what feeds it, read from the text; nothing is run.

`y = torch.add(x, x); return y.relu()` has the pattern `relu(add)`, and so has `torch.relu(x + x)`: what
Python's operators, torch's functions and tensors' methods of one name do is one thing. Names of variables,
the order of statements and the split into statements make no difference.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fuzzing.cases import Recipe, Tensor, TestCase, TorchProgram
from fuzzing.cases.arguments import argument_to_json
from fuzzing.errors import CaseFormatError
from fuzzing.prioritize.api_signatures import api_signatures, resolve
from fuzzing.prioritize.call_binding import default_to_json
from fuzzing.triage.traits import Traits, dtype_class, dtypes_of, register_traits, shape_needs

#: Characters of a pattern; longer ones are digests, as for graphs.
_MAX_PATTERN = 120

#: Python's operators, by torch's names for what they do to tensors (torch.Tensor.__add__ and the like).
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.LShift: "bitwise_left_shift",
    ast.RShift: "bitwise_right_shift",
    ast.USub: "neg",
    ast.Invert: "bitwise_not",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
#: Where functions and methods are looked for by their bare name.
_NAMESPACES = ("torch", "torch.nn.functional", "torch.Tensor")
#: What a statement with a body is called, where it is part of the pattern.
_BLOCKS: dict[type[ast.AST], str] = {
    ast.If: "if",
    ast.For: "for",
    ast.While: "while",
    ast.With: "with",
    ast.Try: "try",
}


@register_traits(TorchProgram.kind)
def traits(case: TestCase) -> Traits:
    """The traits of a case that is Python source."""
    assert isinstance(case.program, TorchProgram)
    reader = _Reader()
    reader.module(ast.parse(case.program.text))
    shapes = [given.shape for _, given in case.inputs if isinstance(given, (Tensor, Recipe))]
    needs = {*reader.needs, *shape_needs(shapes)}
    return Traits(
        "; ".join(sorted(reader.ends)),
        dtypes_of(given for _, given in case.inputs),
        tuple(sorted(needs)),
        tuple(sorted(reader.operators)),
    )


@dataclass
class _Reader:
    """Walks a program once, and knows of each variable what made it.

    ends       patterns of what is returned, and of blocks
    needs      keywords, plain parameters, element types and the like that are written out
    operators  names of all that is called
    """

    ends: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    operators: set[str] = field(default_factory=set)
    _made_by: dict[str, str] = field(default_factory=dict)

    def module(self, tree: ast.Module) -> None:
        """Reads the program: a model's parts first, then what is compiled."""
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for function in sorted(functions, key=lambda item: item.name == "forward"):
            if function.name in ("__init__", "forward"):
                self._read_body(function.body)

    def _read_body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._read_statement(statement)

    def _read_statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            made = self._pattern(node.value)
            for target in node.targets:
                self._store(target, made)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._store(node.target, self._pattern(node.value))
        elif isinstance(node, ast.AugAssign):
            self.needs.add(f"{_OPERATORS.get(type(node.op), 'operator')} in place")
            fed = [self._pattern(node.target), self._pattern(node.value)]
            self._store(node.target, self._operator_pattern(_OPERATORS.get(type(node.op), "operator"), fed))
        elif isinstance(node, ast.Return):
            self.ends.update(filter(None, self._items(node.value)))
        elif isinstance(node, ast.Expr):
            self._read_effect(node.value)
        elif isinstance(node, ast.FunctionDef):
            self._read_function(node)
        elif type(node) in _BLOCKS:
            self._read_block(node)

    def _read_effect(self, value: ast.expr) -> None:
        """A call for its effect: it makes anew what it is a method of."""
        made = self._pattern(value)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and made:
            self._store(value.func.value, made)

    def _read_function(self, node: ast.FunctionDef) -> None:
        """A function within: what it returns is what a call of it makes."""
        inner = _Reader(needs=self.needs, operators=self.operators, _made_by=dict(self._made_by))
        inner._read_body(node.body)
        self._made_by[node.name] = ", ".join(sorted(inner.ends))

    def _read_block(self, node: ast.stmt) -> None:
        """A statement with a body; what it is steered by is part of the pattern."""
        steering = [
            self._pattern(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
        ]
        self.ends.add(_format_pattern(_BLOCKS[type(node)], steering))
        for name in ("body", "orelse", "finalbody"):
            self._read_body(getattr(node, name, ()))
        for handler in getattr(node, "handlers", ()):
            self._read_body(handler.body)

    def _store(self, target: ast.expr, made: str) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self._store(item, made)
        elif isinstance(target, ast.Starred):
            self._store(target.value, made)
        elif isinstance(target, ast.Subscript):
            self.needs.add("assigned in part")
            self._store(
                target.value, self._operator_pattern("index_put", [made, self._pattern(target.value)])
            )
        elif name := _variable(target):
            self._made_by[name] = made

    def _items(self, value: ast.expr | None) -> list[str]:
        if isinstance(value, (ast.Tuple, ast.List)):
            return [self._pattern(item) for item in value.elts]
        return [self._pattern(value)] if value is not None else []

    def _pattern(self, node: ast.AST) -> str:
        """What made the value of an expression; "" for inputs and constants."""
        if (name := _variable(node)) in self._made_by:
            return self._made_by[name]
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.BinOp, ast.UnaryOp)):
            operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
            return self._operator(type(node.op), operands)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._operator(type(node.ops[0]), [node.left, *node.comparators])
        if isinstance(node, ast.Subscript):
            return self._operator_pattern("index", [self._pattern(node.value), self._pattern(node.slice)])
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        return ", ".join(sorted({*filter(None, map(self._pattern, ast.iter_child_nodes(node)))}))

    def _operator(self, kind: type[ast.AST], operands: list[ast.expr]) -> str:
        if not any(_may_be_tensor(item) for item in operands):
            return ""
        name = _OPERATORS.get(kind, "operator")
        self._note_repeated(name, operands)
        return self._operator_pattern(name, [self._pattern(item) for item in operands])

    def _attribute(self, node: ast.Attribute) -> str:
        """A property of a tensor, or an element type that is named."""
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            self.needs.add(f"torch.{dtype_class(node.attr)}")
            return ""
        return self._operator_pattern(node.attr, [self._pattern(node.value)])

    def _call(self, node: ast.Call) -> str:
        name = _variable(node.func)
        if name == "super" or (isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"):
            return ""
        given = [item.value if isinstance(item, ast.Starred) else item for item in node.args]
        named = {item.arg: item.value for item in node.keywords if item.arg is not None}
        fed = [self._pattern(item) for item in (*given, *named.values())]
        if name in self._made_by:  # a function within, or a part of the model
            return self._nested_pattern(self._made_by[name], fed)
        called = _aten_operator(node.func) or (
            node.func.attr if isinstance(node.func, ast.Attribute) else name
        )
        if not called:
            return self._nested_pattern(self._pattern(node.func), fed)
        if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
            given = [node.func.value, *given]
            fed = [self._pattern(node.func.value), *fed]
        called, in_place = (
            (called[:-1], True) if called.endswith("_") and called[-2:] != "__" else (called, False)
        )
        self._note_arguments(called, given, named)
        if in_place:
            self.needs.add(f"{called} in place")
        return self._operator_pattern(called, fed)

    def _note_arguments(self, name: str, given: list[ast.expr], named: Mapping[str, ast.expr]) -> None:
        """Notes what a call is given beside tensors."""
        for item, parameter in zip(given, _parameters_by_place(name, given, named), strict=True):
            if not _may_be_tensor(item):
                self.needs.add(f"{name}{parameter}")
        for keyword, value in named.items():
            word = (
                f"={value.value}" if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
            )
            self.needs.add(f"{name}.{keyword}{word}")
        self._note_repeated(name, given)

    def _note_repeated(self, name: str, operands: list[ast.expr]) -> None:
        names = [item.id for item in operands if isinstance(item, ast.Name)]
        if len(set(names)) < len(names):
            self.needs.add(f"{name} given one tensor twice")

    def _operator_pattern(self, name: str, fed: Iterable[str]) -> str:
        self.operators.add(name)
        return _format_pattern(name, fed)

    def _nested_pattern(self, made: str, fed: Iterable[str]) -> str:
        inside = ", ".join(sorted({*filter(None, fed)}))
        return _format_pattern(made, [inside]) if inside else made


def _parameters_by_place(name: str, given: list[ast.expr], named: Mapping[str, ast.expr]) -> list[str]:
    """What the places of a call stand for: `.dim`, as if given by name; ` parameter 1` where that is unknown.

    Functions and methods of torch are bound by the signatures of the installed library, so that the same
    parameter is one need in both spellings.
    """
    places = [f" parameter {place}" for place in range(len(given))]
    try:
        args = [_argument(item) for item in given]
        kwargs = {keyword: _argument(value) for keyword, value in named.items()}
    except ValueError:  # arithmetic, say
        return places
    for space in _NAMESPACES:
        bound = api_signatures().call(f"{space}.{name}", args, kwargs)
        names = [found for found in bound.explicit if found not in kwargs]
        if names and not names[0].isdigit():
            names += names[-1:] * (len(given) - len(names))  # `x.view(2, 3)`: one parameter takes the rest
            return [f".{found}" for found in names]
    return places


def _argument(node: ast.expr) -> Any:
    """An argument as `fuzzing.prioritize.call_binding` has it; ValueError if it is neither written out nor
    a tensor."""
    if _may_be_tensor(node):
        return {"tensor": ["float32", [1]]}
    if isinstance(node, ast.Attribute) and (value := resolve(".".join(_dotted(node)))) is not None:
        return default_to_json(value)  # a type, a layout or a function of torch
    try:
        return argument_to_json(ast.literal_eval(node))
    except (CaseFormatError, TypeError) as error:
        raise ValueError(str(error)) from None


def _format_pattern(name: str, fed: Iterable[str]) -> str:
    """An operator with what feeds it, once each and sorted: which operand it is makes no difference."""
    inside = sorted({*filter(None, fed)})
    text = f"{name}({', '.join(inside)})" if inside else name
    if len(text) > _MAX_PATTERN:
        return f"{name[:_MAX_PATTERN]}(#{hashlib.sha256(text.encode()).hexdigest()[:12]})"
    return text


def _variable(node: ast.AST) -> str:
    """The name of a variable, or of a part of the model as `self.part`; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return ""


def _aten_operator(node: ast.expr) -> str:
    """`var` of `torch.ops.aten.var.correction`: which of its overloads it is shows in its arguments."""
    parts = list(_dotted(node))
    return parts[3] if parts[:3] == ["torch", "ops", "aten"] and len(parts) > 3 else ""


def _is_module(node: ast.expr) -> bool:
    """Whether it is `torch` or a module below it, rather than a tensor."""
    return bool(parts := list(_dotted(node))) and parts[0] in ("torch", "F", "nn", "math", "self")


def _dotted(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        yield from _dotted(node.value)
        yield node.attr
    elif isinstance(node, ast.Name):
        yield node.id


def _may_be_tensor(node: ast.expr) -> bool:
    """Whether a variable or a call is in it; what is written out is no tensor."""
    return any(
        isinstance(item, ast.Call) or (isinstance(item, ast.Name) and item.id not in ("torch", "None"))
        for item in ast.walk(node)
    )
