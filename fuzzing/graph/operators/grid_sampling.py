"""GridSample and AffineGrid."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Choice, Computed
from fuzzing.graph.constants import known_integers, requires_static_inputs
from fuzzing.graph.intervals import Interval, hull
from fuzzing.graph.ir import Attribute, Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    DataInput,
    GraphLimits,
    NodeContext,
    OperatorSpec,
    int64,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.concat_split import max_growth
from fuzzing.graph.rounding import after_rounding, share
from fuzzing.graph.types import FLOATS, Shape, TensorType
from fuzzing.rng import Rng

#: What a cubic curve through four values of magnitude 1 may reach, for each axis: 1 + |a| / 2 with ONNX's
#: a = -0.75 (see `resizing.overshoot`), and a little for rounding.
_CUBIC = 1.38

_BUT_BFLOAT16 = tuple(dtype for dtype in FLOATS if dtype != "bfloat16")


# GridSample
def _modes(linear: str, nearest: str, cubic: str) -> Computed:
    """Cubic interpolation is specified for any number of axes but implemented for two."""
    names = (linear, nearest, cubic)

    def draw(context: NodeContext) -> Attribute:
        return context.rng.choice(names if context.rank == 4 else names[:2])

    return Computed(draw, lambda value, context: value in names)


def _grid(context: NodeContext) -> Shape:
    rng = context.rng
    left = max_growth(context) * context.x.elements // (context.dims(0)[0] * context.dims(0)[1])
    lengths = []
    for _ in range(context.rank - 2):
        lengths.append(rng.between(1, max(1, min(context.limits.max_dim, left))))
        left //= lengths[-1]
    return (context.shape[0], *lengths, context.rank - 2)


def _grid_within(_context: NodeContext) -> Interval:
    """The image lies in [-1, 1]; a little beyond is padding."""
    return Interval(-1.5, 1.5)


def _sampled(context: NodeContext) -> tuple[TensorType, ...]:
    points = context.type(1).shape or (None,) * context.rank
    return (TensorType(context.dtype, (*context.shape[:2], *points[1:-1])),)


def _sampled_bounds(context: NodeContext) -> Interval:
    found = after_rounding(context.range(0), context.dtype)
    if context.get("mode") in ("bicubic", "cubic"):
        largest = found.largest * _CUBIC**2
        return Interval(-largest, largest)
    return found if context.get("padding_mode") in ("border", "reflection") else hull((found, Interval(0, 0)))


_TORCH_MODES = {"linear": "bilinear", "cubic": "bicubic"}


def _torch_sample(context: NodeContext, names: Sequence[str]) -> str:
    mode = context.get("mode")
    return (
        f"torch.nn.functional.grid_sample({names[0]}, {names[1]}, mode={_TORCH_MODES.get(mode, mode)!r}, "
        f"padding_mode={context.get('padding_mode')!r}, align_corners={bool(context.get('align_corners'))})"
    )


def _grid_sample(since: int, ranks: tuple[int, ...], dtypes: tuple[str, ...], *modes: str) -> OperatorSpec:
    return OperatorSpec(
        "GridSample",
        since,
        input_specs=(PRIMARY_INPUT, DataInput(_grid, within=_grid_within)),
        ranks=ranks,
        infer=_sampled,
        values=_sampled_bounds,
        within=share(2),
        dtypes=dtypes,
        attribute_specs=(
            AttributeSpec("mode", _modes(*modes), omit=0.2, default=modes[0]),
            AttributeSpec("padding_mode", Choice("zeros", "border", "reflection"), omit=0.2, default="zeros"),
            AttributeSpec("align_corners", Choice(0, 1), omit=0.3, default=0),
        ),
        torch=_torch_sample,
    )


# AffineGrid
def _affine(shape: tuple[int, ...]) -> bool:
    return shape[1:] in ((2, 3), (3, 4))


def _fresh_affine(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    batch = rng.between(max(1, limits.min_dim), max(1, limits.max_dim))
    return (batch, *rng.choice(((2, 3), (2, 3), (3, 4))))


def _image_size(context: NodeContext) -> Constant:
    """Batch, channels (which do not count), and lengths; length 1 has no two corners to align."""
    rng = context.rng
    axes = context.dims(0)[1]
    lengths = [rng.between(2, max(2, context.limits.max_dim)) for _ in range(axes)]
    return int64(context.dims(0)[0], rng.between(1, max(1, context.limits.max_dim)), *lengths)


def _affine_type(context: NodeContext) -> tuple[TensorType, ...]:
    size, batch = known_integers(context, 1), context.shape[0]
    if size is None:
        axes = context.shape[1]
        return (TensorType(context.dtype, None if axes is None else (batch, *(None,) * axes, axes)),)
    return (TensorType(context.dtype, (size[0], *size[2:], len(size) - 2)),)


def _affine_bounds(context: NodeContext) -> Interval:
    """Coordinates lie in [-1, 1]: one term per axis, and one more."""
    largest = context.range(0).largest * context.dims(0)[2]
    return after_rounding(Interval(-largest, largest), context.dtype)


def _torch_affine(context: NodeContext, names: Sequence[str]) -> str:
    return (
        f"torch.nn.functional.affine_grid({names[0]}, {context.numbers(1)}, "
        f"align_corners={bool(context.get('align_corners'))})"
    )


register(
    _grid_sample(16, (4,), _BUT_BFLOAT16, "bilinear", "nearest", "bicubic"),
    _grid_sample(20, (4, 5), _BUT_BFLOAT16, "linear", "nearest", "cubic"),
    _grid_sample(22, (4, 5), FLOATS, "linear", "nearest", "cubic"),
    OperatorSpec("AffineGrid", 20, input_specs=(PRIMARY_INPUT, ConstantInput(_image_size)), ranks=(3,),
                 takes=_affine, draw_shape=_fresh_affine, infer=_affine_type, values=_affine_bounds,
                 within=share(4), dtypes=FLOATS,
                 attribute_specs=(AttributeSpec("align_corners", Choice(0, 1), omit=0.3, default=0),),
                 torch=requires_static_inputs(_torch_affine)),
)  # fmt: skip
