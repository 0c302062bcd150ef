"""Products and convolutions of quantised numbers: to 32 bits, or to quantised numbers again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.intervals import WHOLE, Interval, whole
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import scalar
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator
from fuzzing.graph.operators import register
from fuzzing.graph.operators.convolution import SETTINGS, convolved, terms, torch_text, weigh
from fuzzing.graph.operators.products import product, second
from fuzzing.graph.operators.quantisation import BYTES, EXACT_SCALES, less_zero, scales, zeros
from fuzzing.graph.operators.sums import total
from fuzzing.graph.site import Site
from fuzzing.graph.types import Shape, TensorType


def _other_byte(site: Site) -> str:
    """Mostly the lead's type: runtimes know not all pairs."""
    return site.dtype if site.draws.chance(0.6) else site.draws.choice(BYTES)


#: What every byte may be, signed or not.
_BYTE = Interval(0, 127)


def _multiplied(site: Site, other: int) -> Shape:
    return product(site.dims(0), site.dims(other))


def _integer_product(site: Site) -> Interval:
    return total("int32", site.dims(0)[-1], less_zero(site, 0, 2), less_zero(site, 1, 3))


def _integer_convolution(site: Site) -> Interval:
    factors = less_zero(site, 0, 2), less_zero(site, 1, 3)
    return total("int32", terms(site.dims(1)), *factors, fewer=True)


def _operand(shape: Callable[[Site], Shape], dtype: Callable[[Site], str]) -> Data:
    return Data(shape, dtype=dtype, within=lambda site: _BYTE)


def _matrix(site: Site) -> Shape:
    return second(site, vectors=False)


#: A scale for a whole tensor.
_SINGLE = Auxiliary(lambda site: scalar("float32", site.draws.choice(EXACT_SCALES)))


def _point(of: int, omit: float = 0.0) -> Auxiliary:
    """A zero point for a whole tensor, of the type of an input."""
    return Auxiliary(lambda site: zeros(site, site.type(of).dtype), omit=omit)


def _signed_with_signed(site: Site) -> str:
    """Onnxruntime has no kernel for signed times unsigned where the result is quantised too."""
    return site.dtype if site.dtype == "int8" else _other_byte(site)


def _filter_scales(site: Site) -> Constant:
    """One for each filter of a convolution as often as one for all."""
    return scales(site, (site.plan[0],) if site.draws.chance(0.5) else (), among=EXACT_SCALES)


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
    Operator("MatMulInteger", 10, dtypes=BYTES, ranks=_MATRICES, within=whole,
             slots=(LEAD, _operand(_matrix, _other_byte), _point(0, omit=0.3), _point(1)),
             degrees=(2, 3, 4), values=_integer_product, torch=_torch_product,
             infer=_typed(lambda site: _multiplied(site, 1))),
    Operator("ConvInteger", 10, dtypes=BYTES, ranks=(3, 4, 5), within=whole, plan=weigh, settings=SETTINGS,
             slots=(LEAD, _operand(lambda site: site.plan, _other_byte),
                    _point(0, omit=0.3), _point(1)),
             degrees=(2, 3, 4), infer=_typed(convolved), values=_integer_convolution,
             torch=_torch_convolution),
    Operator("QLinearMatMul", 10, dtypes=BYTES, ranks=_MATRICES, within=whole,
             slots=(LEAD, _SINGLE, _point(0), _operand(_matrix, _signed_with_signed),
                    _SINGLE, _point(3), _SINGLE, _point(0)),
             infer=_result(lambda site: _multiplied(site, 3)), values=_saturated),
    Operator("QLinearConv", 10, dtypes=BYTES, ranks=(3, 4, 5), within=whole, plan=weigh, settings=SETTINGS,
             slots=(LEAD, _SINGLE, _point(0),
                    _operand(lambda site: site.plan, _signed_with_signed),
                    Auxiliary(_filter_scales), Auxiliary(_filter_points), _SINGLE, _point(0),
                    Data(lambda site: (site.dims(_FILTERS)[0],), dtype="int32")),
             degrees=(8, 9), infer=_result(lambda site: convolved(site, _FILTERS)), values=_saturated),
)  # fmt: skip
