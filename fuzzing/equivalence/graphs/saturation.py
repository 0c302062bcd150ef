"""Equality saturation: all equal forms of a model's arithmetic at once, of which two are taken.

As in PolyJuice (OOPSLA 2024): the simplest and the most tangled form of one graph. The equalities are those
of sums, products, extremes, transpositions and matrix products of equal shapes, in exact arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
from egglog import EGraph, Expr, StringLike, function, method, rewrite, ruleset, vars_
from onnx import ModelProto, NodeProto, helper

from fuzzing.equivalence.graphs.editor import Editor, attribute

#: Times that every equality is applied everywhere. Sums of products grow exponentially.
ITERATIONS = 4
#: The depth of a tangled form beyond that of the simplest.
EXTRA_DEPTH = 3
_ROOT = "output"  # marks the term whose forms are taken
_UNARY = ("Neg", "Abs", "Relu", "Transpose")
_BINARY = ("Add", "Sub", "Mul", "Max", "Min", "MatMul")


class Term(Expr):
    """A value of the graph."""

    @method(cost=1)  # type: ignore[untyped-decorator, unused-ignore]
    @classmethod
    def leaf(cls, name: StringLike) -> Term:  # type: ignore[empty-body]
        """A value that is computed elsewhere."""


@function
def unary(operator: StringLike, a: Term) -> Term:  # type: ignore[empty-body]
    """An operator of one input."""


@function
def binary(operator: StringLike, a: Term, b: Term) -> Term:  # type: ignore[empty-body]
    """An operator of two inputs."""


@cache
def _equalities() -> Any:
    a, b, c = vars_("a b c", Term)

    def two(operator: str, left: Term, right: Term) -> Term:
        return binary(operator, left, right)

    def one(operator: str, given: Term) -> Term:
        return unary(operator, given)

    found = []
    for operator in ("Add", "Mul", "Max", "Min"):
        found.append(rewrite(two(operator, a, b)).to(two(operator, b, a)))
        found.append(rewrite(two(operator, two(operator, a, b), c)).to(two(operator, a, two(operator, b, c))))
    for operator in ("Add", "Sub"):
        found += [
            rewrite(two("Mul", two(operator, a, b), c)).to(two(operator, two("Mul", a, c), two("Mul", b, c))),
            rewrite(two("MatMul", two(operator, a, b), c)).to(
                two(operator, two("MatMul", a, c), two("MatMul", b, c))
            ),
        ]
    for operator in ("Add", "Sub", "Mul", "Max", "Min"):
        transposed = two(operator, one("Transpose", a), one("Transpose", b))
        found.append(rewrite(one("Transpose", two(operator, a, b))).to(transposed))
        found.append(rewrite(transposed).to(one("Transpose", two(operator, a, b))))
    product = two("MatMul", one("Transpose", b), one("Transpose", a))
    found += [
        rewrite(two("Sub", a, b)).to(two("Add", a, one("Neg", b))),
        rewrite(two("Add", a, one("Neg", b))).to(two("Sub", a, b)),
        rewrite(one("Neg", one("Neg", a))).to(a),
        rewrite(one("Transpose", one("Transpose", a))).to(a),
        rewrite(one("Transpose", two("MatMul", a, b))).to(product),
        rewrite(two("MatMul", two("MatMul", a, b), c)).to(two("MatMul", a, two("MatMul", b, c))),
        rewrite(two("Max", a, one("Neg", a))).to(one("Abs", a)),
        rewrite(one("Abs", a)).to(two("Max", a, one("Neg", a))),
        rewrite(one("Neg", two("Max", a, b))).to(two("Min", one("Neg", a), one("Neg", b))),
        rewrite(one("Neg", two("Min", a, b))).to(two("Max", one("Neg", a), one("Neg", b))),
        rewrite(one("Relu", one("Relu", a))).to(one("Relu", a)),
        rewrite(one("Abs", one("Neg", a))).to(one("Abs", a)),
        rewrite(two("Add", a, a)).to(two("Sub", a, one("Neg", a))),
    ]
    return ruleset(*found)


@dataclass(frozen=True)
class Form:
    """An extracted term: an operator with its inputs, or a leaf."""

    operator: str
    inputs: tuple[Form, ...] = ()
    leaf: str = ""

    @property
    def size(self) -> int:
        """Number of operators."""
        return bool(self.inputs) + sum(item.size for item in self.inputs)


def saturate(model: ModelProto, output: str) -> tuple[ModelProto, ModelProto] | None:
    """The model with the simplest and with the most tangled form of one value; None if that has one form."""
    editor = Editor(model)
    producers = {node.output[0]: node for node in editor.nodes if len(node.output) == 1}
    while (node := producers.get(output)) is not None and node.op_type == "Identity":
        output = node.input[0]  # as a form is written
    if not _is_arithmetic(editor, node):
        return None
    graph = EGraph()
    graph.register(unary(_ROOT, _term(editor, producers, output)))
    graph.run(_equalities() * ITERATIONS)
    classes, place = _classes(graph)
    simplest = _extract(classes, place, largest=False)
    tangled = _extract(classes, place, largest=True)
    if simplest is None or tangled is None or simplest == tangled:
        return None
    return _with_form(model, output, simplest), _with_form(model, output, tangled)


def _is_arithmetic(editor: Editor, node: NodeProto | None) -> bool:
    """Whether the equalities are about a node: of floats, and of equal shapes or matrices."""
    if node is None or node.domain or node.op_type not in (*_UNARY, *_BINARY):
        return False
    kinds = [editor.type(name) for name in node.input]
    if any(kind.dtype not in ("float32", "float64") or kind.shape is None for kind in kinds):
        return False
    if node.op_type == "Transpose":
        return len(kinds[0].shape or ()) == 2 and list(attribute(node, "perm") or [1, 0]) == [1, 0]
    if node.op_type == "MatMul":
        return all(len(kind.shape or ()) == 2 for kind in kinds)
    return len({kind.shape for kind in kinds}) == 1 and len(kinds) == (2 if node.op_type in _BINARY else 1)


def _term(editor: Editor, producers: Mapping[str, NodeProto], name: str, depth: int = 0) -> Term:
    node = producers.get(name)
    if node is None or depth > 5 or not _is_arithmetic(editor, node):
        return Term.leaf(name)
    inputs = [_term(editor, producers, item, depth + 1) for item in node.input]
    return binary(node.op_type, *inputs) if len(inputs) == 2 else unary(node.op_type, inputs[0])


#: Class → its nodes, as (operator, classes of the inputs, leaf).
_Classes = Mapping[str, Sequence[tuple[str, tuple[str, ...], str]]]


def _classes(graph: EGraph) -> tuple[_Classes, str]:
    """The saturated graph's classes, and that of the output."""
    data = json.loads(graph._serialize(max_functions=4000, max_calls_per_function=4000).to_json())
    nodes, texts = data["nodes"], {}
    for key, node in nodes.items():
        if not node["children"] and node["op"].startswith('"'):
            texts[key] = json.loads(node["op"])
    found: dict[str, list[tuple[str, tuple[str, ...], str]]] = {}
    place = ""
    for node in nodes.values():
        name = node["op"].rsplit(".", 1)[-1].split("(")[0]
        children = node["children"]
        if name == "unary" and texts[children[0]] == _ROOT:
            place = nodes[children[1]]["eclass"]
        elif name.endswith("leaf"):
            found.setdefault(node["eclass"], []).append(("", (), texts[children[0]]))
        elif name in ("unary", "binary"):
            inputs = tuple(nodes[child]["eclass"] for child in children[1:])
            found.setdefault(node["eclass"], []).append((texts[children[0]], inputs, ""))
    return {key: sorted(set(items)) for key, items in found.items()}, place


def _extract(classes: _Classes, root: str, *, largest: bool) -> Form | None:
    """The form with fewest operators, or that with most within its depth and EXTRA_DEPTH."""
    best: dict[str, Form] = {}
    depth = 0
    while root not in best:
        depth += 1
        if depth > 12:
            return None
        best = _deepen(classes, best, largest=False)
    if not largest:
        return best[root]
    for _ in range(EXTRA_DEPTH):
        best = _deepen(classes, best, largest=True)
    return best[root]


def _deepen(classes: _Classes, best: Mapping[str, Form], *, largest: bool) -> dict[str, Form]:
    """The best form of each class whose inputs are the best forms so far."""
    found = dict(best)
    for key, nodes in classes.items():
        forms = [
            Form(operator, tuple(best[item] for item in inputs), leaf)
            for operator, inputs, leaf in nodes
            if all(item in best for item in inputs)
        ]
        if forms:
            choose = max if largest else min
            found[key] = choose(forms, key=lambda form: form.size)
    return found


def _with_form(model: ModelProto, output: str, form: Form) -> ModelProto:
    """The model whose value `output` is computed by a form; nodes that nothing uses any more stay."""
    editor = Editor(model)
    node = next(node for node in editor.nodes if output in node.output)
    nodes: list[NodeProto] = []
    made: dict[Form, str] = {}

    def emit(item: Form) -> str:
        if item.leaf:
            return item.leaf
        if item not in made:
            inputs = [emit(part) for part in item.inputs]
            made[item] = editor.fresh("form")
            nodes.append(helper.make_node(item.operator, inputs, [made[item]]))
        return made[item]

    result = emit(form)
    editor.replace(node, [*nodes, helper.make_node("Identity", [result], [output])])
    onnx.checker.check_model(editor.model, full_check=True)
    return editor.model
