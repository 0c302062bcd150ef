"""Quantised numbers: to them, from them, and arithmetic on them.

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
from fuzzing.graph.literals import bounds, literal, scalar
from fuzzing.graph.onnx_types import DTYPES
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting
from fuzzing.graph.operators import register
from fuzzing.graph.operators.convolution import SETTINGS, convolved, terms, torch_text, weigh
from fuzzing.graph.operators.products import product, second
from fuzzing.graph.operators.sums import planned, total
from fuzzing.graph.site import Site
from fuzzing.graph.types import Shape, TensorType

_BYTES = ("int8", "uint8")
_SHORTS = ("int16", "uint16")
_NAMES = {number: name for name, number in DTYPES.items()}
_SCALES = (0.01, 0.02, 0.05, 0.125, 0.25, 0.5)


def scales(site: Site, shape: tuple[int, ...] = (), dtype: str = "float32") -> Constant:
    """Positive numbers."""
    return literal(dtype, [site.draws.choice(_SCALES) for _ in range(math.prod(shape))], shape)


def zeros(site: Site, dtype: str, shape: tuple[int, ...] = ()) -> Constant:
    """Zero points: small ones, as those of symmetric ranges are zero and others lie anywhere."""
    low, high = WHOLE[dtype]
    low, high = (0, 0) if dtype == "int32" else (max(int(low), -20), min(int(high), 20))
    return literal(dtype, [site.draws.between(low, high) for _ in range(math.prod(shape))], shape)


def _less_zero(site: Site, position: int, zero: int) -> Interval:
    """An input's range, its zero points taken off."""
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
    low, high = _less_zero(site, 0, 2)
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


def _torch_to(site: Site, names: Sequence[str]) -> str:
    (type_,) = _quantised(site)
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


# --- products and convolutions ----------------------------------------------------------------------------


def _other_byte(site: Site) -> str:
    """Mostly the lead's type: runtimes know not all pairs."""
    return site.dtype if site.draws.chance(0.6) else site.draws.choice(_BYTES)


#: What every byte may be, signed or not.
_BYTE = Interval(0, 127)


def _multiplied(site: Site, other: int) -> Shape:
    return product(site.dims(0), site.dims(other))


def _integer_product(site: Site) -> Interval:
    return total("int32", site.dims(0)[-1], _less_zero(site, 0, 2), _less_zero(site, 1, 3))


def _integer_convolution(site: Site) -> Interval:
    factors = _less_zero(site, 0, 2), _less_zero(site, 1, 3)
    return total("int32", terms(site.dims(1)), *factors, fewer=True)


def _operand(shape: Callable[[Site], Shape], dtype: Callable[[Site], str]) -> Data:
    return Data(shape, dtype=dtype, within=lambda site: _BYTE)


def _matrix(site: Site) -> Shape:
    return second(site, vectors=False)


#: A scale for a whole tensor.
_SINGLE = Auxiliary(lambda site: scalar("float32", site.draws.choice(_SCALES)))


def _point(of: int, omit: float = 0.0) -> Auxiliary:
    """A zero point for a whole tensor, of the type of an input."""
    return Auxiliary(lambda site: zeros(site, site.type(of).dtype), omit=omit)


def _signed_with_signed(site: Site) -> str:
    """Onnxruntime has no kernel for signed times unsigned where the result is quantised too."""
    return site.dtype if site.dtype == "int8" else _other_byte(site)


def _filter_scales(site: Site) -> Constant:
    """One for each filter of a convolution as often as one for all."""
    return scales(site, (site.plan[0],) if site.draws.chance(0.5) else ())


def _filter_points(site: Site) -> Constant:
    """As many as scales."""
    return zeros(site, site.type(3).dtype, site.dims(4))


def _torch_shifted(site: Site, names: Sequence[str]) -> tuple[str, str]:
    """Both operands, their zero points taken off, in 32 bits."""
    wide = [f"{name}.to(torch.int32)" for name in names]
    one, other = [
        f"({wide[place]} - {wide[place + 2]})" if site.given(place + 2) else wide[place] for place in (0, 1)
    ]
    return one, other


def _torch_product(site: Site, names: Sequence[str]) -> str:
    one, other = _torch_shifted(site, names)
    return f"{one} @ {other}"


def _torch_convolution(site: Site, names: Sequence[str]) -> str:
    """In double precision, as torch convolves no whole numbers; it holds all sums exactly."""
    one, other = _torch_shifted(site, names)
    return f"{torch_text(site, f'{one}.double()', f'{other}.double()', None)}.to(torch.int32)"


def _typed(shape: Callable[[Site], Shape]) -> Callable[[Site], tuple[TensorType, ...]]:
    return lambda site: (TensorType("int32", shape(site)),)


def _result(shape: Callable[[Site], Shape]) -> Callable[[Site], tuple[TensorType, ...]]:
    """A quantised result has the type of its zero point, the last of its parameters."""
    return lambda site: (TensorType(site.type(7).dtype, shape(site)),)


def _saturated(site: Site) -> Interval:
    return WHOLE[site.type(7).dtype]


_MATRICES = tuple(range(2, 9))
_FILTERS = 3  # the position of the weight

register(
    _to(13, ("float32", "int32"), _BYTES),
    _to(19, ("float32", "float16", "bfloat16"), _BYTES, _SATURATE),
    _to(21, ("float32", "float16", "bfloat16"), (*_BYTES, *_SHORTS), _SATURATE, _BLOCK, _OUTPUT, blocks=True),
    _to(23, ("float32", "float16", "bfloat16"), (*_BYTES, *_SHORTS), _SATURATE, _BLOCK, _OUTPUT, _PRECISION,
        blocks=True),
    _from(13, (*_BYTES, "int32")),
    _from(21, (*_BYTES, *_SHORTS, "int32"), _BLOCK, blocks=True),
    _from(23, (*_BYTES, *_SHORTS, "int32"), _BLOCK,
          Setting("output_dtype", Choice(0, 1), omit=0.8, default=0), blocks=True),
    Operator("DynamicQuantizeLinear", 11, dtypes=("float32",), within=within(0.1, 1e6),
             infer=_dynamic, values=_dynamic_values),
    Operator("MatMulInteger", 10, dtypes=_BYTES, ranks=_MATRICES, within=whole,
             slots=(LEAD, _operand(_matrix, _other_byte), _point(0, omit=0.3), _point(1)),
             degrees=(2, 3, 4), values=_integer_product, torch=_torch_product,
             infer=_typed(lambda site: _multiplied(site, 1))),
    Operator("ConvInteger", 10, dtypes=_BYTES, ranks=(3, 4, 5), within=whole, plan=weigh, settings=SETTINGS,
             slots=(LEAD, _operand(lambda site: site.plan, _other_byte),
                    _point(0, omit=0.3), _point(1)),
             degrees=(2, 3, 4), infer=_typed(convolved), values=_integer_convolution,
             torch=_torch_convolution),
    Operator("QLinearMatMul", 10, dtypes=_BYTES, ranks=_MATRICES, within=whole,
             slots=(LEAD, _SINGLE, _point(0), _operand(_matrix, _signed_with_signed),
                    _SINGLE, _point(3), _SINGLE, _point(0)),
             infer=_result(lambda site: _multiplied(site, 3)), values=_saturated),
    Operator("QLinearConv", 10, dtypes=_BYTES, ranks=(3, 4, 5), within=whole, plan=weigh, settings=SETTINGS,
             slots=(LEAD, _SINGLE, _point(0),
                    _operand(lambda site: site.plan, _signed_with_signed),
                    Auxiliary(_filter_scales), Auxiliary(_filter_points), _SINGLE, _point(0),
                    Data(lambda site: (site.dims(_FILTERS)[0],), dtype="int32")),
             degrees=(8, 9), infer=_result(lambda site: convolved(site, _FILTERS)), values=_saturated),
)  # fmt: skip
