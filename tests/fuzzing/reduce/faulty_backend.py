"""A compiler with faults planted in its converters and passes: onnxruntime behind a rewriter that errs.

Each fault has one cause, named by the option `fault`: a pattern of operators, attributes, types or shapes in
the model. Where a node matches, a `crash` fault raises in the conversion, as a converter does; a `wrong`
fault puts a Neg behind the node, so that the error runs through the rest of the graph as a real one would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import onnx

from fuzzing.backends.base import Backend, Named, Pattern, get, register
from fuzzing.cases.programs import OnnxModel, Program

Node = Any


# No dataclass: those look for their module in sys.modules, where a file given by its path is not.
class Scene(NamedTuple):
    """A model as converters see it: who makes a tensor, and of what shape it is."""

    makers: dict[str, Node]
    shapes: dict[str, tuple[int, ...]]

    def maker(self, node: Node, place: int = 0) -> str:
        """The operator that makes an input of a node; "" for an input of the model."""
        found = self.makers.get(node.input[place]) if place < len(node.input) else None
        return found.op_type if found is not None else ""

    def rank(self, node: Node, place: int = 0) -> int:
        return len(self.shapes.get(node.input[place], ()))


Match = Callable[[Node, Scene], bool]


def _is(op: str) -> Match:
    return lambda node, scene: node.op_type == op


def _after(op: str, *before: str) -> Match:
    """An operator behind one of some others."""
    return lambda node, scene: (
        node.op_type == op and any(scene.maker(node, place) in before for place in range(len(node.input)))
    )


def _with(op: str, attribute: str, test: Callable[[Any], bool] = lambda value: True) -> Match:
    def match(node: Node, scene: Scene) -> bool:
        given = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        return node.op_type == op and attribute in given and test(given[attribute])

    return match


def _of_rank(op: str, rank: int) -> Match:
    return lambda node, scene: node.op_type == op and scene.rank(node) == rank


def _twice(op: str) -> Match:
    """An operator that is given one tensor twice."""
    return lambda node, scene: node.op_type == op and len(node.input) > 1 and node.input[0] == node.input[1]


def _wide(op: str, axis: int, least: int) -> Match:
    """An operator whose input is at least so long in one direction."""

    def match(node: Node, scene: Scene) -> bool:
        shape = scene.shapes.get(node.input[0], ())
        return node.op_type == op and len(shape) > axis and shape[axis] >= least

    return match


#: By name: the kind, and the cause.
FAULTS: dict[str, tuple[str, Match]] = {
    "crash-elu": ("crash", _is("Elu")),
    "crash-tile": ("crash", _is("Tile")),
    "crash-lppool": ("crash", _is("LpPool")),
    "crash-gather-axis": ("crash", _with("Gather", "axis", lambda axis: axis != 0)),
    "crash-leaky-alpha": ("crash", _with("LeakyRelu", "alpha")),
    "crash-softmax-4d": ("crash", _of_rank("Softmax", 4)),
    "crash-transpose-reshape": ("crash", _after("Reshape", "Transpose")),
    "crash-concat-of-split": ("crash", _after("Concat", "Split")),
    "crash-add-itself": ("crash", _twice("Add")),
    "crash-pad-5d": ("crash", _of_rank("Pad", 5)),
    "wrong-sigmoid": ("wrong", _is("Sigmoid")),
    "wrong-prelu": ("wrong", _is("PRelu")),
    "wrong-globalmaxpool": ("wrong", _is("GlobalMaxPool")),
    "wrong-slice": ("wrong", _is("Slice")),
    "wrong-reducemean-3d": ("wrong", _of_rank("ReduceMean", 3)),
    "wrong-relu-of-conv": ("wrong", _after("Relu", "Conv")),
    "wrong-mul-of-tanh": ("wrong", _after("Mul", "Tanh", "Sigmoid")),
    "wrong-matmul-of-transpose": ("wrong", _after("MatMul", "Transpose")),
    "wrong-wide-sin": ("wrong", _wide("Sin", 0, 3)),
    "wrong-max-itself": ("wrong", _twice("Max")),
}


@register
class Faulty(Backend):
    name: ClassVar[str] = "faulty"
    package: ClassVar[str] = "onnxruntime"
    import_name: ClassVar[str] = "onnxruntime"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"fault": tuple(FAULTS)}
    unsupported: ClassVar[tuple[Pattern, ...]] = (
        Pattern("NotImplemented", "", "onnxruntime lacks a kernel"),
    )

    def load(self, device: str, options: dict[str, Any]) -> None:
        self._honest = get("onnxruntime")()
        self._honest.load(device, {})
        self._name = options["fault"]

    def convert(self, program: Program, inputs: Named) -> Any:
        model = onnx.shape_inference.infer_shapes(onnx.load_from_string(program.to_bytes()))
        kind, match = FAULTS[self._name]
        scene = _scene(model.graph)
        nodes = [node for node in model.graph.node if match(node, scene)]
        if nodes and kind == "crash":
            _convert(nodes[0].op_type, self._name)
        for node in nodes:
            _negate(model.graph, node)
        return self._honest.convert(OnnxModel(model.SerializeToString()), inputs)

    def compile(self, model: Any) -> Any:
        return self._honest.compile(model)

    def run(self, executable: Any, inputs: Named) -> Named:
        return self._honest.run(executable, inputs)


def _convert(op: str, fault: str) -> None:
    raise ValueError(f"converter of {op}: check failed: cannot lower this ({fault})")


def _scene(graph: Any) -> Scene:
    shapes = {}
    for item in (*graph.input, *graph.value_info, *graph.output):
        shapes[item.name] = tuple(dim.dim_value for dim in item.type.tensor_type.shape.dim)
    for item in graph.initializer:
        shapes[item.name] = tuple(item.dims)
    return Scene({name: node for node in graph.node for name in node.output}, shapes)


def _negate(graph: Any, node: Node) -> None:
    """Puts a Neg behind the first output of a node."""
    name = node.output[0]
    node.output[0] = f"{name}_right"
    place = list(graph.node).index(node)
    graph.node.insert(place + 1, onnx.helper.make_node("Neg", [f"{name}_right"], [name]))
