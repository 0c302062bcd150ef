"""Normalisations: what has its mean taken off and is divided by its spread.

n deviations over the root of their mean square are at most √n each, so the outputs are bounded whatever
comes in. What comes in is kept moderate all the same: some compilers, and ONNX's own definition of
GroupNormalization, take the variance to be E[x²] - E[x]², which is negative by rounding where the elements
are large and alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.draws import Draws
from fuzzing.graph.domains import Axis, Choice, Made
from fuzzing.graph.intervals import Interval, add, multiply, scale, widen, within
from fuzzing.graph.operator import LEAD, Data, Operator, Setting, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sums import addend, multiplied
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Limits, Site
from fuzzing.graph.types import FLOATS, Shape, TensorType

_IMAGES = (3, 4, 5)
_STEADY = within(-30, 30)
_GAIN = Interval(-8, 8)
_HALVES = ("float16", "bfloat16")


def _epsilon(site: Site) -> float:
    """Halves need one that their own rounding does not reach."""
    return 0.1 if site.dtype in _HALVES else site.draws.choice((1e-5, 1e-3, 0.1))


_EPSILON = Setting("epsilon", Made(_epsilon), omit=0.5, default=1e-5)
_STASH = Setting("stash_type", Choice(1), omit=0.8, default=1)


def _channels(site: Site) -> Shape:
    return (site.dims(0)[1],)


def _bounded(site: Site, count: int, bias: bool = True) -> Interval:
    """√n·scale + bias, for n elements normalised together."""
    most = math.sqrt(count) * site.range(1).largest
    found = widen(Interval(-most, most), 1e-2)
    return add(found, site.range(2)) if bias and site.given(2) else found


# --- by batch, instance and group -------------------------------------------------------------------------


def _batch_values(site: Site) -> Interval:
    away = add(site.range(0), scale(site.range(3), -1.0))
    least = 1 / math.sqrt(site.range(4).high + site.get("epsilon"))
    most = 1 / math.sqrt(site.range(4).low + site.get("epsilon"))
    return widen(add(multiply(multiply(away, Interval(least, most)), site.range(1)), site.range(2)))


def _torch_batch(site: Site, names: Sequence[str]) -> str:
    x, gain, bias, mean, variance = names
    return (
        f"torch.nn.functional.batch_norm({x}, {mean}, {variance}, {gain}, {bias}, "
        f"training=False, eps={site.get('epsilon')!r})"
    )


def _batch(since: int, dtypes: tuple[str, ...], *settings: Setting) -> Operator:
    return Operator(
        "BatchNormalization", since, dtypes=dtypes, ranks=(2, 3, 4, 5), within=multiplied,
        slots=(
            LEAD,
            Data(_channels, within=lambda site: _GAIN),
            Data(_channels, within=addend),
            Data(_channels, within=lambda site: _GAIN),
            Data(_channels, within=lambda site: Interval(0.1, 2.0)),  # a variance
        ),
        settings=(_EPSILON, Setting("momentum", Choice(0.5, 0.9), omit=0.7, default=0.9), *settings),
        values=_batch_values, torch=_torch_batch,
    )  # fmt: skip


def _several(shape: tuple[int, ...]) -> bool:
    """Whether an instance has two elements. Of one, x - mean is 0, and what kernels that compute it as
    x·s + (b - mean·s) give instead is a rounding of x·s, which no other run of the program shows.
    """
    return math.prod(shape[2:]) > 1


def _fresh_several(draws: Draws, limits: Limits) -> tuple[int, ...]:
    rank = draws.between(3, max(3, min(5, limits.max_rank)))
    shape = [draws.between(max(1, limits.min_dim), max(1, limits.max_dim)) for _ in range(rank)]
    shape[-1] = max(2, shape[-1])
    return tuple(shape)


def _instance(since: int, dtypes: tuple[str, ...]) -> Operator:
    return Operator(
        "InstanceNormalization", since, dtypes=dtypes, ranks=_IMAGES, within=_STEADY,
        takes=_several, fresh=_fresh_several,
        slots=(LEAD, Data(_channels, within=lambda site: _GAIN), Data(_channels, within=addend)),
        settings=(_EPSILON,),
        values=lambda site: _bounded(site, math.prod(site.dims(0)[2:])),
        torch=lambda site, names: (
            f"torch.group_norm({names[0]}, {site.dims(0)[1]}, {names[1]}, {names[2]}, "
            f"{site.get('epsilon')!r})"
        ),
    )  # fmt: skip


def _even(type_: TensorType) -> Interval:
    """So small that E[x²] - E[x]² is no less than -ε/2 by rounding, in whatever order is summed."""
    if type_.dtype in _HALVES:
        return Interval(-1, 1)
    most = min(4.0, math.sqrt(500 / max(1, type_.elements)))
    return Interval(-most, most)


def _groups(site: Site) -> None:
    channels = site.dims(0)[1]
    some = 1 + site.draws.below(min(channels, 8))
    groups = site.draws.choice((1, channels, some if channels % some == 0 else 1))
    site.attributes["num_groups"] = groups
    if site.dtype in _HALVES:
        site.attributes["epsilon"] = 0.1
    elif site.draws.chance(0.5):
        site.attributes["epsilon"] = site.draws.choice((1e-5, 1e-3, 0.1))


def _group_values(site: Site) -> Interval:
    _, channels, *space = site.dims(0)
    return widen(_bounded(site, channels // site.get("num_groups") * math.prod(space)), 0.5)


def _torch_group(site: Site, names: Sequence[str]) -> str:
    x, gain, bias = names
    return f"torch.group_norm({x}, {site.get('num_groups')}, {gain}, {bias}, {site.get('epsilon')!r})"


# --- over the last axes -----------------------------------------------------------------------------------


def _tail(site: Site) -> Shape:
    """The axes normalised; now and then only what broadcasts to them."""
    tail = site.shape[site.axis() :]
    return tail[-1:] if site.draws.chance(0.1) else tail


def _tail_count(site: Site) -> int:
    return math.prod(site.dims(0)[site.axis() :])


def _stashed(site: Site) -> str:
    return "bfloat16" if site.get("stash_type") == 16 else "float32"


def _layer(site: Site) -> tuple[TensorType, ...]:
    axis = site.axis()
    kept = TensorType(_stashed(site), (*site.shape[:axis], *(1,) * (site.rank - axis)))
    return (site.x, kept, kept)[: site.outputs]


def _layer_values(site: Site) -> tuple[Interval, ...]:
    low, high = site.range(0)
    epsilon = site.get("epsilon")
    spread = ((high - low) / 2) ** 2  # no variance is larger (Popoviciu)
    inverse = Interval(0.99 / math.sqrt(spread + epsilon), 1.01 / math.sqrt(epsilon))
    return (_bounded(site, _tail_count(site)), widen(site.range(0)), inverse)[: site.outputs]


def _torch_layer(site: Site, names: Sequence[str]) -> str:
    shape = site.dims(0)[site.axis() :]
    gain = f"{names[1]}.expand({shape})"
    bias = f"{names[2]}.expand({shape})" if site.given(2) else None
    if site.outputs == 1:
        return f"torch.nn.functional.layer_norm({names[0]}, {shape}, {gain}, {bias}, {site.get('epsilon')!r})"
    return (
        f"torch.native_layer_norm({names[0]}, {shape}, {gain}, {bias}, "
        f"{site.get('epsilon')!r})[:{site.outputs}]"
    )


def _layer_outputs(site: Site) -> None:
    if site.draws.chance(0.2):
        site.outputs = site.draws.between(2, 3)


def _torch_root(site: Site, names: Sequence[str]) -> str:
    axes = tuple(range(site.axis(), site.rank))
    return (
        f"{names[0]} * torch.rsqrt(({names[0]} * {names[0]}).mean({axes}, keepdim=True) + "
        f"{site.get('epsilon')!r}) * {names[1]}"
    )


_AXIS = Setting("axis", Axis(negative=0.4), omit=0.4, default=-1)


# --- over neighbouring channels ---------------------------------------------------------------------------


def _response(site: Site) -> Interval:
    """Divided by at least bias**beta, and by (bias + alpha · the largest square)**beta at most."""
    bias, alpha, beta = (site.get(name) for name in ("bias", "alpha", "beta"))
    least = (bias + alpha * site.range(0).largest ** 2) ** -beta
    return widen(multiply(site.range(0), Interval(least, bias**-beta)), 1e-2)


def _torch_response(site: Site, names: Sequence[str]) -> str:
    size, alpha, beta, bias = (site.get(name) for name in ("size", "alpha", "beta", "bias"))
    return f"torch.nn.functional.local_response_norm({names[0]}, {size}, {alpha!r}, {beta!r}, {bias!r})"


register(
    _batch(9, NARROW),
    # Training mode gives running statistics too, and is no inference; so it is only ever said to be off.
    _batch(14, FLOATS, Setting("training_mode", Choice(0), omit=0.7, default=0)),
    _instance(6, NARROW),
    _instance(22, FLOATS),
    # That of opset 18, with one scale for each group, is deprecated, and onnx's checker refuses it.
    Operator("GroupNormalization", 21, ranks=_IMAGES, within=_even, plan=_groups,
             slots=(LEAD, Data(_channels, within=lambda site: _GAIN), Data(_channels, within=addend)),
             settings=(planned("num_groups"), planned("epsilon", 1e-5), _STASH),
             values=_group_values, torch=_torch_group),
    Operator("LayerNormalization", 17, ranks=tuple(range(1, 9)), within=_STEADY, plan=_layer_outputs,
             slots=(LEAD, Data(_tail, within=lambda site: _GAIN), Data(_tail, within=addend)),
             degrees=(2, 3), settings=(_AXIS, _EPSILON, _STASH),
             infer=_layer, values=_layer_values, torch=_torch_layer),
    Operator("RMSNormalization", 23, ranks=tuple(range(1, 9)), within=_STEADY,
             slots=(LEAD, Data(_tail, within=lambda site: _GAIN)), settings=(_AXIS, _EPSILON, _STASH),
             values=lambda site: _bounded(site, _tail_count(site), bias=False), torch=_torch_root),
    Operator("LRN", 13, ranks=(4,), within=_STEADY,
             settings=(Setting("size", Choice(1, 3, 5)),
                       Setting("alpha", Choice(1e-4, 0.1, 1.0), omit=0.4, default=1e-4),
                       Setting("beta", Choice(0.5, 0.75, 1.0), omit=0.4, default=0.75),
                       Setting("bias", Choice(0.5, 1.0, 2.0), omit=0.4, default=1.0)),
             values=_response, torch=_torch_response),
)  # fmt: skip
