"""Normalizations: subtract the mean, divide by the deviation.

n deviations over the root of their mean square are at most √n each, so outputs are bounded for any input.
Inputs are kept moderate because some compilers, and ONNX's own definition of GroupNormalization, compute the
variance as E[x²] - E[x]², which rounding makes negative for large, nearly equal elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fuzzing.graph.attribute_domains import Axis, Choice, Computed, planned_attribute
from fuzzing.graph.intervals import Interval, add, multiply, scale, widen, within
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    DataInput,
    GraphLimits,
    NodeContext,
    OperatorSpec,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.sum_bounds import addend, multiplied
from fuzzing.graph.types import FLOATS, Shape, TensorType
from fuzzing.rng import Rng

_IMAGES = (3, 4, 5)
_STEADY = within(-30, 30)
_GAIN = Interval(-8, 8)
_HALVES = ("float16", "bfloat16")


def _epsilon(context: NodeContext) -> float:
    """Halves need one above their own rounding."""
    return 0.1 if context.dtype in _HALVES else context.rng.choice((1e-5, 1e-3, 0.1))


_EPSILON = AttributeSpec("epsilon", Computed(_epsilon), omit=0.5, default=1e-5)
_STASH = AttributeSpec("stash_type", Choice(1), omit=0.8, default=1)


def _channels(context: NodeContext) -> Shape:
    return (context.dims(0)[1],)


def _bounded(context: NodeContext, count: int, bias: bool = True) -> Interval:
    """√n·scale + bias, for n elements normalized together."""
    most = math.sqrt(count) * context.range(1).largest
    found = widen(Interval(-most, most), 1e-2)
    return add(found, context.range(2)) if bias and context.given(2) else found


def _batch_values(context: NodeContext) -> Interval:
    away = add(context.range(0), scale(context.range(3), -1.0))
    least = 1 / math.sqrt(context.range(4).high + context.get("epsilon"))
    most = 1 / math.sqrt(context.range(4).low + context.get("epsilon"))
    return widen(add(multiply(multiply(away, Interval(least, most)), context.range(1)), context.range(2)))


def _torch_batch(context: NodeContext, names: Sequence[str]) -> str:
    x, gain, bias, mean, variance = names
    return (
        f"torch.nn.functional.batch_norm({x}, {mean}, {variance}, {gain}, {bias}, "
        f"training=False, eps={context.get('epsilon')!r})"
    )


def _batch(since: int, dtypes: tuple[str, ...], *attribute_specs: AttributeSpec) -> OperatorSpec:
    return OperatorSpec(
        "BatchNormalization", since, dtypes=dtypes, ranks=(2, 3, 4, 5), within=multiplied,
        input_specs=(
            PRIMARY_INPUT,
            DataInput(_channels, within=lambda context: _GAIN),
            DataInput(_channels, within=addend),
            DataInput(_channels, within=lambda context: _GAIN),
            DataInput(_channels, within=lambda context: Interval(0.1, 2.0)),  # a variance
        ),
        attribute_specs=(_EPSILON, AttributeSpec("momentum", Choice(0.5, 0.9), omit=0.7,
                                                 default=0.9), *attribute_specs),
        values=_batch_values, torch=_torch_batch,
    )  # fmt: skip


def _several(shape: tuple[int, ...]) -> bool:
    """Whether an instance has two elements. For one, x - mean is 0, and kernels that compute it as
    x·s + (b - mean·s) return a rounding of x·s that no other run of the program shows.
    """
    return math.prod(shape[2:]) > 1


def _fresh_several(rng: Rng, limits: GraphLimits) -> tuple[int, ...]:
    rank = rng.between(3, max(3, min(5, limits.max_rank)))
    shape = [rng.between(max(1, limits.min_dim), max(1, limits.max_dim)) for _ in range(rank)]
    shape[-1] = max(2, shape[-1])
    return tuple(shape)


def _instance(since: int, dtypes: tuple[str, ...]) -> OperatorSpec:
    return OperatorSpec(
        "InstanceNormalization", since, dtypes=dtypes, ranks=_IMAGES, within=_STEADY,
        takes=_several, draw_shape=_fresh_several,
        input_specs=(PRIMARY_INPUT, DataInput(_channels, within=lambda context: _GAIN),
                     DataInput(_channels, within=addend)),
        attribute_specs=(_EPSILON,),
        values=lambda context: _bounded(context, math.prod(context.dims(0)[2:])),
        torch=lambda context, names: (
            f"torch.group_norm({names[0]}, {context.dims(0)[1]}, {names[1]}, {names[2]}, "
            f"{context.get('epsilon')!r})"
        ),
    )  # fmt: skip


def _even(type_: TensorType) -> Interval:
    """So small that rounding keeps E[x²] - E[x]² above -ε/2, in any order of summation."""
    if type_.dtype in _HALVES:
        return Interval(-1, 1)
    most = min(4.0, math.sqrt(500 / max(1, type_.elements)))
    return Interval(-most, most)


def _groups(context: NodeContext) -> None:
    channels = context.dims(0)[1]
    some = 1 + context.rng.below(min(channels, 8))
    groups = context.rng.choice((1, channels, some if channels % some == 0 else 1))
    context.attributes["num_groups"] = groups
    if context.dtype in _HALVES:
        context.attributes["epsilon"] = 0.1
    elif context.rng.chance(0.5):
        context.attributes["epsilon"] = context.rng.choice((1e-5, 1e-3, 0.1))


def _group_values(context: NodeContext) -> Interval:
    _, channels, *space = context.dims(0)
    return widen(_bounded(context, channels // context.get("num_groups") * math.prod(space)), 0.5)


def _torch_group(context: NodeContext, names: Sequence[str]) -> str:
    x, gain, bias = names
    return f"torch.group_norm({x}, {context.get('num_groups')}, {gain}, {bias}, {context.get('epsilon')!r})"


def _tail(context: NodeContext) -> Shape:
    tail = context.shape[context.axis() :]
    return tail[-1:] if context.rng.chance(0.1) else tail


def _tail_count(context: NodeContext) -> int:
    return math.prod(context.dims(0)[context.axis() :])


def _layer(context: NodeContext) -> tuple[TensorType, ...]:
    axis = context.axis()
    kept = TensorType(
        "bfloat16" if context.get("stash_type") == 16 else "float32",
        (*context.shape[:axis], *(1,) * (context.rank - axis)),
    )
    return (context.x, kept, kept)[: context.outputs]


def _layer_values(context: NodeContext) -> tuple[Interval, ...]:
    low, high = context.range(0)
    epsilon = context.get("epsilon")
    spread = ((high - low) / 2) ** 2  # no variance is larger (Popoviciu)
    inverse = Interval(0.99 / math.sqrt(spread + epsilon), 1.01 / math.sqrt(epsilon))
    return (_bounded(context, _tail_count(context)), widen(context.range(0)), inverse)[: context.outputs]


def _torch_layer(context: NodeContext, names: Sequence[str]) -> str:
    shape = context.dims(0)[context.axis() :]
    gain = f"{names[1]}.expand({shape})"
    bias = f"{names[2]}.expand({shape})" if context.given(2) else None
    if context.outputs == 1:
        return (
            f"torch.nn.functional.layer_norm({names[0]}, {shape}, {gain}, {bias}, {context.get('epsilon')!r})"
        )
    return (
        f"torch.native_layer_norm({names[0]}, {shape}, {gain}, {bias}, "
        f"{context.get('epsilon')!r})[:{context.outputs}]"
    )


def _layer_outputs(context: NodeContext) -> None:
    if context.rng.chance(0.2):
        context.outputs = context.rng.between(2, 3)


def _torch_root(context: NodeContext, names: Sequence[str]) -> str:
    axes = tuple(range(context.axis(), context.rank))
    return (
        f"{names[0]} * torch.rsqrt(({names[0]} * {names[0]}).mean({axes}, keepdim=True) + "
        f"{context.get('epsilon')!r}) * {names[1]}"
    )


_AXIS = AttributeSpec("axis", Axis(negative=0.4), omit=0.4, default=-1)


def _response(context: NodeContext) -> Interval:
    """Divided by at least bias**beta, and at most (bias + alpha · the largest square)**beta."""
    bias, alpha, beta = (context.get(name) for name in ("bias", "alpha", "beta"))
    least = (bias + alpha * context.range(0).largest ** 2) ** -beta
    return widen(multiply(context.range(0), Interval(least, bias**-beta)), 1e-2)


def _torch_response(context: NodeContext, names: Sequence[str]) -> str:
    size, alpha, beta, bias = (context.get(name) for name in ("size", "alpha", "beta", "bias"))
    return f"torch.nn.functional.local_response_norm({names[0]}, {size}, {alpha!r}, {beta!r}, {bias!r})"


register(
    _batch(9, NARROW),
    # Training mode gives running statistics too, and is no inference; so it is only ever set to off.
    _batch(14, FLOATS, AttributeSpec("training_mode", Choice(0), omit=0.7, default=0)),
    _instance(6, NARROW),
    _instance(22, FLOATS),
    # That of opset 18, with one scale for each group, is deprecated, and onnx's checker refuses it.
    OperatorSpec("GroupNormalization", 21, ranks=_IMAGES, within=_even, plan=_groups,
                 input_specs=(PRIMARY_INPUT, DataInput(_channels, within=lambda context: _GAIN),
                              DataInput(_channels, within=addend)),
                 attribute_specs=(planned_attribute("num_groups"), planned_attribute("epsilon", 1e-5),
                                  _STASH), values=_group_values, torch=_torch_group),
    OperatorSpec("LayerNormalization", 17, ranks=tuple(range(1, 9)), within=_STEADY, plan=_layer_outputs,
                 input_specs=(PRIMARY_INPUT, DataInput(_tail, within=lambda context: _GAIN),
                              DataInput(_tail, within=addend)), degrees=(2, 3),
                 attribute_specs=(_AXIS, _EPSILON, _STASH), infer=_layer, values=_layer_values,
                 torch=_torch_layer),
    OperatorSpec("RMSNormalization", 23, ranks=tuple(range(1, 9)), within=_STEADY,
                 input_specs=(PRIMARY_INPUT, DataInput(_tail, within=lambda context: _GAIN)),
                 attribute_specs=(_AXIS, _EPSILON, _STASH),
                 values=lambda context: _bounded(context, _tail_count(context), bias=False),
                 torch=_torch_root),
    OperatorSpec("LRN", 13, ranks=(4,), within=_STEADY,
             attribute_specs=(AttributeSpec("size", Choice(1, 3, 5)),
                       AttributeSpec("alpha", Choice(1e-4, 0.1, 1.0), omit=0.4, default=1e-4),
                       AttributeSpec("beta", Choice(0.5, 0.75, 1.0), omit=0.4, default=0.75),
                       AttributeSpec("bias", Choice(0.5, 1.0, 2.0), omit=0.4, default=1.0)),
             values=_response, torch=_torch_response),
)  # fmt: skip
