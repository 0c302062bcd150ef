"""Operators that read images at places between their elements."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.draws import Draws
from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import Interval, hull
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.literals import spelled, whole_numbers
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.joining import growth
from fuzzing.graph.rounding import rounded, share
from fuzzing.graph.site import Limits, Site, int64
from fuzzing.graph.types import FLOATS, Shape, TensorType

#: What a cubic curve through four values of magnitude 1 may reach, for each axis: 1 + |a| / 2 with ONNX's
#: a = -0.75 (`resizing.overshoot` says why), and a little for rounding.
_CUBIC = 1.38

_BUT_BFLOAT16 = tuple(dtype for dtype in FLOATS if dtype != "bfloat16")


# GridSample


def _modes(linear: str, nearest: str, cubic: str) -> Made:
    """How to interpolate; cubic curves are specified for any number of axes and exist for two."""
    names = (linear, nearest, cubic)

    def draw(site: Site) -> Attribute:
        return site.draws.choice(names if site.rank == 4 else names[:2])

    return Made(draw, lambda value, site: value in names)


def _grid(site: Site) -> Shape:
    """Where to read: a point for each element of the output."""
    draws = site.draws
    left = growth(site) * site.x.elements // (site.dims(0)[0] * site.dims(0)[1])
    lengths = []
    for _ in range(site.rank - 2):
        lengths.append(draws.between(1, max(1, min(site.limits.max_dim, left))))
        left //= lengths[-1]
    return (site.shape[0], *lengths, site.rank - 2)


def _grid_within(_site: Site) -> Interval:
    """The image lies in -1 to 1; a little beyond is padding."""
    return Interval(-1.5, 1.5)


def _sampled(site: Site) -> tuple[TensorType, ...]:
    points = site.type(1).shape or (None,) * site.rank
    return (TensorType(site.dtype, (*site.shape[:2], *points[1:-1])),)


def _sampled_bounds(site: Site) -> Interval:
    found = rounded(site.range(0), site.dtype)
    if site.get("mode") in ("bicubic", "cubic"):
        largest = found.largest * _CUBIC**2
        return Interval(-largest, largest)
    return found if site.get("padding_mode") in ("border", "reflection") else hull((found, Interval(0, 0)))


_TORCH_MODES = {"linear": "bilinear", "cubic": "bicubic"}


def _torch_sample(site: Site, names: Sequence[str]) -> str:
    mode = site.get("mode")
    return (
        f"torch.nn.functional.grid_sample({names[0]}, {names[1]}, mode={_TORCH_MODES.get(mode, mode)!r}, "
        f"padding_mode={site.get('padding_mode')!r}, align_corners={bool(site.get('align_corners'))})"
    )


def _grid_sample(since: int, ranks: tuple[int, ...], dtypes: tuple[str, ...], *modes: str) -> Operator:
    return Operator(
        "GridSample",
        since,
        slots=(LEAD, Data(_grid, within=_grid_within)),
        ranks=ranks,
        infer=_sampled,
        values=_sampled_bounds,
        within=share(2),
        dtypes=dtypes,
        settings=(
            Setting("mode", _modes(*modes), omit=0.2, default=modes[0]),
            Setting("padding_mode", Choice("zeros", "border", "reflection"), omit=0.2, default="zeros"),
            Setting("align_corners", Choice(0, 1), omit=0.3, default=0),
        ),
        torch=_torch_sample,
    )


# AffineGrid


def _affine(shape: tuple[int, ...]) -> bool:
    return shape[1:] in ((2, 3), (3, 4))


def _fresh_affine(draws: Draws, limits: Limits) -> tuple[int, ...]:
    batch = draws.between(max(1, limits.min_dim), max(1, limits.max_dim))
    return (batch, *draws.choice(((2, 3), (2, 3), (3, 4))))


def _image_size(site: Site) -> Constant:
    """Batch, channels (which do not count), and lengths; 1 has no two corners to be aligned."""
    draws = site.draws
    axes = site.dims(0)[1]
    lengths = [draws.between(2, max(2, site.limits.max_dim)) for _ in range(axes)]
    return int64(site.dims(0)[0], draws.between(1, max(1, site.limits.max_dim)), *lengths)


def _affine_type(site: Site) -> tuple[TensorType, ...]:
    size, batch = whole_numbers(site, 1), site.shape[0]
    if size is None:
        axes = site.shape[1]
        return (TensorType(site.dtype, None if axes is None else (batch, *(None,) * axes, axes)),)
    return (TensorType(site.dtype, (size[0], *size[2:], len(size) - 2)),)


def _affine_bounds(site: Site) -> Interval:
    """Coordinates lie in -1 to 1: so many terms, one for each axis and one more."""
    largest = site.range(0).largest * site.dims(0)[2]
    return rounded(Interval(-largest, largest), site.dtype)


def _torch_affine(site: Site, names: Sequence[str]) -> str:
    return (
        f"torch.nn.functional.affine_grid({names[0]}, {site.numbers(1)}, "
        f"align_corners={bool(site.get('align_corners'))})"
    )


register(
    _grid_sample(16, (4,), _BUT_BFLOAT16, "bilinear", "nearest", "bicubic"),
    _grid_sample(20, (4, 5), _BUT_BFLOAT16, "linear", "nearest", "cubic"),
    _grid_sample(22, (4, 5), FLOATS, "linear", "nearest", "cubic"),
    Operator("AffineGrid", 20, slots=(LEAD, Auxiliary(_image_size)), ranks=(3,), takes=_affine,
             fresh=_fresh_affine, infer=_affine_type, values=_affine_bounds, within=share(4), dtypes=FLOATS,
             settings=(Setting("align_corners", Choice(0, 1), omit=0.3, default=0),),
             torch=spelled(_torch_affine)),
)  # fmt: skip
