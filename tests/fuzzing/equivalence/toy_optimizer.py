"""A toy optimizer of ONNX models with twenty wrong passes: each rewrites one pattern into something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, helper

Find = Callable[[str], "NodeProto | None"]
#: Changes a node in place where its pattern is matched; says whether it was.
Edit = Callable[[NodeProto, Find], bool]


@dataclass(frozen=True)
class WrongPass:
    """A pass over all nodes."""

    name: str
    edit: Edit

    def __call__(self, model: ModelProto) -> ModelProto:
        """The optimized model."""
        changed = ModelProto()
        changed.CopyFrom(model)
        for node in changed.graph.node:
            producers = {name: other for other in changed.graph.node for name in other.output}
            self.edit(node, producers.get)
        return changed


def _after(find: Find, node: NodeProto, operator: str, place: int = 0) -> NodeProto | None:
    found = find(node.input[place]) if len(node.input) > place else None
    return found if found is not None and found.op_type == operator else None


def _become(node: NodeProto, operator: str, inputs: list[str]) -> bool:
    new = helper.make_node(operator, inputs, list(node.output))
    node.CopyFrom(new)
    return True


def bypass(operator: str, before: str) -> Edit:
    """Drops an operator behind another one."""
    return lambda node, find: (
        node.op_type == operator
        and _after(find, node, before) is not None
        and _become(node, "Identity", [node.input[0]])
    )


def swap(operator: str, before: str) -> Edit:
    """Exchanges the first two inputs of an operator behind another one."""

    def edit(node: NodeProto, find: Find) -> bool:
        if node.op_type != operator or _after(find, node, before) is None or len(node.input) < 2:
            return False
        node.input[0], node.input[1] = node.input[1], node.input[0]
        return True

    return edit


def forget(operator: str, before: str) -> Edit:
    """Takes the second input of an operator before, not after, another one."""

    def edit(node: NodeProto, find: Find) -> bool:
        inner = _after(find, node, before, 1) if node.op_type == operator else None
        if inner is None:
            return False
        node.input[1] = inner.input[0]
        return True

    return edit


def same_inputs(operator: str, first: int, new: str) -> Edit:
    """Replaces an operator of two equal inputs."""
    return lambda node, find: (
        node.op_type == operator
        and len(node.input) > first + 1
        and node.input[first] == node.input[first + 1]
        and _become(node, new, [node.input[first]] * 2)
    )


def _wrong_branch(node: NodeProto, find: Find) -> bool:
    del find
    if node.op_type != "If":
        return False
    node.attribute[0].name, node.attribute[1].name = node.attribute[1].name, node.attribute[0].name
    return True


def _wrong_arguments(node: NodeProto, find: Find) -> bool:
    del find
    if node.domain != "assay":
        return False
    node.input[:] = node.input[1:] + node.input[:1]
    return len(node.input) > 1


def _wrong_blocks(node: NodeProto, find: Find) -> bool:
    if node.op_type != "DepthToSpace" or _after(find, node, "SpaceToDepth") is None:
        return False
    node.attribute.append(helper.make_attribute("mode", "CRD"))
    return True


def _wrong_loop(node: NodeProto, find: Find) -> bool:
    return node.op_type == "Squeeze" and _after(find, node, "Loop") is not None and _become(
        node, "Identity", [node.input[0]]
    )  # fmt: skip


PASSES = (
    WrongPass("negations", bypass("Neg", "Neg")),
    WrongPass("casts", bypass("Cast", "Cast")),
    WrongPass("transpositions", bypass("Transpose", "Transpose")),
    WrongPass("reshapes", bypass("Reshape", "Reshape")),
    WrongPass("cropped padding", bypass("Slice", "Pad")),
    WrongPass("reversals", bypass("Slice", "Slice")),
    WrongPass("unit dimensions", bypass("Squeeze", "Unsqueeze")),
    WrongPass("joined parts", swap("Concat", "Split")),
    WrongPass("joined slices", swap("Concat", "Slice")),
    WrongPass("blocks", _wrong_blocks),
    WrongPass("constant condition", _wrong_branch),
    WrongPass("inlining", _wrong_arguments),
    WrongPass("unrolled loop", _wrong_loop),
    WrongPass("equal choices", same_inputs("Where", 1, "Sub")),
    WrongPass("equal maximum", same_inputs("Max", 0, "Add")),
    WrongPass("subtracted negation", forget("Add", "Neg")),
    WrongPass("multiplied reciprocal", forget("Mul", "Reciprocal")),
    WrongPass("fused sigmoid", bypass("Reciprocal", "Add")),
    WrongPass("fused hyperbolic tangent", bypass("Mul", "Sigmoid")),
    WrongPass("transposed product", swap("MatMul", "Transpose")),
)
