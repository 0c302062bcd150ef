"""Fourier transforms and what goes with them: windows and the mel scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.draws import Draws
from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import Interval, widen
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import scalar
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sums import factor, room, summands, total
from fuzzing.graph.site import Limits, Site
from fuzzing.graph.types import FLOATS, Dim, Shape, TensorType

_UNIT = Interval(-1e-3, 1.001)  # Blackman's window touches zero from below by rounding


# --- DFT --------------------------------------------------------------------------------------------------


def _signal(draws: Draws, limits: Limits) -> tuple[int, ...]:
    """Real or complex numbers along the last axis."""
    lengths = [draws.between(1, max(1, limits.max_dim)) for _ in range(draws.between(2, 3))]
    return (*lengths, draws.between(1, 2))


def _transform(site: Site) -> tuple[int, int]:
    """Draws an axis and the length of the transform, which are the plan."""
    draws, given, shape = site.draws, site.attributes, site.dims(0)
    last = site.rank - 2
    if site.opset >= 20:
        axis = draws.between(0, last) if site.degree > 2 else last
    else:
        axis = draws.between(0, last) if draws.chance(0.5) else 1
        if axis != 1 or draws.chance(0.2):
            given["axis"] = axis - site.rank if draws.chance(0.2) else axis
    if draws.chance(0.6):
        kind = draws.choice(("inverse", "onesided"))
        if kind == "inverse" or shape[-1] == 1:  # one half tells all only of real numbers
            given[kind] = draws.between(0, 1)
    others = site.x.elements // shape[axis]
    most = max(shape[axis], min(site.limits.max_dim, room(site) // (2 * others)))
    return axis, draws.between(1, most)


def _axis(site: Site) -> int:
    if site.opset < 20:
        return site.axis()
    axis = site.numbers(2)[0] if site.given(2) else -2
    return axis + site.rank if axis < 0 else axis


def _length(site: Site) -> int:
    return site.numbers(1)[0] if site.given(1) else site.dims(0)[_axis(site)]


def _transformed(site: Site) -> tuple[TensorType, ...]:
    axis, length, parts = _axis(site), _length(site), 2
    if site.get("onesided") and site.get("inverse"):  # from half a spectrum back to real numbers
        length, parts = length if site.given(1) else 2 * (length - 1), 1
    elif site.get("onesided"):
        length = length // 2 + 1
    return (TensorType(site.dtype, (*site.shape[:axis], length, *site.shape[axis + 1 : -1], parts)),)


def _transformed_values(site: Site) -> Interval:
    """Of each of n complex numbers both parts count, turned by up to an eighth."""
    count = min(_length(site), site.dims(0)[_axis(site)])
    most = count * math.sqrt(2) * site.range(0).largest
    if site.get("inverse"):
        most /= _length(site)
    return widen(Interval(-most, most), 1e-2)


def _torch_transform(site: Site, names: Sequence[str]) -> str:
    data = f"{names[0]}.select(-1, 0)" if site.dims(0)[-1] == 1 else f"torch.view_as_complex({names[0]})"
    name = "rfft" if site.get("onesided") else "ifft" if site.get("inverse") else "fft"
    return f"torch.view_as_real(torch.fft.{name}({data}, {_length(site)}, {_axis(site)}).resolve_conj())"


def _integer(site: Site, value: int) -> Constant:
    return scalar(site.draws.choice(("int64", "int64", "int32")), value)


_LENGTH = Auxiliary(lambda site: _integer(site, site.plan[1]), omit=0.5)
_SHARED = (planned("inverse", 0), planned("onesided", 0))


def _complex(shape: tuple[int, ...]) -> bool:
    return shape[-1] in (1, 2)


# --- STFT -------------------------------------------------------------------------------------------------


def _frames(site: Site) -> tuple[int, int]:
    """The length of frames, and the step between them."""
    length = site.dims(0)[1]
    size = site.draws.between(1, length)
    # Frames that overlap repeat elements; so many as there is room for.
    most = max(1, room(site) // (site.dims(0)[0] * (2 * size + 2)))
    least = max(1, -(-(length - size) // most))
    return size, site.draws.between(least, max(least, length))


def _frame(site: Site) -> int | None:
    """How long a frame is; None of a node that does not say."""
    if site.given(3):
        return site.numbers(3)[0]
    return site.dims(2)[0] if site.given(2) else None


def _stft(site: Site) -> tuple[TensorType, ...]:
    batch, length, *_ = site.dims(0)
    size = _frame(site)
    if size is None:
        return (TensorType(site.dtype, (batch, None, None, 2)),)
    bins: Dim = size // 2 + 1 if site.get("onesided") else size
    frames = (length - size) // site.numbers(1)[0] + 1
    return (TensorType(site.dtype, (batch, frames, bins, 2)),)


def _stft_values(site: Site) -> Interval:
    factors = (site.range(0), site.range(2)) if site.given(2) else (site.range(0),)
    most = total(site.dtype, _frame(site) or site.dims(0)[1], *factors).largest
    return widen(Interval(-most, most), 1e-2)


def _torch_stft(site: Site, names: Sequence[str]) -> str:
    window = names[2] if site.given(2) else f"{names[0]}.new_ones({_frame(site)})"
    return (
        f"torch.view_as_real(torch.stft({names[0]}.squeeze(2), {_frame(site)}, {site.numbers(1)[0]}, "
        f"window={window}, center=False, onesided={bool(site.get('onesided'))}, "
        f"return_complex=True).transpose(1, 2))"
    )


def _real(draws: Draws, limits: Limits) -> tuple[int, ...]:
    return (draws.between(1, max(1, limits.max_dim)), draws.between(2, max(8, limits.max_dim)), 1)


def _window_shape(site: Site) -> Shape:
    return (site.plan[0],)


# --- windows ----------------------------------------------------------------------------------------------


def _window(name: str, torch: str) -> Operator:
    """A window of two elements at least: the formula of a symmetric one divides by one less."""
    return Operator(
        name, 17, lead=-1,
        slots=(Auxiliary(lambda site: _integer(site, site.draws.between(2, max(2, site.limits.max_dim)))),),
        settings=(Setting("periodic", Choice(0, 1), omit=0.5, default=1),
                  Setting("output_datatype", Choice(1), omit=0.8, default=1)),
        infer=lambda site: (TensorType("float32", (site.numbers(0)[0],)),), values=lambda site: _UNIT,
        torch=lambda site, names: torch.format(site.numbers(0)[0], bool(site.get("periodic"))),
    )  # fmt: skip


# --- MelWeightMatrix --------------------------------------------------------------------------------------

_RATE = 8192


def _mel(site: Site) -> tuple[TensorType, ...]:
    return (TensorType("float32", (site.numbers(1)[0] // 2 + 1, site.numbers(0)[0])),)


#: Up to half the rate, which is a mel band's upper edge only where the length is even.
def _whole(*values: int) -> Auxiliary:
    return Auxiliary(lambda site: scalar("int64", site.draws.choice(values)))


def _hertz(low: float, high: float) -> Auxiliary:
    return Auxiliary(lambda site: scalar("float32", site.draws.choice((low, high))))


register(
    Operator("DFT", 17, ranks=(3, 4, 5), takes=_complex, fresh=_signal, within=summands, plan=_transform,
             slots=(LEAD, _LENGTH), degrees=(1, 2), settings=(planned("axis", 1), *_SHARED),
             infer=_transformed, values=_transformed_values, torch=_torch_transform),
    Operator("DFT", 20, ranks=(3, 4, 5), takes=_complex, fresh=_signal, within=summands, plan=_transform,
             slots=(LEAD, _LENGTH, Auxiliary(lambda site: scalar("int64", site.plan[0]))),
             degrees=(1, 2, 3), settings=_SHARED,
             infer=_transformed, values=_transformed_values, torch=_torch_transform),
    Operator("STFT", 17, dtypes=FLOATS, ranks=(3,), takes=lambda shape: shape[1] > 1 == shape[2],
             fresh=_real, within=summands, plan=_frames,
             slots=(LEAD, Auxiliary(lambda site: scalar("int64", site.plan[1])),
                    Data(_window_shape, within=lambda site: factor(site, site.plan[0]), omit=0.3),
                    Auxiliary(lambda site: scalar("int64", site.plan[0]))),
             degrees=(3, 4),
             # Never left out: the default is 1, but onnx's own shape inference takes it for 0.
             settings=(Setting("onesided", Choice(0, 1), default=1),),
             infer=_stft, values=_stft_values, torch=_torch_stft),
    _window("HannWindow", "torch.hann_window({0}, {1})"),
    # ONNX has 25/46 where torch has 0.54 by default.
    _window("HammingWindow", "torch.hamming_window({0}, {1}, 25 / 46, 21 / 46)"),
    _window("BlackmanWindow", "torch.blackman_window({0}, {1})"),
    Operator("MelWeightMatrix", 17, lead=-1, infer=_mel, values=lambda site: _UNIT,
             slots=(_whole(2, 3, 4, 8), _whole(16, 32, 64), _whole(_RATE), _hertz(0.0, 100.0),
                    _hertz(_RATE / 2, _RATE / 4)),
             settings=(Setting("output_datatype", Choice(1), omit=0.8, default=1),)),
)  # fmt: skip
