"""Reductions, whose axes are an attribute in old forms and an input in new ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fuzzing.graph.attribute_domains import Choice, Computed
from fuzzing.graph.intervals import Interval, full_range, magnitude
from fuzzing.graph.ir import Attribute
from fuzzing.graph.operator_spec import (
    ANY_RANK,
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    InputSpec,
    NodeContext,
    OperatorSpec,
    int64,
)
from fuzzing.graph.operators import register
from fuzzing.graph.rounding import (
    after_rounding,
    exponents,
    factor_per_element,
    per_element,
    product_after_rounding,
    root_per_element,
    truncated,
    widened,
)
from fuzzing.graph.types import FLOATS, Shape, TensorType

#: How often all axes are counted from the end.
_NEGATIVE = 0.1

#: How often axes are given, and are none; another attribute decides what that means.
_NONE = 0.05

_RANKS = ANY_RANK[1:]


def reduced_axes(context: NodeContext) -> set[int] | None:
    """The axes that a node reduces, counted from the front; None if they depend on the data."""
    if not context.given(1):
        given = context.get("axes") or ()
    elif context.constants[1] is None:
        return None
    else:
        given = context.numbers(1)
    if given:
        return {axis % context.rank for axis in given}
    return set() if context.get("noop_with_empty_axes") else set(range(context.rank))


def _type(context: NodeContext) -> tuple[TensorType, ...]:
    return (TensorType(context.dtype, _shape(context)),)


def _shape(context: NodeContext) -> Shape | None:
    keep = context.get("keepdims")
    if context.x.shape is None:
        return None
    axes = reduced_axes(context)
    if axes is None:
        return (None,) * context.rank if keep else None
    return reduced(context.shape, axes, keep)


def reduced(shape: Shape, axes: set[int], keep: int) -> Shape:
    """A shape without these axes, or with ones in their places."""
    if keep:
        return tuple([1 if axis in axes else dim for axis, dim in enumerate(shape)])
    return tuple([dim for axis, dim in enumerate(shape) if axis not in axes])


def _count(context: NodeContext) -> int:
    return math.prod(context.dims(0)[axis] for axis in reduced_axes(context) or ())


def _axes(context: NodeContext) -> tuple[int, ...]:
    """Some of the axes in some order; not all of them if the result must keep one."""
    rng, rank = context.rng, context.rank
    axes = rng.subset(rank)
    if len(axes) == rank and not context.get("keepdims") and context.limits.min_rank > 0:
        del axes[0]
    if rng.chance(_NEGATIVE):
        axes = [axis - rank for axis in axes]
    return tuple(axes)


def _axes_input(context: NodeContext) -> tuple[int, ...]:
    some = context.get("noop_with_empty_axes") or context.get("keepdims") or context.limits.min_rank == 0
    return () if some and context.rng.chance(_NONE) else _axes(context)


def _keepdims(context: NodeContext) -> int:
    """Draws `keepdims` before the axes."""
    all_ = context.rank == 1 or (context.degree == 1 and not context.get("noop_with_empty_axes"))
    return 1 if all_ and context.limits.min_rank > 0 else context.rng.below(2)


def _keepdims_of_attribute(context: NodeContext) -> int:
    """Draws `keepdims` after the axes, if they are given."""
    all_ = len(context.get("axes") or range(context.rank)) == context.rank
    return 1 if all_ and context.limits.min_rank > 0 else context.rng.below(2)


def _axes_attribute(context: NodeContext) -> tuple[int, ...]:
    rng = context.rng
    axes = rng.subset(context.rank)
    return tuple([axis - context.rank for axis in axes] if rng.chance(_NEGATIVE) else axes)


def is_flag(value: Attribute, context: NodeContext) -> bool:  # noqa: ARG001 - whatever the site
    """Whether it is 0 or 1."""
    return value in (0, 1)


def _are_axes(value: Attribute, context: NodeContext) -> bool:
    if not isinstance(value, tuple) or not all(isinstance(axis, int) for axis in value):
        return False
    named = [axis for axis in value if isinstance(axis, int) and -context.rank <= axis < context.rank]
    return len(named) == len(value) == len({axis % context.rank for axis in named})


class Reduction(NamedTuple):
    """The parts specific to one operator.

    values  bounds on the reduction of this many elements within an interval of an element type
    within  the domain of its elements
    before  in torch: the function of each element
    torch   in torch: the function that reduces over `dim`
    after   in torch: the function of the result
    """

    values: Callable[[Interval, int, str], Interval]
    within: Callable[[TensorType], Interval]
    before: str
    torch: str
    after: str


def _bounds(reduction: Reduction) -> Callable[[NodeContext], Interval]:
    def values(context: NodeContext) -> Interval:
        return reduction.values(context.range(0), _count(context), context.dtype)

    return values


def _text(reduction: Reduction) -> Callable[[NodeContext, Sequence[str]], str]:
    def text(context: NodeContext, names: Sequence[str]) -> str:
        axes = reduced_axes(context)
        if axes is None:
            raise LookupError(f"the axes of {context.operator.name} are no constant")
        found = reduction.before.format(names[0])
        if reduction.torch == "mean" and context.dtype not in FLOATS:
            found = f"{found}.to(torch.float64)"
        keep = bool(context.get("keepdims"))
        if reduction.torch == "prod":  # takes one axis at a time
            for axis in sorted(axes, reverse=True):
                found = f"torch.prod({found}, dim={axis}, keepdim={keep})"
        elif axes:  # torch reads no axes as all of them
            found = f"torch.{reduction.torch}({found}, dim={tuple(sorted(axes))}, keepdim={keep})"
        return f"{reduction.after.format(found)}.to({names[0]}.dtype)"

    return text


def _sum(found: Interval, count: int, dtype: str) -> Interval:
    return after_rounding(Interval(found.low * count, found.high * count), dtype, 4)


def _l2(found: Interval, count: int, dtype: str) -> Interval:
    low, high = magnitude(found)
    length = math.sqrt(count)
    return after_rounding(truncated(Interval(low * length, high * length), dtype), dtype, 4)


def _squares(found: Interval, count: int, dtype: str) -> Interval:
    low, high = magnitude(found)
    return after_rounding(Interval(low * low * count, high * high * count), dtype, 4)


def _product(found: Interval, count: int, dtype: str) -> Interval:
    largest = found.largest**count
    if found.low >= 0:
        return product_after_rounding(Interval(found.low**count, largest), dtype, count)
    return product_after_rounding(Interval(-largest, largest), dtype, count)


def _log_sum(found: Interval, count: int, dtype: str) -> Interval:
    logarithms = Interval(math.log(found.low * count), math.log(found.high * count))
    return widened(logarithms, dtype, 4)


def _log_sum_exp(found: Interval, count: int, dtype: str) -> Interval:
    more = math.log(count)
    return widened(Interval(found.low + more, found.high + more), dtype, 4)


def _logarithm_domain(type_: TensorType) -> Interval:
    high = per_element(type_).high
    return Interval(min(1e-2, high / 2), high)


def _exponent_domain(type_: TensorType) -> Interval:
    """So that the sum of the exponentials fits: the ONNX operator reference computes it explicitly."""
    low, high = exponents(type_)
    high = min(high, math.log(per_element(type_).high))
    return Interval(min(low, high - 2), high)


_ACCUMULATED = (*FLOATS, "int32", "int64", "uint32", "uint64")
_COMPARED = (*FLOATS, "int32", "int64", "int8", "uint32", "uint64", "uint8")

_KNOWN = {
    "ReduceSum": Reduction(_sum, per_element, "{0}", "sum", "{0}"),
    "ReduceMean": Reduction(
        lambda found, count, dtype: after_rounding(found, dtype, 4), per_element, "{0}", "mean", "{0}"
    ),
    "ReduceMax": Reduction(lambda found, count, dtype: found, full_range, "{0}", "amax", "{0}"),
    "ReduceMin": Reduction(lambda found, count, dtype: found, full_range, "{0}", "amin", "{0}"),
    "ReduceProd": Reduction(_product, factor_per_element, "{0}", "prod", "{0}"),
    "ReduceL1": Reduction(
        lambda found, count, dtype: _sum(magnitude(found), count, dtype),
        per_element,
        "torch.abs({0})",
        "sum",
        "{0}",
    ),
    "ReduceL2": Reduction(_l2, root_per_element, "torch.square({0})", "sum", "torch.sqrt({0})"),
    "ReduceSumSquare": Reduction(_squares, root_per_element, "torch.square({0})", "sum", "{0}"),
    "ReduceLogSum": Reduction(_log_sum, _logarithm_domain, "{0}", "sum", "torch.log({0})"),
    "ReduceLogSumExp": Reduction(_log_sum_exp, _exponent_domain, "torch.exp({0})", "sum", "torch.log({0})"),
}


def _form(name: str, since: int, as_input: bool) -> OperatorSpec:
    reduction = _KNOWN[name]
    input_specs: tuple[InputSpec, ...] = (PRIMARY_INPUT,)
    degrees: tuple[int, ...] = (1,)
    attribute_specs = (
        AttributeSpec("axes", Computed(_axes_attribute, _are_axes), omit=0.15),
        AttributeSpec("keepdims", Computed(_keepdims_of_attribute, is_flag), omit=0.5, default=1),
    )
    if as_input:
        # Mostly with axes: over all of them every shape becomes one of ones.
        input_specs = (PRIMARY_INPUT, ConstantInput(lambda context: int64(*_axes_input(context))))
        degrees = (1, 2, 2, 2, 2)
        attribute_specs = (
            AttributeSpec("noop_with_empty_axes", Choice(0, 1), omit=0.7, default=0),
            AttributeSpec("keepdims", Computed(_keepdims, is_flag), omit=0.5, default=1),
        )
    return OperatorSpec(
        name,
        since,
        input_specs=input_specs,
        degrees=degrees,
        ranks=_RANKS,
        dtypes=_dtypes(name, since),
        within=reduction.within,
        infer=_type,
        values=_bounds(reduction),
        attribute_specs=attribute_specs,
        torch=_text(reduction),
    )


def _dtypes(name: str, since: int) -> tuple[str, ...]:
    """Only floats for logarithms: ONNX lists integers until opset 28, but its Log has no meaning for them."""
    if name.startswith("ReduceLog"):
        return FLOATS
    if name in ("ReduceMax", "ReduceMin"):
        return _COMPARED if since < 20 else (*_COMPARED, "bool")
    return _ACCUMULATED


# ReduceSum took its axes as an input five opsets before the others did.
register(*(_form(name, 13, as_input=name == "ReduceSum") for name in _KNOWN))
register(*(_form(name, 18, as_input=True) for name in _KNOWN))
register(*(_form(name, 20, as_input=True) for name in ("ReduceMax", "ReduceMin")))
