"""Checks one operator's specification against ONNX and onnxruntime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime

from fuzzing.generate.generators import GeneratedGraph
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import TensorType, operators
from fuzzing.graph.intervals import Interval
from fuzzing.graph.onnx_writer import DTYPES, to_onnx
from fuzzing.graph.operator_spec import GraphLimits, NodeContext
from fuzzing.rng import Rng, derive_seed

Array = np.ndarray[Any, Any]
_CARRIED = {number: name for name, number in DTYPES.items()}


@dataclass(frozen=True)
class Ran:
    """A graph of one node, its inputs, and onnxruntime's outputs; None if it refuses the model."""

    generated: GeneratedGraph
    inputs: dict[int, Array]
    outputs: list[Array] | None
    refusal: str = ""


def single(
    name: str,
    seed: int,
    opset: int = 18,
    dtypes: Sequence[str] = ("float32",),
    limits: GraphLimits = GraphLimits(),  # noqa: B008 - frozen
) -> GeneratedGraph:
    """A graph of one node of the operator, or of one pattern."""
    settings = GeneratorSettings(
        nodes=(1, 1), opset=opset, operators=(name,), dtypes=tuple(dtypes), limits=limits, picking_rate=0.3,
        patterns=name.startswith("pattern."),
    )  # fmt: skip
    return Solver(settings).generate(seed)


def check(
    name: str,
    opsets: Iterable[int] = (13, 18, 21),
    dtypes: Sequence[str] = ("float32",),
    seeds: int = 25,
    limits: GraphLimits = GraphLimits(),  # noqa: B008 - frozen
    runs: bool = True,
) -> list[Ran]:
    """Makes many nodes of one operator and checks each.

    ONNX's checker and strict inference pass; the inferred types are the specification's, as are those of
    `NodeContext.from_node` for the finished node; onnxruntime's outputs have these shapes, are finite and
    within the bounds. With `runs` onnxruntime must accept at least some of them.
    """
    ran = []
    for opset in opsets:
        if name not in operators.specifications(opset) and name not in operators.pattern_specifications(
            opset
        ):
            continue
        for dtype in dtypes:
            for number in range(seeds):
                generated = single(name, derive_seed(number, name, opset, dtype), opset, (dtype,), limits)
                _check_types(generated)
                result = run(generated, number)
                _check_run(name, result)
                ran.append(result)
    assert ran, f"{name} is specified at none of these opsets"
    assert not runs or any(item.outputs is not None for item in ran), f"{name} never ran: {ran[0].refusal}"
    return ran


def _check_types(generated: GeneratedGraph) -> None:
    graph = generated.graph
    model = to_onnx(graph)
    onnx.checker.check_model(model, full_check=True)
    del model.graph.output[:]
    for edge in graph.outputs:
        model.graph.output.add().name = f"v{edge}"
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    found = {item.name: item.type for item in (*inferred.graph.value_info, *inferred.graph.output)}
    for node in graph.nodes:
        operator = operators.specifications(graph.opset).get(node.op)
        if operator is not None and operator.expand is None:
            context = NodeContext.from_node(operator, graph, node)
            assert operator.infer(context) == tuple(graph.types[edge] for edge in node.outputs)
        for edge in node.outputs:
            tensor = found[f"v{edge}"].tensor_type
            type_ = graph.types[edge]
            assert _CARRIED[tensor.elem_type] == type_.dtype
            if not tensor.HasField("shape"):
                continue  # onnx infers none for GroupNormalization, MaxUnpool with a shape; the run checks it
            dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
            assert len(dims) == type_.rank, (node, dims, type_)
            for message, dim in zip(dims, type_.shape or (), strict=True):
                assert message in (None, dim), (node, dims, type_)


def run(generated: GeneratedGraph, seed: int) -> Ran:
    """Runs a graph in onnxruntime without optimization, on inputs from its ranges."""
    graph = generated.graph
    rng = Rng(seed)
    inputs = {edge: fill(graph.types[edge], generated.ranges[edge], rng) for edge in graph.inputs}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            to_onnx(graph).SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error) or "NotImplemented" in type(error).__name__:
            return Ran(generated, inputs, None, str(error))
        raise
    if any(type_.dtype == "bfloat16" for type_ in graph.types):
        return Ran(generated, inputs, None, "NOT_IMPLEMENTED: numpy has no bfloat16 to feed or read")
    return Ran(generated, inputs, session.run(None, {f"v{edge}": x for edge, x in inputs.items()}))


def fill(type_: TensorType, range_: Interval, rng: Rng) -> Array:
    """Elements of this type within these bounds; raw bits for types that numpy lacks."""
    flat = [range_.low + (range_.high - range_.low) * rng.random() for _ in range(type_.elements)]
    array = np.array(flat, np.float64).reshape(type_.lengths)
    if type_.dtype == "bool":
        return np.asarray(array > 0.5)
    if type_.dtype == "bfloat16":
        return np.asarray(array.astype(np.float32).view(np.uint32) >> 16, np.uint16)
    if type_.dtype.startswith("float"):
        return np.asarray(np.clip(array, range_.low, range_.high), type_.dtype)  # of a scalar, too
    return np.asarray(np.clip(np.rint(array), range_.low, range_.high), type_.dtype)


def _check_run(name: str, result: Ran) -> None:
    if result.outputs is None:
        return
    graph = result.generated.graph
    for edge, array in zip(graph.outputs, result.outputs, strict=True):
        type_, range_ = graph.types[edge], result.generated.ranges[edge]
        assert len(array.shape) == type_.rank
        for length, dim in zip(array.shape, type_.shape or (), strict=True):
            assert dim in (None, length), (graph.nodes, array.shape, type_)
        if array.size == 0 or type_.dtype == "bfloat16":
            continue
        numbers = array.astype(np.float64)
        assert np.isfinite(numbers).all(), (name, graph, numbers)
        slack = (
            1e-3 * max(1.0, range_.largest) if type_.dtype == "float16" else 1e-5 * max(1.0, range_.largest)
        )
        inside = (numbers >= range_.low - slack) & (numbers <= range_.high + slack)
        assert inside.all(), (name, graph.nodes, numbers.min(), numbers.max(), range_)


def check_torch(name: str, opset: int = 18, dtypes: Sequence[str] = ("float32",), seeds: int = 10) -> int:
    """Compares an operator's torch expression with onnxruntime; returns how many nodes had one and agreed."""
    import torch

    agreed = 0
    for dtype in dtypes:
        for number in range(seeds):
            generated = single(name, derive_seed(number, name, dtype, "torch"), opset, (dtype,))
            result, graph = run(generated, number), generated.graph
            node = graph.nodes[0]
            operator = operators.get_specification(node.op, opset)
            if operator.torch is None or result.outputs is None:
                continue
            context = NodeContext.from_node(operator, graph, node)
            names = ["None" if edge is None else f"v{edge}" for edge in context.edges]
            given = {f"v{edge}": torch.tensor(array) for edge, array in result.inputs.items()}
            given |= {f"v{edge}": torch.tensor(item.array) for edge, item in graph.constants.items()}
            text = (
                operator.torch.format(*names)
                if isinstance(operator.torch, str)
                else operator.torch(context, names)
            )
            if text is None:
                continue
            got = eval(text, {"torch": torch} | given)
            outputs = got if isinstance(got, (tuple, list)) else (got,)
            for mine, theirs in zip(outputs, result.outputs, strict=True):
                tolerance = 2e-2 if dtype in ("float16", "bfloat16") else 1e-4
                assert tuple(mine.shape) == theirs.shape, (text, mine.shape, theirs.shape)
                np.testing.assert_allclose(mine.numpy(), theirs, rtol=tolerance, atol=tolerance, err_msg=text)
            agreed += 1
    return agreed


__all__ = ["Ran", "check", "check_torch", "fill", "run", "single"]
