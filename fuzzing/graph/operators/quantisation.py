"""To quantised numbers, and from them.

Scales and zero points are constants, as in models that were quantised. Results saturate (ONNX operator
reference), so they are bounded by their type whatever comes in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import WHOLE, Interval, modest, subtract, whole, within
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import bounds, literal
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.graph.operator import LEAD, Auxiliary, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.site import Site
from fuzzing.graph.types import INTEGERS, TensorType

BYTES = ("int8", "uint8")
_SHORTS = ("int16", "uint16")
_NAMES = {number: name for name, number in DTYPES.items()}
_SCALES = (0.01, 0.02, 0.05, 0.125, 0.25, 0.5)
#: Powers of two: products of quantised numbers with them are exact, and so is where a result is half way
#: between two, which ONNX rounds to even. With others the last bit of a scale decides that.
EXACT_SCALES = (0.0625, 0.125, 0.25, 0.5)


def scales(
    site: Site,
    shape: tuple[int, ...] = (),
    dtype: str = "float32",
    among: Sequence[float] = _SCALES,
) -> Constant:
    """Positive numbers."""
    return literal(dtype, [site.draws.choice(among) for _ in range(math.prod(shape))], shape)


def zeros(site: Site, dtype: str, shape: tuple[int, ...] = ()) -> Constant:
    """Zero points: small ones, as those of symmetric ranges are zero and others lie anywhere."""
    low, high = WHOLE[dtype]
    low, high = (0, 0) if dtype == "int32" else (max(int(low), -20), min(int(high), 20))
    return literal(dtype, [site.draws.between(low, high) for _ in range(math.prod(shape))], shape)


def less_zero(site: Site, position: int, zero: int) -> Interval:
    """Bounds on an input's elements, its zero points, which are another input, taken off."""
    constant = site.constants[zero] if site.given(zero) else None
    return site.range(position) if constant is None else subtract(site.range(position), bounds(constant))


# --- QuantizeLinear and DequantizeLinear -------------------------------------------------------------------


class _Grid(NamedTuple):
    """What scales and zero points stand for: the tensor, the slices of an axis, or blocks along it."""

    shape: tuple[int, ...]
    dtype: str


def _spread(site: Site, blocks: bool) -> tuple[int, ...]:
    """The shape of scales; gives `axis` and `block_size`."""
    draws, given = site.draws, site.attributes
    shape = site.dims(0)
    # Blocks of a vector could have a single scale, which onnxruntime takes for one of the whole tensor.
    kind = draws.below(3 if blocks and len(shape) > 1 else 2) if shape else 0
    if kind == 0:
        return ()
    axis = 1 if len(shape) > 1 and draws.chance(0.3) else draws.below(len(shape))
    if axis != 1 or draws.chance(0.3):
        given["axis"] = axis - len(shape) if draws.chance(0.1) else axis
    if kind == 1:
        return (shape[axis],)
    size = given["block_size"] = draws.between(1, shape[axis])
    return (*shape[:axis], -(-shape[axis] // size), *shape[axis + 1 :])


def _to_plan(types: Sequence[str], blocks: bool) -> Callable[[Site], _Grid]:
    def plan(site: Site) -> _Grid:
        shape, dtype = _spread(site, blocks), site.draws.choice(types)
        if site.degree == 2 and blocks and site.draws.chance(0.5):
            site.attributes["output_dtype"] = DTYPES[dtype]
        return _Grid(shape, dtype)

    return plan


def _quantised(site: Site) -> tuple[TensorType, ...]:
    number = site.get("output_dtype")
    if site.given(2):
        dtype = site.type(2).dtype
    else:
        dtype = _NAMES[number] if number else "uint8"
    return (TensorType(dtype, site.shape),)


def _restored(site: Site) -> tuple[TensorType, ...]:
    """Of the scale's type, unless another is asked for, as it may be from opset 23 on."""
    number = site.get("output_dtype")
    return (TensorType(_NAMES[number] if number else site.type(1).dtype, site.shape),)


def _to_values(site: Site) -> Interval:
    """The quotients, rounded by at most one, and the zero points; then cut to the type."""
    (type_,) = _quantised(site)
    low, high = _quotients(site)
    if site.given(2) and site.constants[2] is not None:
        points = bounds(site.constants[2])
        low, high = low + points.low, high + points.high
    limits = WHOLE[type_.dtype]
    return Interval(min(max(low - 1, limits.low), limits.high), max(min(high + 1, limits.high), limits.low))


def _quotients(site: Site) -> Interval:
    constant = site.constants[1]
    assert constant is not None, "scales are constants while solving"
    low, high = site.range(0)
    least, most = bounds(constant)
    corners = (low / least, low / most, high / least, high / most)
    return Interval(math.floor(min(corners)), math.ceil(max(corners)))


def _from_values(site: Site) -> Interval:
    constant = site.constants[1]
    assert constant is not None, "scales are constants while solving"
    low, high = less_zero(site, 0, 2)
    most = bounds(constant).high * 1.001
    return Interval(min(low * most, 0.0), max(high * most, 0.0))


def _along(site: Site, name: str, position: int) -> str:
    """Scales or zero points in torch, so that they broadcast to the lead input."""
    rank = len(site.dims(position))
    axis = site.axis() if rank else 0
    if site.get("block_size"):
        repeated = f"{name}.repeat_interleave({site.get('block_size')}, {axis})"
        return f"{repeated}.narrow({axis}, 0, {site.dims(0)[axis]})"
    return f"{name}.reshape({(-1, *(1,) * (site.rank - axis - 1))})" if rank else name


def _torch_to(site: Site, names: Sequence[str]) -> str | None:
    (type_,) = _quantised(site)
    if type_.dtype not in INTEGERS:
        return None  # floats of eight bits and less are rounded by rules of their own
    low, high = WHOLE[type_.dtype]
    text = f"torch.round({names[0]} / {_along(site, names[1], 1)})"
    if site.given(2):
        text += f" + {_along(site, names[2], 2)}"
    return f"torch.clamp({text}, {int(low)}, {int(high)}).to(torch.{type_.dtype})"


def _torch_from(site: Site, names: Sequence[str]) -> str:
    text = f"{names[0]}.to(torch.float32)"
    if site.given(2):
        text = f"({text} - {_along(site, names[2], 2)}.to(torch.float32))"
    return f"{text} * {_along(site, names[1], 1)}"


_AXIS, _BLOCK = planned("axis", 1), planned("block_size", 0)


def _to(
    since: int, dtypes: tuple[str, ...], types: tuple[str, ...], *settings: Setting, blocks: bool = False
) -> Operator:
    """From opset 19 on the scale is of the lead's type; 32-bit integers, which have none, are left out."""
    return Operator(
        "QuantizeLinear", since, dtypes=dtypes, within=modest, plan=_to_plan(types, blocks),
        slots=(
            LEAD,
            Auxiliary(lambda site: scales(site, site.plan.shape, site.dtype if since > 13 else "float32")),
            Auxiliary(lambda site: zeros(site, site.plan.dtype, site.plan.shape)),
        ),
        degrees=(2, 3), settings=(_AXIS, *settings), infer=_quantised, values=_to_values, torch=_torch_to,
    )  # fmt: skip


def _from(since: int, dtypes: tuple[str, ...], *settings: Setting, blocks: bool = False) -> Operator:
    return Operator(
        "DequantizeLinear", since, dtypes=dtypes, within=whole,
        plan=lambda site: _Grid(_spread(site, blocks), site.dtype),
        slots=(
            LEAD,
            Auxiliary(lambda site: scales(site, site.plan.shape)),
            Auxiliary(lambda site: zeros(site, site.plan.dtype, site.plan.shape)),
        ),
        degrees=(2, 3), settings=(_AXIS, *settings), torch=_torch_from,
        infer=_restored, values=_from_values,
    )  # fmt: skip


_SATURATE = Setting("saturate", Choice(1), omit=0.9, default=1)
_OUTPUT = planned("output_dtype", 0)
_PRECISION = Setting("precision", Choice(1), omit=0.9, default=0)


# --- DynamicQuantizeLinear --------------------------------------------------------------------------------


def _dynamic(site: Site) -> tuple[TensorType, ...]:
    return (TensorType("uint8", site.shape), TensorType("float32", ()), TensorType("uint8", ()))


def _dynamic_values(site: Site) -> tuple[Interval, ...]:
    """The scale is the range, zero taken in, over 255; the elements are positive, so the zero point is 0."""
    low, high = site.range(0)
    return (WHOLE["uint8"], Interval(low / 255 * 0.99, high / 255 * 1.01), Interval(0, 1))


register(
    _to(13, ("float32", "int32"), BYTES),
    _to(19, ("float32", "float16", "bfloat16"), BYTES, _SATURATE),
    _to(21, ("float32", "float16", "bfloat16"), (*BYTES, *_SHORTS), _SATURATE, _BLOCK, _OUTPUT, blocks=True),
    _to(23, ("float32", "float16", "bfloat16"), (*BYTES, *_SHORTS), _SATURATE, _BLOCK, _OUTPUT, _PRECISION,
        blocks=True),
    _from(13, (*BYTES, "int32")),
    _from(21, (*BYTES, *_SHORTS, "int32"), _BLOCK, blocks=True),
    _from(23, (*BYTES, *_SHORTS, "int32"), _BLOCK,
          Setting("output_dtype", Choice(0, 1), omit=0.8, default=0), blocks=True),
    Operator("DynamicQuantizeLinear", 11, dtypes=("float32",), within=within(0.1, 1e6),
             infer=_dynamic, values=_dynamic_values),
)  # fmt: skip
