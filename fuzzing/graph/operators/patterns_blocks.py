"""What several operators do together in networks, and compilers look for: to fuse it, or to replace it."""

from __future__ import annotations

import math

from fuzzing.graph.intervals import Interval, add, hull, widen, within
from fuzzing.graph.ir import Builder
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator
from fuzzing.graph.operators import register_pattern
from fuzzing.graph.operators.products import columns
from fuzzing.graph.operators.quantisation import scales, zeros
from fuzzing.graph.operators.sketch import Sketch
from fuzzing.graph.operators.sums import total
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Site
from fuzzing.graph.types import Shape, TensorType

_STEADY = within(-30, 30)
_GAIN = Interval(-4, 4)
_EPSILON = 1e-3
#: How large a sum inside a pattern may be: so that three multiplied fit into float16, whatever comes then.
_INSIDE = 8.0


def _edges(site: Site) -> tuple[int, ...]:
    return tuple([edge for edge in site.edges if edge is not None])


def _weight(terms: int, largest: float) -> Interval:
    """What weights may be, so that a sum of so many products with them stays small."""
    most = min(4.0, _INSIDE / (terms * max(1.0, largest)))
    return Interval(-most, most)


# --- normalisation and activations, spelled out -----------------------------------------------------------


def _normalise(builder: Builder, site: Site) -> tuple[int, ...]:
    """(x - mean) / sqrt(mean of squares + ε) · scale + bias over the last axis."""
    x, gain, bias = _edges(site)
    make, last = Sketch(builder, site.dtype), site.rank - 1
    away = make.node("Sub", x, make.mean(x, last))
    if site.draws.chance(0.5):
        squares = make.node("Pow", away, make.number(2.0))
    else:
        squares = make.node("Mul", away, away)
    spread = make.node("Sqrt", make.node("Add", make.mean(squares, last), make.number(_EPSILON)))
    scaled = make.node("Mul", make.node("Div", away, spread), gain)
    return (make.node("Add", scaled, bias),)


def _normalised(site: Site) -> Interval:
    most = math.sqrt(site.dims(0)[-1]) * site.range(1).largest
    return add(widen(Interval(-most, most), 1e-2), site.range(2))


def _gelu_of_erf(builder: Builder, site: Site) -> tuple[int, ...]:
    """x/2 · (1 + erf(x/√2))."""
    (x,) = _edges(site)
    make = Sketch(builder, site.dtype)
    erf = make.node("Erf", make.node("Div", x, make.number(math.sqrt(2))))
    gate = make.node("Add", erf, make.number(1.0))
    return (make.node("Mul", make.node("Mul", x, gate), make.number(0.5)),)


def _gelu_of_tanh(builder: Builder, site: Site) -> tuple[int, ...]:
    """x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))."""
    (x,) = _edges(site)
    make = Sketch(builder, site.dtype)
    cube = make.node("Mul", make.node("Mul", x, x), x)
    inner = make.node("Add", x, make.node("Mul", cube, make.number(0.044715)))
    tanh = make.node("Tanh", make.node("Mul", inner, make.number(math.sqrt(2 / math.pi))))
    half = make.node("Mul", x, make.number(0.5))
    return (make.node("Mul", half, make.node("Add", tanh, make.number(1.0))),)


def _gelu(site: Site) -> Interval:
    """Its least value is about -0.17."""
    low, high = site.range(0)
    return widen(Interval(-0.2 if low < 0 else 0.0, max(high, 0.0)), 1e-2)


# --- perceptrons ------------------------------------------------------------------------------------------


def _gated(builder: Builder, site: Site) -> tuple[int, ...]:
    """(silu(x·W) ⊙ x·V)·U."""
    x, gate, up, down = _edges(site)
    make = Sketch(builder, site.dtype)
    gated = make.node("MatMul", x, gate)
    active = make.node("Mul", gated, make.node("Sigmoid", gated))
    return (make.node("MatMul", make.node("Mul", active, make.node("MatMul", x, up)), down),)


def _hidden(site: Site) -> Shape:
    size = site.dims(0)[-1]
    return (size, max(1, min(2 * size, site.limits.max_dim)))


def _gated_values(site: Site) -> Interval:
    size, hidden = site.dims(1)
    one = total(site.dtype, size, site.range(0), site.range(1)).largest
    other = total(site.dtype, size, site.range(0), site.range(2)).largest
    return total(site.dtype, hidden, Interval(-one * other, one * other), site.range(3))


# --- pictures ---------------------------------------------------------------------------------------------


def _residual(builder: Builder, site: Site) -> tuple[int, ...]:
    """relu(x + bn(conv(relu(bn(conv(x)))))), the convolutions 3 wide with pads of 1."""
    x, first, second, *normal = _edges(site)
    make, count = Sketch(builder, site.dtype), site.rank - 2
    pads, y = (1,) * (2 * count), x
    for weight in (first, second):
        y = make.node("Conv", y, weight, pads=pads, kernel_shape=(3,) * count)
        y = make.node("BatchNormalization", y, *normal)
        if weight == first:
            y = make.node("Relu", y)
    return (make.node("Relu", make.node("Add", x, y)),)


def _filters(site: Site) -> Shape:
    channels = site.dims(0)[1]
    return (channels, channels, *(3,) * (site.rank - 2))


def _channels(site: Site) -> Shape:
    return (site.dims(0)[1],)


def _convolve_within(site: Site, largest: float) -> Interval:
    channels, _, *kernel = _filters(site)
    return _weight((channels or 1) * math.prod(length or 1 for length in kernel), largest)


def _batch(site: Site, inner: float) -> float:
    """The largest that comes from a batch normalisation of what is so large."""
    away = (inner + site.range(5).largest) / math.sqrt(site.range(6).low)
    return away * site.range(3).largest + site.range(4).largest


def _residual_values(site: Site) -> Interval:
    terms = math.prod(site.dims(1)[1:])
    first = _batch(site, terms * site.range(0).largest * site.range(1).largest)
    second = _batch(site, terms * first * site.range(2).largest)
    return widen(Interval(0.0, max(0.0, site.range(0).high) + second), 1e-2)


def _squeeze(builder: Builder, site: Site) -> tuple[int, ...]:
    """X ⊙ sigmoid(W·relu(V·mean(x))), as convolutions of one point."""
    x, down, up = _edges(site)
    make = Sketch(builder, site.dtype)
    inner = make.node("Relu", make.node("Conv", make.node("GlobalAveragePool", x), down))
    return (make.node("Mul", x, make.node("Sigmoid", make.node("Conv", inner, up))),)


def _point(site: Site) -> tuple[int, ...]:
    return (1,) * (site.rank - 2)


# --- quantised product ------------------------------------------------------------------------------------


def _quantised(builder: Builder, site: Site) -> tuple[int, ...]:
    """A product of two tensors that went through eight bits, as quantisers leave it for compilers."""
    x, step, zero, weight, other = _edges(site)
    make, pairs = Sketch(builder, site.dtype), []
    for edge, parameters in ((x, (step, zero)), (weight, (other,))):
        pairs.append(
            make.node("DequantizeLinear", make.node("QuantizeLinear", edge, *parameters), *parameters)
        )
    return (make.node("MatMul", *pairs),)


def _quantised_values(site: Site) -> Interval:
    """255 steps at most, of half a unit each by the scales that are drawn."""
    inner = site.dims(0)[-1]
    most = min(site.range(0).largest + 1.0, 255 * 0.5) * min(site.range(3).largest + 1.0, 255 * 0.5) * inner
    return widen(Interval(-most, most))


def _matrix(site: Site) -> Shape:
    *batch, rows, inner = site.dims(0)
    return (inner, columns(site, rows * math.prod(batch), inner))


def _product(site: Site) -> tuple[TensorType, ...]:
    return (TensorType(site.dtype, (*site.shape[:-1], site.dims(3)[-1])),)


_PICTURES = (3, 4, 5)
_ANY = tuple(range(1, 9))
_MATRICES = tuple(range(2, 9))

register_pattern(
    Operator("pattern.LayerNormalization", 13, dtypes=NARROW, ranks=_ANY, within=_STEADY, expand=_normalise,
             slots=(LEAD, Data(lambda site: site.shape[-1:], within=lambda site: _GAIN),
                    Data(lambda site: site.shape[-1:], within=lambda site: _GAIN)),
             values=_normalised),
    Operator("pattern.Gelu", 13, dtypes=NARROW, within=within(-15, 15), expand=_gelu_of_erf, values=_gelu),
    Operator("pattern.GeluTanh", 13, dtypes=NARROW, within=within(-15, 15), expand=_gelu_of_tanh,
             values=_gelu),
    Operator("pattern.SwiGLU", 13, dtypes=NARROW, ranks=_MATRICES, within=_STEADY, expand=_gated,
             slots=(LEAD, Data(_hidden, within=lambda site: _weight(site.dims(0)[-1], site.range(0).largest)),
                    Data(_hidden, within=lambda site: _weight(site.dims(0)[-1], site.range(0).largest)),
                    Data(lambda site: _hidden(site)[::-1],
                         within=lambda site: _weight(_hidden(site)[1] or 1, 1.0))),
             values=_gated_values),
    Operator("pattern.Residual", 13, dtypes=NARROW, ranks=_PICTURES, within=_STEADY, expand=_residual,
             slots=(LEAD, Data(_filters, within=lambda site: _convolve_within(site, site.range(0).largest)),
                    Data(_filters, within=lambda site: _convolve_within(site, 30.0)),
                    Data(_channels, within=lambda site: Interval(-1, 1)),
                    Data(_channels, within=lambda site: Interval(-1, 1)),
                    Data(_channels, within=lambda site: Interval(-1, 1)),
                    Data(_channels, within=lambda site: Interval(0.1, 2))),
             values=_residual_values),
    Operator("pattern.SqueezeExcite", 13, dtypes=NARROW, ranks=_PICTURES, within=_STEADY, expand=_squeeze,
             slots=(LEAD,
                    Data(lambda site: (max(1, site.dims(0)[1] // 2), site.dims(0)[1], *_point(site)),
                         within=lambda site: _GAIN),
                    Data(lambda site: (site.dims(0)[1], max(1, site.dims(0)[1] // 2), *_point(site)),
                         within=lambda site: _weight(site.dims(0)[1], 1.0))),
             values=lambda site: widen(hull((site.range(0), Interval(0, 0))))),
    Operator("pattern.QuantisedMatMul", 13, dtypes=("float32",), ranks=_MATRICES, within=_STEADY,
             expand=_quantised, infer=_product, values=_quantised_values,
             slots=(LEAD, Auxiliary(scales), Auxiliary(lambda site: zeros(site, "uint8")),
                    Data(_matrix, within=lambda site: _STEADY(site.x)), Auxiliary(scales))),
)  # fmt: skip
