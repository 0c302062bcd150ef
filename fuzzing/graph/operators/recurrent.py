"""Recurrent networks: RNN, LSTM and GRU.

Hidden states are outputs of tanh, or mixtures of these and earlier states, so they are bounded by 1 and the
initial state; the cell of an LSTM grows by at most 1 each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.attribute_domains import Choice, Computed, planned_attribute
from fuzzing.graph.constants import make_constant
from fuzzing.graph.intervals import Interval, hull, within
from fuzzing.graph.ir import Constant
from fuzzing.graph.operator_spec import (
    PRIMARY_INPUT,
    AttributeSpec,
    ConstantInput,
    DataInput,
    InputSpec,
    NodeContext,
    OperatorSpec,
    TorchForm,
)
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sliding_windows import NARROW
from fuzzing.graph.operators.sum_bounds import max_output_elements
from fuzzing.graph.types import FLOATS, Shape, TensorType

_UNIT = Interval(-1, 1)
_WEIGHTS = Interval(-4, 4)


def _directions(context: NodeContext) -> int:
    return 2 if context.get("direction") == "bidirectional" else 1


def _draw(outputs: int, activations: tuple[str, ...]) -> Callable[[NodeContext], None]:
    def plan(context: NodeContext) -> None:
        rng, given = context.rng, context.attributes
        steps, batch, _ = context.dims(0)
        left = max_output_elements(context) // (steps * batch)
        if rng.chance(0.7):
            given["direction"] = rng.choice(("forward", "reverse", "bidirectional")[: min(left, 2) + 1])
        most = min(context.limits.max_dim, left // _directions(context))
        given["hidden_size"] = rng.between(1, max(1, most))
        if rng.chance(0.2):
            given["activations"] = activations * _directions(context)
        context.outputs = rng.between(1, outputs)

    return plan


def _weight(gates: int) -> DataInput:
    return DataInput(lambda context: (_directions(context), gates * context.get("hidden_size"),
                                      context.dims(0)[2]), within=lambda context: _WEIGHTS)  # fmt: skip


def _recurrence(gates: int) -> DataInput:
    return DataInput(lambda context: (_directions(context), gates * context.get("hidden_size"),
                                      context.get("hidden_size")),
                within=lambda context: _WEIGHTS)  # fmt: skip


def _bias(gates: int) -> DataInput:
    return DataInput(lambda context: (_directions(context), 2 * gates * context.get("hidden_size")), omit=0.3,
                within=lambda context: _WEIGHTS)  # fmt: skip


def _lengths(context: NodeContext) -> Constant:
    """Mostly the number of steps, and in at least one row: shorter rows are zero-filled."""
    steps, batch, _ = context.dims(0)
    rng = context.rng
    counts = [rng.between(1, steps) if rng.chance(0.4) else steps for _ in range(batch)]
    counts[rng.below(batch)] = steps
    return make_constant("int32", counts)


def _state(context: NodeContext) -> Shape:
    return (_directions(context), context.dims(0)[1], context.get("hidden_size"))


def _states(context: NodeContext) -> tuple[TensorType, ...]:
    """With `layout` 1 the batch comes first, in the inputs too."""
    steps, batch, _ = context.dims(0)
    count, size = _directions(context), context.dims(2)[2]
    if context.get("layout"):
        steps, batch = batch, steps
        every: Shape = (batch, steps, count, size)
        last: Shape = (batch, count, size)
    else:
        every, last = (steps, count, batch, size), (count, batch, size)
    found = (TensorType(context.dtype, every), *(TensorType(context.dtype, last),) * 2)
    return found[: context.outputs]


def _values(context: NodeContext) -> tuple[Interval, ...]:
    hidden = _UNIT
    if context.given(5):
        hidden = hull((_UNIT, context.range(5)))
    cell = context.dims(0)[0] + (context.range(6).largest if context.given(6) else 0.0)
    return (hidden, hidden, Interval(-cell, cell))[: context.outputs]


def _clip(context: NodeContext) -> float:
    return context.rng.choice((1.0, 5.0))


_CLIP = AttributeSpec("clip", Computed(_clip), omit=0.9)
_SHARED = (
    planned_attribute("hidden_size"),
    planned_attribute("direction", "forward"),
    planned_attribute("activations"),
    _CLIP,
)
_LAYOUT = AttributeSpec("layout", Choice(0), omit=0.9, default=0)
_SEQUENCES = ConstantInput(_lengths, omit=0.8)
_INITIAL = DataInput(_state, within=lambda context: _UNIT, omit=0.5)


def _torch(function: str, order: tuple[int, ...]) -> TorchForm:
    """By torch's function, which orders the gates differently.

    torch lacks clipping, sequence lengths, peepholes, and a GRU that resets before the product with the
    recurrence weights.
    """

    def write(context: NodeContext, names: Sequence[str]) -> str | None:
        early = context.given(4) or context.given(7) or context.get("clip") or context.get("layout")
        if early or (
            "linear_before_reset" in context.operator.defaults and not context.get("linear_before_reset")
        ):
            return None
        count, size = _directions(context), context.get("hidden_size")
        reverse = context.get("direction") == "reverse"
        weights = []
        for direction in range(count):
            weights += [_rows(f"{name}[{direction}]", 0, size, order) for name in names[1:3]]
            if context.given(3):
                gates = len(order)
                weights += [_rows(f"{names[3]}[{direction}]", half * gates, size, order) for half in (0, 1)]
        start = [
            names[place] if context.given(place) else _nothing(context, names[0], count, size)
            for place in ((5, 6) if function == "lstm" else (5,))
        ]
        data = f"{names[0]}.flip(0)" if reverse else names[0]
        states = f"({', '.join(start)})" if len(start) > 1 else start[0]
        text = (
            f"torch.{function}({data}, {states}, "
            f"({', '.join(weights)},), {context.given(3)}, 1, 0.0, False, {count == 2}, False)"
        )
        every = f".unflatten(2, ({count}, {size})).transpose(1, 2)" + (".flip(0)" if reverse else "")
        which = "0" if context.outputs == 1 else f":{context.outputs}"
        return f"(lambda y, *last: (y{every}, *last))(*{text})[{which}]"

    return write


def _rows(name: str, first: int, size: int, order: tuple[int, ...]) -> str:
    parts = [f"{name}[{(first + gate) * size}:{(first + gate + 1) * size}]" for gate in order]
    return parts[0] if len(parts) == 1 else f"torch.cat(({', '.join(parts)}))"


def _nothing(context: NodeContext, name: str, count: int, size: int) -> str:
    return f"{name}.new_zeros({(count, context.dims(0)[1], size)})"


def _recurrent(
    name: str,
    gates: int,
    outputs: int,
    activations: tuple[str, ...],
    *attribute_specs: AttributeSpec,
    more: tuple[DataInput, ...] = (),
    torch: TorchForm,
) -> None:
    input_specs: tuple[InputSpec, ...] = (
        PRIMARY_INPUT,
        _weight(gates),
        _recurrence(gates),
        _bias(gates),
        _SEQUENCES,
        _INITIAL,
        *more,
    )
    for since, dtypes, layout in ((7, NARROW, ()), (14, NARROW, (_LAYOUT,)), (22, FLOATS, (_LAYOUT,))):
        register(
            OperatorSpec(name, since, dtypes=dtypes, ranks=(3,), within=within(-100, 100),
                         input_specs=input_specs, degrees=tuple(range(3, len(input_specs) + 1)),
                         plan=_draw(outputs, activations),
                         attribute_specs=(*_SHARED, *layout, *attribute_specs), infer=_states, values=_values,
                         torch=torch),
        )  # fmt: skip


_recurrent("RNN", 1, 2, ("Tanh",), torch=_torch("rnn_tanh", (0,)))
_recurrent("GRU", 3, 2, ("Sigmoid", "Tanh"),
           AttributeSpec("linear_before_reset", Choice(0, 1), omit=0.4, default=0),
           torch=_torch("gru", (1, 0, 2)))  # fmt: skip
_recurrent("LSTM", 4, 3, ("Sigmoid", "Tanh", "Tanh"),
           AttributeSpec("input_forget", Choice(0), omit=0.9, default=0),
           torch=_torch("lstm", (0, 2, 3, 1)),
           more=(_INITIAL, DataInput(lambda context: (_directions(context), 3 * context.get("hidden_size")),
                                within=lambda context: _WEIGHTS)))  # fmt: skip
