"""Matrix products and determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Computed, planned_attribute
from fuzzing.graph.intervals import MODERATE_RANGES, Interval, add, intersect, scale, widen
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    DataInput,
    GraphLimits,
    NodeContext,
    OperatorSpec,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import broadcast
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.sum_bounds import addend, factor, max_output_elements, multiplied, total
from fuzzing.graph.types import FLOATS, Dim, Shape, TensorType
from fuzzing.rng import Rng

#: What Gemm and MatMul multiply, by the ONNX operator reference.
_NUMBERS = (*FLOATS, "int32", "int64", "uint32", "uint64")


def columns(context: NodeContext, rows: int, inner: int, batch: int = 1) -> Dim:
    """The columns of a second matrix: any number, if the product is then no larger than that matrix."""
    if rows <= inner:
        return None
    most = max_output_elements(context) // max(1, batch * rows)
    return context.rng.between(1, max(1, min(context.limits.max_dim, most)))


# Gemm
def _transposed(context: NodeContext) -> None:
    for name in ("transA", "transB"):
        if context.rng.chance(0.5):
            context.attributes[name] = context.rng.below(2)


def _rows(context: NodeContext) -> tuple[int, int]:
    rows, inner = context.dims(0)
    return (inner, rows) if context.get("transA") else (rows, inner)


def _gemm_shape(context: NodeContext) -> tuple[int, int]:
    second = context.dims(1)
    return _rows(context)[0], second[0 if context.get("transB") else 1]


def _gemm_second(context: NodeContext) -> Shape:
    rows, inner = _rows(context)
    count = columns(context, rows, inner)
    return (count, inner) if context.get("transB") else (inner, count)


def _gemm_third(context: NodeContext) -> Shape:
    rows, count = _gemm_shape(context)
    return context.rng.choice(((rows, count), (rows, count), (count,), (1, count), (rows, 1), (1,), ()))


def _factor_of_one(context: NodeContext) -> float:
    return context.rng.choice((0.5, 0.25, 1.0, -1.0)) if context.dtype in FLOATS else 1.0


def _gemm_values(context: NodeContext) -> Interval:
    product = total(context.dtype, _rows(context)[1], context.range(0), context.range(1))
    product = scale(product, context.get("alpha"))
    return add(product, scale(context.range(2), context.get("beta"))) if context.given(2) else product


def _torch_gemm(context: NodeContext, names: Sequence[str]) -> str:
    one = f"{names[0]}.mT" if context.get("transA") else names[0]
    other = f"{names[1]}.mT" if context.get("transB") else names[1]
    text = (
        f"({one} @ {other})" if context.get("alpha") == 1 else f"{context.get('alpha')!r} * ({one} @ {other})"
    )
    if not context.given(2):
        return text
    return (
        f"{text} + {names[2]}"
        if context.get("beta") == 1
        else f"{text} + {context.get('beta')!r} * {names[2]}"
    )


# MatMul
def second(context: NodeContext, vectors: bool = True) -> Shape:
    """A matrix to multiply with: mostly with the same batch, else with one that broadcasts."""
    rng, shape = context.rng, context.dims(0)
    inner, rows, batch = shape[-1], shape[-2] if len(shape) > 1 else 1, shape[:-2]
    if vectors and rng.chance(0.1):
        return (inner,)
    if batch and rng.chance(0.1):
        batch = tuple([1 if rng.chance(0.5) else dim for dim in batch])[rng.below(len(batch) + 1) :]
    elif batch and 1 in batch and rng.chance(0.2):
        most = min(context.limits.max_dim, max_output_elements(context) // context.x.elements)
        batch = tuple([rng.between(1, max(1, most)) if dim == 1 else dim for dim in batch[-1:]])
    count = columns(context, rows, inner, math.prod(shape[:-2]) * math.prod(batch))
    return (*batch, inner, count)


def product(first: Sequence[int], other: Sequence[int]) -> Shape:
    """The shape function of MatMul, which is numpy's."""
    batch = broadcast(tuple(first[:-2]), tuple(other[:-2])) if len(first) > 2 or len(other) > 2 else ()
    return (*batch, *first[-2:-1], *(other[-1:] if len(other) > 1 else ()))


def _matmul(context: NodeContext) -> tuple[TensorType, ...]:
    return (TensorType(context.dtype, product(context.dims(0), context.dims(1))),)


# Det
def _square(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    rank = rng.between(2, max(2, min(4, limits.max_rank)))
    side = rng.between(1, min(4, max(1, limits.max_dim)))
    return (*[rng.between(1, max(1, limits.max_dim)) for _ in range(rank - 2)], side, side)


def _determinant(context: NodeContext) -> Interval:
    """Hadamard's bound."""
    side = context.dims(0)[-1]
    most = (context.range(0).largest * math.sqrt(side)) ** side
    return widen(Interval(-most, most), 1e-2)


def _det(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "Det", since, dtypes=dtypes, ranks=tuple(range(2, 9)), draw_shape=_square,
        takes=lambda shape: shape[-1] == shape[-2] <= 4,
        within=lambda type_: intersect(Interval(-4, 4), MODERATE_RANGES[type_.dtype]),
        infer=lambda context: (TensorType(context.dtype, context.shape[:-2]),),
        values=_determinant, torch="torch.linalg.det({0})",
    )  # fmt: skip


register(
    OperatorSpec("Gemm", 13, dtypes=_NUMBERS, ranks=(2,), degrees=(2, 3), plan=_transposed, within=multiplied,
             input_specs=(PRIMARY_INPUT, DataInput(_gemm_second,
                                                   within=lambda context: factor(context, _rows(context)[1])),
                    DataInput(_gemm_third, within=addend)),
             attribute_specs=(planned_attribute("transA", 0), planned_attribute("transB", 0),
                       AttributeSpec("alpha", Computed(_factor_of_one), omit=0.5, default=1.0),
                       AttributeSpec("beta", Computed(_factor_of_one), omit=0.5, default=1.0)),
             infer=lambda context: (TensorType(context.dtype, _gemm_shape(context)),),
             values=_gemm_values, torch=_torch_gemm),
    OperatorSpec("MatMul", 13, dtypes=_NUMBERS, ranks=tuple(range(1, 9)), within=multiplied,
                 input_specs=(PRIMARY_INPUT,
                              DataInput(second, within=lambda context: factor(context, context.dims(0)[-1]))),
                 infer=_matmul, torch="{0} @ {1}",
                 values=lambda context: total(context.dtype, context.dims(0)[-1], context.range(0),
                                              context.range(1))),
    _det(11, NARROW),
    _det(22, FLOATS),
)  # fmt: skip
