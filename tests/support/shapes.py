"""Holds shape functions against onnx's, for nodes written by hand: also what no generator draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx

from fuzzing.graph import Attribute, Builder, Constant, TensorType, operators
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.site import Site


def inferred(
    op: str,
    opset: int,
    inputs: Sequence[TensorType | Constant | None],
    attributes: Mapping[str, Attribute] | None = None,
    outputs: int = 1,
) -> tuple[TensorType, ...]:
    """What the specification infers, after asserting that onnx infers nothing else."""
    builder = Builder(opset)
    edges: list[int | None] = []
    for item in inputs:
        if item is None:
            edges.append(None)
        elif isinstance(item, Constant):
            edges.append(builder.constant(item))
        else:
            edges.append(builder.placeholder(item))
    made = builder.node(op, tuple(edges), (TensorType("float32", ()),) * outputs, attributes)
    graph = builder.finish(made)
    found = operators.named(op, opset).infer(Site.of(operators.named(op, opset), graph, graph.nodes[0]))
    model = to_onnx(graph)
    del model.graph.output[:]
    for edge in made:
        model.graph.output.add().name = f"v{edge}"
    theirs = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    for type_, value in zip(found, theirs.graph.output, strict=True):
        tensor = value.type.tensor_type
        if tensor.HasField("shape"):
            dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
            assert len(dims) == type_.rank, (op, dims, type_)
            agreed = zip(dims, type_.shape or (), strict=True)
            assert all(theirs in (None, mine) for theirs, mine in agreed), (op, dims, type_)
    return found


def floats(*shape: int) -> TensorType:
    """A tensor of single precision."""
    return TensorType("float32", shape)
