"""A compiler with many faults planted in it, some of them in one converter and under one message.

onnxruntime behind a rewriter that errs, as in tests/fuzzing/reduce/faulty_backend.py. Each fault has one
cause, named by the option `fault`. What a fault does where a node matches:

    crash  raises in a converter that serves several operators, with a message that others use too, and that
           names the node, its shapes and an address
    late   lets onnxruntime fail when it runs the model
    wrong  negates what the node gives
    nan    makes it NaN
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import onnx

from fuzzing.backends.base import Backend, Named, Pattern, get, register
from fuzzing.cases.programs import OnnxModel, Program

Node = Any


class Scene(NamedTuple):
    """A model as converters see it: who makes a tensor, and of what shape it is."""

    makers: dict[str, Node]
    shapes: dict[str, tuple[int, ...]]

    def maker(self, node: Node, place: int = 0) -> str:
        """The operator that makes an input of a node; "" for an input of the model."""
        found = self.makers.get(node.input[place]) if place < len(node.input) else None
        return found.op_type if found is not None else ""

    def shape(self, node: Node, place: int = 0) -> tuple[int, ...]:
        return self.shapes.get(node.input[place], ())


Match = Callable[[Node, Scene], bool]


class Fault(NamedTuple):
    """What it does, where, and for `crash` the converter and which of MESSAGES it raises with."""

    effect: str
    match: Match
    operators: tuple[str, ...]
    converter: str = ""
    message: int = 0


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
        return node.op_type == op and attribute in given and bool(test(given[attribute]))

    return match


def _of_rank(op: str, rank: int) -> Match:
    return lambda node, scene: node.op_type == op and len(scene.shape(node)) == rank


def _twice(op: str) -> Match:
    """An operator that is given one tensor twice."""
    return lambda node, scene: node.op_type == op and len(node.input) > 1 and node.input[0] == node.input[1]


def _wide(op: str, axis: int, least: int) -> Match:
    """An operator whose input is at least so long in one direction."""

    def match(node: Node, scene: Scene) -> bool:
        shape = scene.shape(node)
        return node.op_type == op and len(shape) > axis and shape[axis] >= least

    return match


def _broadcast(op: str) -> Match:
    """An operator whose two operands differ in shape."""
    return lambda node, scene: node.op_type == op and scene.shape(node, 0) != scene.shape(node, 1)


def _crash(match: Match, *operators: str, by: str, message: int) -> Fault:
    return Fault("crash", match, operators, by, message)


_ACTIVATION, _POOL, _SHAPE, _BINARY, _MATRIX, _SCAN = "activation", "pool", "layout", "binary", "gemm", "scan"

#: By name. Faults of one converter, of one message, of one operator are among them on purpose.
FAULTS: dict[str, Fault] = {
    "crash-elu": _crash(_is("Elu"), "Elu", by=_ACTIVATION, message=0),
    "crash-selu-gamma": _crash(_with("Selu", "gamma"), "Selu", by=_ACTIVATION, message=0),
    "crash-leaky-alpha": _crash(_with("LeakyRelu", "alpha"), "LeakyRelu", by=_ACTIVATION, message=1),
    "crash-softmax-4d": _crash(_of_rank("Softmax", 4), "Softmax", by=_ACTIVATION, message=1),
    "crash-hardsigmoid-beta": _crash(_with("HardSigmoid", "beta"), "HardSigmoid", by=_ACTIVATION, message=2),
    "crash-tile": _crash(_is("Tile"), "Tile", by=_SHAPE, message=1),
    "crash-lppool": _crash(_is("LpPool"), "LpPool", by=_POOL, message=0),
    "crash-maxpool-dilations": _crash(_with("MaxPool", "dilations"), "MaxPool", by=_POOL, message=0),
    "crash-maxpool-ceil": _crash(_with("MaxPool", "ceil_mode", bool), "MaxPool", by=_POOL, message=2),
    "crash-gather-axis": _crash(_with("Gather", "axis", bool), "Gather", by=_SHAPE, message=1),
    "crash-transpose-reshape": _crash(
        _after("Reshape", "Transpose"), "Transpose", "Reshape", by=_SHAPE, message=0
    ),
    "crash-concat-of-split": _crash(_after("Concat", "Split"), "Split", "Concat", by=_SHAPE, message=0),
    "crash-add-itself": _crash(_twice("Add"), "Add", by=_BINARY, message=2),
    "crash-add-of-mul": _crash(_after("Add", "Mul"), "Add", "Mul", by=_BINARY, message=2),
    "crash-pad-4d": _crash(_of_rank("Pad", 4), "Pad", by=_SHAPE, message=2),
    "crash-conv-group": _crash(_with("Conv", "group", lambda n: n > 1), "Conv", by=_MATRIX, message=1),
    "crash-topk-smallest": _crash(_with("TopK", "largest", lambda n: n == 0), "TopK", by=_SCAN, message=0),
    "crash-gemm-transa": _crash(_with("Gemm", "transA", bool), "Gemm", by=_MATRIX, message=1),
    "crash-gemm-beta": _crash(_with("Gemm", "beta"), "Gemm", by=_MATRIX, message=1),
    "crash-cumsum-reverse": _crash(_with("CumSum", "reverse", bool), "CumSum", by=_SCAN, message=1),
    "crash-cumsum-exclusive": _crash(_with("CumSum", "exclusive", bool), "CumSum", by=_SCAN, message=1),
    "wrong-sigmoid": Fault("wrong", _is("Sigmoid"), ("Sigmoid",)),
    "wrong-prelu": Fault("wrong", _is("PRelu"), ("PRelu",)),
    "wrong-globalmaxpool": Fault("wrong", _is("GlobalMaxPool"), ("GlobalMaxPool",)),
    "wrong-slice": Fault("wrong", _is("Slice"), ("Slice",)),
    "wrong-reducemean-3d": Fault("wrong", _of_rank("ReduceMean", 3), ("ReduceMean",)),
    "wrong-relu-of-conv": Fault("wrong", _after("Relu", "Conv"), ("Relu", "Conv")),
    "wrong-conv-pads": Fault("wrong", _with("Conv", "pads", any), ("Conv",)),
    "wrong-mul-of-tanh": Fault("wrong", _after("Mul", "Tanh", "Sigmoid"), ("Mul", "Tanh", "Sigmoid")),
    "wrong-matmul-of-transpose": Fault("wrong", _after("MatMul", "Transpose"), ("MatMul", "Transpose")),
    "wrong-wide-sin": Fault("wrong", _wide("Sin", 0, 3), ("Sin",)),
    "wrong-max-itself": Fault("wrong", _twice("Max"), ("Max",)),
    "wrong-sub-broadcast": Fault("wrong", _broadcast("Sub"), ("Sub",)),
    "wrong-sub-of-abs": Fault("wrong", _after("Sub", "Abs"), ("Sub", "Abs")),
    "wrong-reducesum-flat": Fault("wrong", _with("ReduceSum", "keepdims", lambda n: n == 0), ("ReduceSum",)),
    "wrong-neg-of-neg": Fault("wrong", _after("Neg", "Neg"), ("Neg",)),
    "nan-exp-of-neg": Fault("nan", _after("Exp", "Neg"), ("Exp", "Neg")),
    "nan-sqrt": Fault("nan", _is("Sqrt"), ("Sqrt",)),
    "nan-erf-2d": Fault("nan", _of_rank("Erf", 2), ("Erf",)),
    "nan-layernorm": Fault("nan", _is("LayerNormalization"), ("LayerNormalization",)),
    "late-hardswish": Fault("late", _is("HardSwish"), ("HardSwish",)),
    "late-celu-alpha": Fault("late", _with("Celu", "alpha"), ("Celu",)),
    "late-transpose-twice": Fault("late", _after("Transpose", "Transpose"), ("Transpose",)),
    "late-floor-1d": Fault("late", _of_rank("Floor", 1), ("Floor",)),
}  # fmt: skip

MESSAGES: tuple[str, ...] = (
    "cannot lower node {name}: unsupported layout {shape} at {address:#x}",
    "check failed: attribute out of range for input {shape} of node '{name}'",
    "lowering.cc:{line}: internal error: dominator not found",
)


@register
class Planted(Backend):
    name: ClassVar[str] = "planted"
    package: ClassVar[str] = "onnxruntime"
    import_name: ClassVar[str] = "onnxruntime"
    options: ClassVar[dict[str, tuple[str, ...]]] = {"fault": tuple(FAULTS)}
    unsupported: ClassVar[tuple[Pattern, ...]] = (
        Pattern("NotImplemented", "", "onnxruntime lacks a kernel"),
    )

    def load(self, device: str, options: dict[str, Any]) -> None:
        self._honest = get("onnxruntime")()
        self._honest.load(device, {})
        self._fault = FAULTS[options["fault"]]

    def convert(self, program: Program, inputs: Named) -> Any:
        model, nodes, scene = matched(program.to_bytes(), self._fault)
        if nodes and self._fault.effect == "crash":
            CONVERTERS[self._fault.converter](nodes[0], scene, MESSAGES[self._fault.message])
        for node in nodes:
            _EFFECTS[self._fault.effect](model.graph, node)
        return self._honest.convert(OnnxModel(model.SerializeToString()), inputs)

    def compile(self, model: Any) -> Any:
        return self._honest.compile(model)

    def run(self, executable: Any, inputs: Named) -> Named:
        return self._honest.run(executable, inputs)


def matched(model: bytes, fault: Fault) -> tuple[Any, list[Node], Scene]:
    """The model with its shapes, the nodes that a fault concerns, and what converters see."""
    proto = onnx.shape_inference.infer_shapes(onnx.load_from_string(model))
    scene = _scene(proto.graph)
    return proto, [node for node in proto.graph.node if fault.match(node, scene)], scene


def _scene(graph: Any) -> Scene:
    shapes = {}
    for item in (*graph.input, *graph.value_info, *graph.output):
        shapes[item.name] = tuple(dim.dim_value for dim in item.type.tensor_type.shape.dim)
    for item in graph.initializer:
        shapes[item.name] = tuple(item.dims)
    return Scene({name: node for node in graph.node for name in node.output}, shapes)


def _raise(node: Node, scene: Scene, message: str) -> None:
    facts = {"name": node.output[0], "shape": list(scene.shape(node)), "address": id(node)}
    raise ValueError(message.format(line=100 + len(scene.shapes), **facts))


def convert_activation(node: Node, scene: Scene, message: str) -> None:
    _raise(node, scene, message)


def convert_pool(node: Node, scene: Scene, message: str) -> None:
    _raise(node, scene, message)


def convert_layout(node: Node, scene: Scene, message: str) -> None:
    _raise(node, scene, message)


def convert_binary(node: Node, scene: Scene, message: str) -> None:
    _raise(node, scene, message)


def convert_gemm(node: Node, scene: Scene, message: str) -> None:
    _raise(node, scene, message)


def convert_scan(node: Node, scene: Scene, message: str) -> None:
    _raise(node, scene, message)


#: A real converter's name is in the stack; several operators share one, as in every compiler.
CONVERTERS: dict[str, Callable[[Node, Scene, str], None]] = {
    _ACTIVATION: convert_activation,
    _POOL: convert_pool,
    _SHAPE: convert_layout,
    _BINARY: convert_binary,
    _MATRIX: convert_gemm,
    _SCAN: convert_scan,
}


def _behind(graph: Any, node: Node, *chain: str) -> None:
    """Puts operators of one operand behind the first output of a node."""
    name = node.output[0]
    node.output[0] = f"{name}_right"
    place = list(graph.node).index(node)
    links = [f"{name}_right", *(f"{name}_{number}" for number in range(len(chain) - 1)), name]
    for number, op in enumerate(chain):
        made = onnx.helper.make_node(op, [links[number]], [links[number + 1]])
        graph.node.insert(place + 1 + number, made)


def _negate(graph: Any, node: Node) -> None:
    _behind(graph, node, "Neg")


def _spoil(graph: Any, node: Node) -> None:
    """NaN, whatever the number: the logarithm of a number below zero."""
    _behind(graph, node, "Sigmoid", "Neg", "Log")


def _break(graph: Any, node: Node) -> None:
    """Adds the element behind the last one, which only shows when it runs."""
    name = node.output[0]
    node.output[0] = right = f"{name}_right"
    links: tuple[tuple[str, list[str], str, dict[str, Any]], ...] = (
        ("Constant", [], "all", {"value_ints": [-1]}),
        ("Reshape", [right, f"{name}_all"], "flat", {}),
        ("Size", [right], "size", {}),
        ("Gather", [f"{name}_flat", f"{name}_size"], "beyond", {}),
    )
    made = [
        onnx.helper.make_node(op, given, [f"{name}_{to}"], name=f"{name}_{to}", **attributes)
        for op, given, to, attributes in links
    ]
    made.append(onnx.helper.make_node("Add", [right, f"{name}_beyond"], [name]))
    place = list(graph.node).index(node)
    for number, item in enumerate(made):
        graph.node.insert(place + 1 + number, item)


_EFFECTS: dict[str, Callable[[Any, Node], None]] = {"wrong": _negate, "nan": _spoil, "late": _break}
