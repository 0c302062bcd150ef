"""Concat, Split, Expand and Tile."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Axis, Computed, IntRange, planned_attribute
from fuzzing.graph.constants import known_integers, requires_static_inputs
from fuzzing.graph.intervals import Interval, full_range, hull
from fuzzing.graph.ir import Constant
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
from fuzzing.graph.operators.arithmetic import broadcast
from fuzzing.graph.types import ANY, Dim, Shape, TensorType

_RANKED = tuple(range(1, 9))


def max_growth(context: NodeContext) -> int:
    """The factor by which the primary input may grow; at least 1."""
    return max(1, context.limits.max_elements // max(1, context.x.elements))


def repeat_numbers(context: NodeContext, low: int, high: int, count: int) -> list[int]:
    """`count` integers between two bounds; long lists repeat their first items."""
    drawn = [context.rng.between(low, high) for _ in range(min(count, 32))]
    return [drawn[place % 32] for place in range(count)]


def primary_type_range(context: NodeContext) -> Interval:
    """All values of the primary input's element type."""
    return full_range(context.x)


def all_ranges(context: NodeContext) -> Interval:
    """Bounds on elements that each come from one of the data inputs."""
    return hull(range_ for range_ in context.ranges if range_ is not None)


# Concat
def _concat_axis(context: NodeContext) -> int:
    """Any axis; for a large tensor the longest, along which a further slice adds least."""
    if context.degree <= max_growth(context):
        axis = context.rng.below(context.rank)
        return axis - context.rank if context.rng.chance(0.1) else axis
    return context.shape.index(max(dim or 0 for dim in context.shape))


def _slices(context: NodeContext) -> Shape:
    axis = context.axis()
    if context.degree > max_growth(context):
        length = 1
    elif context.rng.chance(0.7):
        return context.shape
    else:
        length = context.rng.between(context.limits.min_dim, context.limits.max_dim)
    return (*context.shape[:axis], length, *context.shape[axis + 1 :])


def _joined(context: NodeContext) -> tuple[TensorType, ...]:
    axis = context.axis()
    shapes = [type_.shape for type_ in context.types if type_ is not None and type_.shape is not None]
    dims = [_same(lengths) for lengths in zip(*shapes, strict=True)]
    along = [shape[axis] for shape in shapes]
    known = [dim for dim in along if dim is not None]
    dims[axis] = sum(known) if len(known) == context.degree else None
    return (TensorType(context.dtype, tuple(dims)),)


def _same(lengths: Sequence[Dim]) -> Dim:
    return next((dim for dim in lengths if dim is not None), None)


def _torch_concat(context: NodeContext, names: Sequence[str]) -> str:
    return f"torch.cat([{', '.join(names)}], {context.get('axis')})"


# Split
def _split_plan(context: NodeContext) -> list[int]:
    """Draws the axis and the number of parts; returns their lengths. Only axes that allow it are chosen."""
    rng = context.rng
    if rng.chance(0.5):
        context.attributes["axis"] = Axis().draw(context)
    length = context.dims(0)[context.axis()]
    most = max(1, min(length, context.limits.max_outputs))
    if context.degree == 2:
        parts = _composition(context, length, rng.between(min(2, most), most))
    elif context.operator.since >= 18:
        counts = [n for n in range(1, most + 1) if -(-length // n) * (n - 1) < max(length, 1)]
        count = rng.choice(counts[1:] or counts)
        context.attributes["num_outputs"] = count
        parts = _even(length, count)
    else:
        counts = [n for n in range(1, most + 1) if length % n == 0]
        parts = _even(length, rng.choice(counts[1:] or counts))
    context.outputs = len(parts)
    return parts


def _composition(context: NodeContext, length: int, count: int) -> list[int]:
    """Positive lengths that add up to the total; all zero only for a total of zero."""
    if context.limits.min_dim == 0:
        cuts = sorted(context.rng.below(length + 1) for _ in range(count - 1))
    else:
        cuts = sorted(place + 1 for place in context.rng.permutation(max(length - 1, 0))[: count - 1])
    return [end - start for start, end in zip([0, *cuts], [*cuts, length], strict=True)]


def _even(length: int, count: int) -> list[int]:
    """Equal lengths, the last one the remainder (ONNX operator reference, Split-18)."""
    each = -(-length // count)
    return [each] * (count - 1) + [length - each * (count - 1)]


def _parts(context: NodeContext) -> list[Dim]:
    length = context.shape[context.axis()]
    if context.given(1):
        lengths = known_integers(context, 1)
        return [None] * context.outputs if lengths is None else list(lengths)
    count = context.get("num_outputs") or context.outputs
    return [None] * count if length is None else list(_even(length, count))


def _split(context: NodeContext) -> tuple[TensorType, ...]:
    axis = context.axis()
    before, after = context.shape[:axis], context.shape[axis + 1 :]
    return tuple([TensorType(context.dtype, (*before, part, *after)) for part in _parts(context)])


def _torch_split(context: NodeContext, names: Sequence[str]) -> str:
    text = f"torch.split({names[0]}, {_parts(context)}, {context.axis()})"
    return f"{text}[0]" if context.outputs == 1 else text


# Expand
def _expanded_entries(context: NodeContext) -> Constant:
    """Isra's: lengths of 1 change half the time. Beyond Isra: further axes, axes omitted."""
    rng, limits = context.rng, context.limits
    left = max_growth(context)
    entries = []
    for dim in context.dims(0):
        entry = 1 if rng.chance(0.5) else dim
        if dim == 1 and rng.chance(0.5):
            entry = rng.between(1, max(1, min(limits.max_dim, left)))
            left //= entry
        entries.append(entry)
    if context.rank < limits.max_rank and rng.chance(0.2):
        for _ in range(rng.between(1, limits.max_rank - context.rank)):
            entries.insert(0, rng.between(1, max(1, min(limits.max_dim, left))))
            left //= entries[0]
    elif rng.chance(0.1):
        while entries and entries[0] in (1, context.shape[-len(entries)]):
            del entries[0]
    return int64(*entries)


def _expanded(context: NodeContext) -> tuple[TensorType, ...]:
    entries = known_integers(context, 1)
    if entries is not None:
        return (TensorType(context.dtype, broadcast(context.shape, tuple(entries))),)
    count = (context.type(1).shape or (None,))[0]
    return (TensorType(context.dtype, None if count is None else (None,) * max(count, context.rank)),)


def _torch_expand(context: NodeContext, names: Sequence[str]) -> str:
    return f"{names[0]}.expand({list(_expanded(context)[0].lengths)})"


# Tile
def _repeats(context: NodeContext) -> Constant:
    """Isra's 1 to 3 for each axis, within the size limit, axes visited in random order."""
    left = max_growth(context)
    repeats = [1] * context.rank
    for axis in context.rng.permutation(context.rank):
        repeats[axis] = context.rng.between(1, max(1, min(3, left)))
        left //= repeats[axis]
    if repeats and context.limits.min_dim == 0 and context.rng.chance(0.1):
        repeats[context.rng.below(context.rank)] = 0
    return int64(*repeats)


def _tiled(context: NodeContext) -> tuple[TensorType, ...]:
    repeats = known_integers(context, 1)
    if repeats is None:
        return (TensorType(context.dtype, (None,) * context.rank),)
    shape = [None if dim is None else dim * by for dim, by in zip(context.shape, repeats, strict=True)]
    return (TensorType(context.dtype, tuple(shape)),)


register(
    OperatorSpec("Concat", 13,
                 input_specs=(PRIMARY_INPUT, DataInput(_slices, within=primary_type_range, many=True)),
                 degrees=(1, 2, 3, 4, 5), ranks=_RANKED, infer=_joined, values=all_ranges, within=full_range,
                 dtypes=ANY, empty=True, attribute_specs=(AttributeSpec("axis", Computed(_concat_axis)),),
                 torch=_torch_concat),
    OperatorSpec("Split", 13,
                 input_specs=(PRIMARY_INPUT, ConstantInput(lambda context: int64(*context.plan))),
                 degrees=(1, 2), ranks=_RANKED, plan=_split_plan, infer=_split, within=full_range, dtypes=ANY,
                 empty=True, attribute_specs=(planned_attribute("axis", 0, Axis()),),
                 torch=requires_static_inputs(_torch_split)),
    # No empty tensors: onnxruntime refuses `num_outputs` along an axis of length 0, perhaps the only one.
    OperatorSpec("Split", 18,
                 input_specs=(PRIMARY_INPUT, ConstantInput(lambda context: int64(*context.plan))),
                 degrees=(1, 2),
             ranks=_RANKED, plan=_split_plan, infer=_split, within=full_range, dtypes=ANY,
             attribute_specs=(planned_attribute("axis", 0, Axis()),
                       planned_attribute("num_outputs",
                               domain=IntRange(1, lambda context: max(1, context.dims(0)[context.axis()])))),
             torch=requires_static_inputs(_torch_split)),
    OperatorSpec("Expand", 13, input_specs=(PRIMARY_INPUT, ConstantInput(_expanded_entries)), infer=_expanded,
                 within=full_range, dtypes=ANY, empty=True, torch=requires_static_inputs(_torch_expand)),
    OperatorSpec("Tile", 13, input_specs=(PRIMARY_INPUT, ConstantInput(_repeats)), infer=_tiled,
                 within=full_range, dtypes=ANY, empty=True,
                 torch=requires_static_inputs(
                     lambda context, names: f"{names[0]}.tile({context.numbers(1)})")),
)  # fmt: skip
