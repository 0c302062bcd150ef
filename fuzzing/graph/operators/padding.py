"""Operators that add a margin to a tensor or take one off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import Interval, hull, whole
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import bounds, numbers, optional_numbers, scalar, spelled, whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.indexing import listed
from fuzzing.graph.operators.joining import growth
from fuzzing.graph.operators.layout import shuffled_axes
from fuzzing.graph.operators.masking import with_zero
from fuzzing.graph.site import Site, int64
from fuzzing.graph.types import ANY, TensorType

_RANKED = tuple(range(1, 9))

#: The largest margin (Isra, seed paper's released code).
_WIDEST = 2

# Pad


class _PadPlan(NamedTuple):
    """The axes as they are written down, None for all of them; the margins before and behind each."""

    axes: list[int] | None
    margins: list[tuple[int, int]]


def _pad_plan(site: Site) -> _PadPlan:
    draws = site.draws
    shape = site.dims(0)
    modes = ("constant", "constant", "reflect", "edge") + (("wrap",) if site.operator.since >= 19 else ())
    mode = draws.choice(modes)
    if mode != "constant" or draws.chance(0.3):
        site.attributes["mode"] = mode
    axes, written = list(range(site.rank)), None
    if site.degree == 4:
        written = shuffled_axes(site, sorted(draws.subset(site.rank)), site.rank)
        axes = [axis % site.rank for axis in written]
    left = growth(site)
    margins = []
    for axis in axes:
        margin = _margin(site, shape[axis], mode, left)
        left = max(1, left * shape[axis] // (shape[axis] + sum(margin)))
        margins.append(margin)
    return _PadPlan(written, margins)


def _margin(site: Site, length: int, mode: str, left: int) -> tuple[int, int]:
    """Before and behind an axis. A mirror does not reach farther than the axis, nor does a torus here."""
    draws = site.draws
    if mode == "constant" and length > 1 and draws.chance(0.1):
        away = draws.between(1, length - 1)
        before = draws.between(0, away)
        return -before, before - away
    most = min(_WIDEST, length * (left - 1) // 2)
    if mode == "reflect":
        most = min(most, length - 1)
    elif mode == "wrap":
        most = min(most, length)
    return draws.between(0, most), draws.between(0, most)


def _pads(site: Site) -> Constant:
    margins = site.plan.margins
    return int64(*[before for before, _ in margins], *[behind for _, behind in margins])


def _pad_value(site: Site) -> Constant:
    """What is written into the margin; no use in the other modes, but allowed."""
    low = 0 if site.dtype.startswith(("uint", "bool")) else -2
    return scalar(site.dtype, site.draws.between(low, 1 if site.dtype == "bool" else 2))


def _margins(site: Site) -> dict[int, tuple[int, int]] | None:
    """The margins of each axis that has any; None if they are not constants."""
    pads, axes = whole_numbers(site, 1), optional_numbers(site, 3, range(site.rank))
    if pads is None or axes is None:
        return None
    half = len(pads) // 2
    margins = zip(pads[:half], pads[half:], strict=True)
    return {axis % site.rank: margin for axis, margin in zip(axes, margins, strict=True)}


def _padded(site: Site) -> tuple[TensorType, ...]:
    margins = _margins(site)
    if margins is None:
        return (TensorType(site.dtype, (None,) * site.rank),)
    shape = list(site.shape)
    for axis, margin in margins.items():
        length = shape[axis]
        shape[axis] = None if length is None else length + sum(margin)
    return (TensorType(site.dtype, tuple(shape)),)


def _pad_bounds(site: Site) -> Interval:
    if site.get("mode") != "constant":
        return site.range(0)
    value = site.constants[2] if site.given(2) else None
    return hull((site.range(0), Interval(0, 0) if value is None else bounds(value)))


def _folded(place: int, length: int, mode: str) -> int:
    """Where a place outside of the axis finds its element."""
    if mode == "edge":
        return min(max(place, 0), length - 1)
    if mode == "wrap":
        return place % length
    period = max(1, 2 * (length - 1))
    place %= period
    return min(place, period - place)


def _torch_pad(site: Site, names: Sequence[str]) -> str:
    """A constant margin is torch's own; the other modes, which torch has for some ranks, are picked."""
    margins, mode = _margins(site) or {}, site.get("mode")
    if mode == "constant":
        flat = [margin for axis in range(site.rank)[::-1] for margin in margins.get(axis, (0, 0))]
        constant = site.constants[2] if site.given(2) else None
        value = 0 if constant is None else numbers(constant).item()
        return f"torch.nn.functional.pad({names[0]}, {flat}, value={value!r})"
    text = names[0]
    for axis, (before, behind) in margins.items():
        length = site.dims(0)[axis]
        if before or behind:
            places = [_folded(place, length, mode) for place in range(-before, length + behind)]
            text += f".index_select({axis}, {listed(places)})"
    return text


def _pad(since: int) -> Operator:
    modes = ("constant", "reflect", "edge") + (("wrap",) if since >= 19 else ())
    # int32 is allowed, but onnx's own shape inference (1.23) refuses to read axes of it.
    axes = Auxiliary(lambda site: int64(*site.plan.axes))
    slots = (LEAD, Auxiliary(_pads), Auxiliary(_pad_value, omit=0.5), axes)
    return Operator(
        "Pad",
        since,
        slots=slots if since >= 18 else slots[:3],
        degrees=(2, 3, 4) if since >= 18 else (2, 3),
        ranks=_RANKED,
        infer=_padded,
        values=_pad_bounds,
        within=whole,
        dtypes=ANY,
        plan=_pad_plan,
        settings=(planned("mode", "constant", Choice(*modes)),),
        torch=spelled(_torch_pad),
    )


# CenterCropPad


def _crop_plan(site: Site) -> tuple[int, ...]:
    """Draws the axes; returns the lengths they get."""
    draws = site.draws
    axes = list(range(site.rank))
    if draws.chance(0.7):
        axes = sorted(draws.subset(site.rank))
        site.attributes["axes"] = tuple(shuffled_axes(site, axes, site.rank))
    left, lengths = growth(site), []
    for axis in _crop_axes(site):
        length = site.dims(0)[axis]
        most = min(max(length, site.limits.max_dim), length * left)
        lengths.append(draws.between(1, most))
        left = max(1, left * length // max(length, lengths[-1]))
    return tuple(lengths)


def _crop_axes(site: Site) -> list[int]:
    axes = site.get("axes")
    return list(range(site.rank)) if axes is None else [axis % site.rank for axis in axes]


def _cropped(site: Site) -> tuple[TensorType, ...]:
    lengths = whole_numbers(site, 1)
    axes = _crop_axes(site)
    shape = list(site.shape)
    for place, axis in enumerate(axes):
        shape[axis] = lengths[place] if lengths else None
    return (TensorType(site.dtype, tuple(shape)),)


def _torch_crop(site: Site, names: Sequence[str]) -> str:
    """The middle of what is too long; zeros on both sides of what is too short, one more behind."""
    margins = {}
    for axis, length in zip(_crop_axes(site), site.numbers(1), strict=True):
        change = length - site.dims(0)[axis]
        before = -(-change // 2) if change < 0 else change // 2
        margins[axis] = (before, change - before)
    flat = [margin for axis in range(site.rank)[::-1] for margin in margins.get(axis, (0, 0))]
    return f"torch.nn.functional.pad({names[0]}, {flat})"


def _each_axis_once(value: object, site: Site) -> bool:
    if not isinstance(value, tuple) or not all(-site.rank <= axis < site.rank for axis in value):
        return False
    return len({axis % site.rank for axis in value}) == len(value)


register(
    _pad(13), _pad(18), _pad(19),
    # int32 lengths are allowed, but ONNX's own expansion of the operator mixes them with int64.
    Operator("CenterCropPad", 18, slots=(LEAD, Auxiliary(lambda site: int64(*site.plan))), ranks=_RANKED,
             infer=_cropped, values=with_zero, within=whole, dtypes=ANY, plan=_crop_plan,
             settings=(planned("axes", domain=Made(lambda site: (0,), _each_axis_once)),),
             torch=spelled(_torch_crop)),
)  # fmt: skip
