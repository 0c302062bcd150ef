"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.attribute_domains import Choice
from fuzzing.graph.constants import make_scalar
from fuzzing.graph.intervals import Interval, hull
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import (
    ANY_RANK,
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    NodeContext,
    OperatorSpec,
)
from fuzzing.graph.operators import register
from fuzzing.graph.rounding import after_rounding, factor_per_element, per_element, product_after_rounding
from fuzzing.graph.types import FLOATS, TensorType


def _axis(context: NodeContext) -> Constant:
    rng = context.rng
    axis = rng.below(context.rank) - (context.rank if rng.chance(0.1) else 0)
    return make_scalar("int64" if rng.chance(0.7) else "int32", axis)


def _length(context: NodeContext) -> int:
    return context.dims(0)[context.numbers(1)[0]]


def _sums(context: NodeContext) -> Interval:
    low, high = context.range(0)
    length = _length(context)
    bounds = Interval(min(low, low * length), max(high, high * length))
    return _with_start(context, after_rounding(bounds, context.dtype, 4), 0)


def _products(context: NodeContext) -> Interval:
    low, length = context.range(0).low, _length(context)
    most = max(context.range(0).largest, context.range(0).largest ** length)
    bounds = Interval(min(low, low**length) if low >= 0 else -most, most)
    return _with_start(context, product_after_rounding(bounds, context.dtype, length), 1)


def _with_start(context: NodeContext, bounds: Interval, start: int) -> Interval:
    return hull((bounds, Interval(start, start))) if context.get("exclusive") else bounds


def _text(function: str, start: str) -> Callable[[NodeContext, Sequence[str]], str]:
    def text(context: NodeContext, names: Sequence[str]) -> str:
        x, axis = names[0], context.numbers(1)[0] % context.rank
        source = f"torch.flip({x}, ({axis},))" if context.get("reverse") else x
        found = f"torch.{function}({source}, dim={axis}, dtype={x}.dtype)"
        if context.get("exclusive"):
            first = f"torch.{start}_like({x}.narrow({axis}, 0, 1))"
            found = f"torch.cat(({first}, {found}.narrow({axis}, 0, {_length(context) - 1})), dim={axis})"
        return f"torch.flip({found}, ({axis},))" if context.get("reverse") else found

    return text


def _operator(
    name: str,
    since: int,
    dtypes: tuple[str, ...],
    values: Callable[[NodeContext], Interval],
    within: Callable[[TensorType], Interval],
    torch: Callable[[NodeContext, Sequence[str]], str],
) -> OperatorSpec:
    return OperatorSpec(
        name,
        since,
        input_specs=(PRIMARY_INPUT, ConstantInput(_axis)),
        ranks=ANY_RANK[1:],
        values=values,
        within=within,
        dtypes=dtypes,
        attribute_specs=(
            AttributeSpec("exclusive", Choice(0, 1), omit=0.4, default=0),
            AttributeSpec("reverse", Choice(0, 1), omit=0.4, default=0),
        ),
        torch=torch,
    )


_WHOLE_NUMBERS = ("int32", "int64", "uint32", "uint64")
_SUM_TEXT = _text("cumsum", "zeros")

register(
    _operator("CumSum", 11, ("float32", "float64", *_WHOLE_NUMBERS), _sums, per_element, _SUM_TEXT),
    _operator("CumSum", 14, (*FLOATS, *_WHOLE_NUMBERS), _sums, per_element, _SUM_TEXT),
    _operator(
        "CumProd", 26, (*FLOATS, *_WHOLE_NUMBERS), _products, factor_per_element, _text("cumprod", "ones")
    ),
)
