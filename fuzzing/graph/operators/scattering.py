"""Scatter operators with constant indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fuzzing.graph.attribute_domains import Axis, Choice, Computed, planned_attribute
from fuzzing.graph.constants import make_constant, requires_static_inputs
from fuzzing.graph.intervals import BOOLEAN, FULL_RANGES, Interval, add, full_range, hull, multiply
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    DataInput,
    NodeContext,
    OperatorSpec,
    int64,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.concat_split import all_ranges, primary_type_range, repeat_numbers
from fuzzing.graph.operators.indexing import (
    constant,
    element_indices,
    flat_places,
    listed,
    nonnegative_indices,
    tuples,
)
from fuzzing.graph.rounding import share, widened
from fuzzing.graph.types import ANY, Shape, TensorType

_RANKED = tuple(range(1, 9))


def _reduction(since: int) -> AttributeSpec:
    """Combines an update and the element; booleans have no arithmetic."""
    names = ("none", "add", "mul") + (("max", "min") if since >= 18 else ())

    def draw(context: NodeContext) -> Attribute:
        return "none" if context.dtype == "bool" else context.rng.choice(names)

    return AttributeSpec(
        "reduction", Computed(draw, lambda value, context: value in names), omit=0.3, default="none"
    )


#: What leaves room for as much again: sums must stay within what the element type may carry.
_PART = {dtype: BOOLEAN if dtype == "bool" else share(2.5)(TensorType(dtype, ())) for dtype in ANY}


def _part(type_: TensorType) -> Interval:
    return _PART[type_.dtype]


def _hits(context: NodeContext) -> int:
    """The most updates that may meet in one element."""
    shape = context.dims(1)
    return max(
        1, shape[context.axis()] if context.operator.name == "ScatterElements" else math.prod(shape[:-1])
    )


def _updates_within(context: NodeContext) -> Interval:
    reduction = context.get("reduction")
    if reduction == "mul":  # powers of it do not grow
        return Interval(max(FULL_RANGES[context.dtype].low, -1), 1)
    allowed = _part(context.x)
    if reduction == "add":
        hits = _hits(context)
        return Interval(math.ceil(allowed.low / hits), math.floor(allowed.high / hits))
    return full_range(context.x) if reduction in (None, "none") else allowed


def _values(context: NodeContext) -> Interval:
    there, updates = context.range(0), context.range(2)
    reduction = context.get("reduction")
    if reduction == "add":
        hits = _hits(context)
        total = Interval(min(0.0, updates.low * hits), max(0.0, updates.high * hits))
        return widened(add(there, total), context.dtype, max(there.largest, total.largest))
    if reduction == "mul":
        factor = max(1.0, updates.largest) ** _hits(context)
        return hull((there, multiply(there, Interval(-factor if updates.low < 0 else 0.0, factor))))
    return hull((there, updates))


def _distinct(context: NodeContext) -> bool:
    """Whether no element may be written twice: without a reduction the order would matter."""
    return context.get("reduction") in (None, "none")


def _nd_indices(context: NodeContext) -> Constant:
    rng, limits = context.rng, context.limits
    shape = context.dims(0)
    depth = rng.between(1, context.rank)
    left = math.prod(shape[:depth])
    primary = []
    for _ in range(rng.between(1, 2)):
        primary.append(rng.between(1, max(1, min(limits.max_dim, left))))
        left //= primary[-1]
    flat = tuples(context, shape[:depth], math.prod(primary), _distinct(context))
    return make_constant("int64", flat, (*primary, depth))


def _nd_updates(context: NodeContext) -> Shape:
    indices = context.dims(1)
    return (*indices[:-1], *context.shape[indices[-1] :])


_TORCH_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _torch_elements(context: NodeContext, names: Sequence[str]) -> str:
    axis, reduction = context.axis(), context.get("reduction")
    indices = listed(nonnegative_indices(context, 1, context.dims(0)[axis]))
    if _distinct(context):
        return f"torch.scatter({names[0]}, {axis}, {indices}, {names[2]})"
    how = _TORCH_REDUCTIONS[reduction]
    return f"torch.scatter_reduce({names[0]}, {axis}, {indices}, {names[2]}, {how!r})"


def _torch_nd(context: NodeContext, names: Sequence[str]) -> str:
    array, shape = constant(context, 1), context.dims(0)
    depth = array.shape[-1]
    rows, width = math.prod(shape[:depth]), math.prod(shape[depth:])
    places = flat_places(array, shape[:depth]).reshape(-1)
    source = f"{names[0]}.reshape({rows}, {width})"
    updates = f"{names[2]}.reshape({len(places)}, {width})"
    if _distinct(context):
        text = f"{source}.index_copy(0, {listed(places)}, {updates})"
    else:
        where = f"{listed(places)}.reshape(-1, 1).expand({len(places)}, {width})"
        how = _TORCH_REDUCTIONS[context.get("reduction")]
        text = f"torch.scatter_reduce({source}, 0, {where}, {updates}, {how!r})"
    return f"{text}.reshape({list(shape)})"


# TensorScatter
def _sequence_axis(context: NodeContext) -> int:
    axis = context.rng.between(1, context.rank - 1)
    return axis - context.rank if context.rng.chance(0.3) else axis


def _cache_plan(context: NodeContext) -> None:
    """ONNX's default axis is the last but one, which is the batch for rank 2."""
    if context.rank == 2 or context.rng.chance(0.5):
        context.attributes["axis"] = _sequence_axis(context)


def _new_entries(context: NodeContext) -> Shape:
    shape, axis = list(context.dims(0)), context.axis()
    shape[axis] = context.rng.between(1, shape[axis])
    return tuple(shape)


def _write_indices(context: NodeContext) -> Constant:
    """The start of each sample; anywhere in circular mode."""
    axis = context.axis()
    length = context.dims(0)[axis]
    last = length - 1 if context.get("mode") == "circular" else length - context.dims(1)[axis]
    return int64(*repeat_numbers(context, 0, last, context.dims(0)[0]))


def _torch_cache(context: NodeContext, names: Sequence[str]) -> str:
    axis = context.axis()
    shape = context.dims(1)
    starts = context.numbers(2) if context.given(2) else [0] * shape[0]
    places = [[(start + step) % context.dims(0)[axis] for step in range(shape[axis])] for start in starts]
    lying = [1] * context.rank
    lying[0], lying[axis] = shape[0], shape[axis]
    where = f"{listed(places)}.reshape({lying}).expand({list(shape)})"
    return f"torch.scatter({names[0]}, {axis}, {where}, {names[1]})"


def _scatter(name: str, since: int, indices: Callable[[NodeContext], Constant],
             updates: Callable[[NodeContext], Shape],
             torch: Callable[[NodeContext, Sequence[str]], str]) -> OperatorSpec:  # fmt: skip
    axis = (AttributeSpec("axis", Axis(), omit=0.3, default=0),) if name == "ScatterElements" else ()
    reductions = (_reduction(since),) if since >= 16 else ()
    return OperatorSpec(
        name,
        since,
        input_specs=(PRIMARY_INPUT, ConstantInput(indices), DataInput(updates, within=_updates_within)),
        ranks=_RANKED,
        within=_part if reductions else full_range,
        values=_values,
        dtypes=ANY,
        attribute_specs=(*axis, *reductions),
        torch=requires_static_inputs(torch),
    )


def _elements(since: int) -> OperatorSpec:
    return _scatter("ScatterElements", since, lambda context: element_indices(context, _distinct(context)),
                    lambda context: context.dims(1), _torch_elements)  # fmt: skip


register(
    _elements(13), _elements(16), _elements(18),
    *(_scatter("ScatterND", since, _nd_indices, _nd_updates, _torch_nd) for since in (13, 16, 18)),
    OperatorSpec("TensorScatter", 24,
                 input_specs=(PRIMARY_INPUT, DataInput(_new_entries, within=primary_type_range),
                              ConstantInput(_write_indices)), degrees=(2, 3), ranks=tuple(range(2, 9)),
                 values=all_ranges, within=full_range, dtypes=ANY, plan=_cache_plan,
                 attribute_specs=(planned_attribute("axis", -2,
                                                    Computed(_sequence_axis,
                                                             lambda value, context: isinstance(value, int))),
                                  AttributeSpec("mode", Choice("linear", "circular"), omit=0.3,
                                                default="linear")),
                 torch=requires_static_inputs(_torch_cache)),
)  # fmt: skip
