"""Pad and CenterCropPad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fuzzing.graph.attribute_domains import Choice, Computed, planned_attribute
from fuzzing.graph.constants import (
    bounds,
    known_integers,
    make_scalar,
    numbers,
    optional_integers,
    requires_static_inputs,
)
from fuzzing.graph.intervals import Interval, full_range, hull
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import PRIMARY_INPUT, ConstantInput, NodeContext, OperatorSpec, int64
from fuzzing.graph.operators import register
from fuzzing.graph.operators.concat_split import max_growth
from fuzzing.graph.operators.indexing import listed
from fuzzing.graph.operators.layout import shuffled_axes
from fuzzing.graph.operators.masking import with_zero
from fuzzing.graph.types import ANY, TensorType

_RANKED = tuple(range(1, 9))

#: The largest margin (Isra, seed paper's released code).
_WIDEST = 2


# Pad
class _PadPlan(NamedTuple):
    """The axes as written, None for all of them; the margins before and behind each."""

    axes: list[int] | None
    margins: list[tuple[int, int]]


def _pad_plan(context: NodeContext) -> _PadPlan:
    rng = context.rng
    shape = context.dims(0)
    modes = ("constant", "constant", "reflect", "edge") + (("wrap",) if context.operator.since >= 19 else ())
    mode = rng.choice(modes)
    if mode != "constant" or rng.chance(0.3):
        context.attributes["mode"] = mode
    axes, written = list(range(context.rank)), None
    if context.degree == 4:
        written = shuffled_axes(context, sorted(rng.subset(context.rank)), context.rank)
        axes = [axis % context.rank for axis in written]
    left = max_growth(context)
    margins = []
    for axis in axes:
        margin = _margin(context, shape[axis], mode, left)
        left = max(1, left * shape[axis] // (shape[axis] + sum(margin)))
        margins.append(margin)
    return _PadPlan(written, margins)


def _margin(context: NodeContext, length: int, mode: str, left: int) -> tuple[int, int]:
    """Before and behind an axis. Reflect and wrap margins are at most the axis."""
    rng = context.rng
    if mode == "constant" and length > 1 and rng.chance(0.1):
        away = rng.between(1, length - 1)
        before = rng.between(0, away)
        return -before, before - away
    most = min(_WIDEST, length * (left - 1) // 2)
    if mode == "reflect":
        most = min(most, length - 1)
    elif mode == "wrap":
        most = min(most, length)
    return rng.between(0, most), rng.between(0, most)


def _pads(context: NodeContext) -> Constant:
    margins = context.plan.margins
    return int64(*[before for before, _ in margins], *[behind for _, behind in margins])


def _pad_value(context: NodeContext) -> Constant:
    """The padding value; unused in the other modes, but allowed."""
    low = 0 if context.dtype.startswith(("uint", "bool")) else -2
    return make_scalar(context.dtype, context.rng.between(low, 1 if context.dtype == "bool" else 2))


def _margins(context: NodeContext) -> dict[int, tuple[int, int]] | None:
    """The margins of each axis that has any; None if they are not constants."""
    pads, axes = known_integers(context, 1), optional_integers(context, 3, range(context.rank))
    if pads is None or axes is None:
        return None
    half = len(pads) // 2
    margins = zip(pads[:half], pads[half:], strict=True)
    return {axis % context.rank: margin for axis, margin in zip(axes, margins, strict=True)}


def _padded(context: NodeContext) -> tuple[TensorType, ...]:
    margins = _margins(context)
    if margins is None:
        return (TensorType(context.dtype, (None,) * context.rank),)
    shape = list(context.shape)
    for axis, margin in margins.items():
        length = shape[axis]
        shape[axis] = None if length is None else length + sum(margin)
    return (TensorType(context.dtype, tuple(shape)),)


def _pad_bounds(context: NodeContext) -> Interval:
    if context.get("mode") != "constant":
        return context.range(0)
    value = context.constants[2] if context.given(2) else None
    return hull((context.range(0), Interval(0, 0) if value is None else bounds(value)))


def _folded(place: int, length: int, mode: str) -> int:
    """The element that a position outside of the axis maps to."""
    if mode == "edge":
        return min(max(place, 0), length - 1)
    if mode == "wrap":
        return place % length
    period = max(1, 2 * (length - 1))
    place %= period
    return min(place, period - place)


def _torch_pad(context: NodeContext, names: Sequence[str]) -> str:
    """Constant margins use torch's own pad; the other modes, which torch has for some ranks, use indices."""
    margins, mode = _margins(context) or {}, context.get("mode")
    if mode == "constant":
        flat = [margin for axis in range(context.rank)[::-1] for margin in margins.get(axis, (0, 0))]
        constant = context.constants[2] if context.given(2) else None
        value = 0 if constant is None else numbers(constant).item()
        return f"torch.nn.functional.pad({names[0]}, {flat}, value={value!r})"
    text = names[0]
    for axis, (before, behind) in margins.items():
        length = context.dims(0)[axis]
        if before or behind:
            places = [_folded(place, length, mode) for place in range(-before, length + behind)]
            text += f".index_select({axis}, {listed(places)})"
    return text


def _pad(since: int) -> OperatorSpec:
    modes = ("constant", "reflect", "edge") + (("wrap",) if since >= 19 else ())
    # int32 is allowed, but onnx's own shape inference (1.23) refuses to read axes of it.
    axes = ConstantInput(lambda context: int64(*context.plan.axes))
    input_specs = (PRIMARY_INPUT, ConstantInput(_pads), ConstantInput(_pad_value, omit=0.5), axes)
    return OperatorSpec(
        "Pad",
        since,
        input_specs=input_specs if since >= 18 else input_specs[:3],
        degrees=(2, 3, 4) if since >= 18 else (2, 3),
        ranks=_RANKED,
        infer=_padded,
        values=_pad_bounds,
        within=full_range,
        dtypes=ANY,
        plan=_pad_plan,
        attribute_specs=(planned_attribute("mode", "constant", Choice(*modes)),),
        torch=requires_static_inputs(_torch_pad),
    )


# CenterCropPad
def _crop_plan(context: NodeContext) -> tuple[int, ...]:
    rng = context.rng
    axes = list(range(context.rank))
    if rng.chance(0.7):
        axes = sorted(rng.subset(context.rank))
        context.attributes["axes"] = tuple(shuffled_axes(context, axes, context.rank))
    left, lengths = max_growth(context), []
    for axis in _crop_axes(context):
        length = context.dims(0)[axis]
        most = min(max(length, context.limits.max_dim), length * left)
        lengths.append(rng.between(1, most))
        left = max(1, left * length // max(length, lengths[-1]))
    return tuple(lengths)


def _crop_axes(context: NodeContext) -> list[int]:
    axes = context.get("axes")
    return list(range(context.rank)) if axes is None else [axis % context.rank for axis in axes]


def _cropped(context: NodeContext) -> tuple[TensorType, ...]:
    lengths = known_integers(context, 1)
    axes = _crop_axes(context)
    shape = list(context.shape)
    for place, axis in enumerate(axes):
        shape[axis] = lengths[place] if lengths else None
    return (TensorType(context.dtype, tuple(shape)),)


def _torch_crop(context: NodeContext, names: Sequence[str]) -> str:
    """The middle of what is too long; zeros on both sides of what is too short, one more behind."""
    margins = {}
    for axis, length in zip(_crop_axes(context), context.numbers(1), strict=True):
        change = length - context.dims(0)[axis]
        before = -(-change // 2) if change < 0 else change // 2
        margins[axis] = (before, change - before)
    flat = [margin for axis in range(context.rank)[::-1] for margin in margins.get(axis, (0, 0))]
    return f"torch.nn.functional.pad({names[0]}, {flat})"


def _each_axis_once(value: object, context: NodeContext) -> bool:
    if not isinstance(value, tuple) or not all(-context.rank <= axis < context.rank for axis in value):
        return False
    return len({axis % context.rank for axis in value}) == len(value)


register(
    _pad(13), _pad(18), _pad(19),
    # int32 lengths are allowed, but ONNX's own expansion of the operator mixes them with int64.
    OperatorSpec("CenterCropPad", 18,
                 input_specs=(PRIMARY_INPUT, ConstantInput(lambda context: int64(*context.plan))),
                 ranks=_RANKED, infer=_cropped, values=with_zero, within=full_range, dtypes=ANY,
                 plan=_crop_plan,
                 attribute_specs=(planned_attribute("axes",
                                                    domain=Computed(lambda context: (0,), _each_axis_once)),),
                 torch=requires_static_inputs(_torch_crop)),
)  # fmt: skip
