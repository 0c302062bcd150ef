"""Recurrent networks: RNN, LSTM and GRU.

Hidden states are outputs of tanh, or mixtures of such and of the states before, so they are bounded by 1
and by where they begin; the cell of an LSTM adds at most 1 each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import Interval, hull, within
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import literal
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting, Slot, Torch, planned
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sums import room
from fuzzing.graph.operators.windows import NARROW
from fuzzing.graph.site import Site
from fuzzing.graph.types import FLOATS, Shape, TensorType

_UNIT = Interval(-1, 1)
_WEIGHTS = Interval(-4, 4)


def _directions(site: Site) -> int:
    return 2 if site.get("direction") == "bidirectional" else 1


def _draw(outputs: int, activations: tuple[str, ...]) -> Callable[[Site], None]:
    def plan(site: Site) -> None:
        draws, given = site.draws, site.attributes
        steps, batch, _ = site.dims(0)
        left = room(site) // (steps * batch)
        if draws.chance(0.7):
            given["direction"] = draws.choice(("forward", "reverse", "bidirectional")[: min(left, 2) + 1])
        most = min(site.limits.max_dim, left // _directions(site))
        given["hidden_size"] = draws.between(1, max(1, most))
        if draws.chance(0.2):
            given["activations"] = activations * _directions(site)
        site.outputs = draws.between(1, outputs)

    return plan


def _weight(gates: int) -> Data:
    return Data(lambda site: (_directions(site), gates * site.get("hidden_size"), site.dims(0)[2]),
                within=lambda site: _WEIGHTS)  # fmt: skip


def _recurrence(gates: int) -> Data:
    return Data(lambda site: (_directions(site), gates * site.get("hidden_size"), site.get("hidden_size")),
                within=lambda site: _WEIGHTS)  # fmt: skip


def _bias(gates: int) -> Data:
    return Data(lambda site: (_directions(site), 2 * gates * site.get("hidden_size")), omit=0.3,
                within=lambda site: _WEIGHTS)  # fmt: skip


def _lengths(site: Site) -> Constant:
    """As many steps as there are mostly, in one row at least: shorter rows are zeros from their end on."""
    steps, batch, _ = site.dims(0)
    draws = site.draws
    counts = [draws.between(1, steps) if draws.chance(0.4) else steps for _ in range(batch)]
    counts[draws.below(batch)] = steps
    return literal("int32", counts)


def _state(site: Site) -> Shape:
    return (_directions(site), site.dims(0)[1], site.get("hidden_size"))


def _states(site: Site) -> tuple[TensorType, ...]:
    """With `layout` 1 the batch comes first, in what goes in too."""
    steps, batch, _ = site.dims(0)
    count, size = _directions(site), site.dims(2)[2]
    if site.get("layout"):
        steps, batch = batch, steps
        every: Shape = (batch, steps, count, size)
        last: Shape = (batch, count, size)
    else:
        every, last = (steps, count, batch, size), (count, batch, size)
    found = (TensorType(site.dtype, every), *(TensorType(site.dtype, last),) * 2)
    return found[: site.outputs]


def _values(site: Site) -> tuple[Interval, ...]:
    hidden = _UNIT
    if site.given(5):
        hidden = hull((_UNIT, site.range(5)))
    cell = site.dims(0)[0] + (site.range(6).largest if site.given(6) else 0.0)
    return (hidden, hidden, Interval(-cell, cell))[: site.outputs]


def _clip(site: Site) -> float:
    return site.draws.choice((1.0, 5.0))


_CLIP = Setting("clip", Made(_clip), omit=0.9)
_SHARED = (planned("hidden_size"), planned("direction", "forward"), planned("activations"), _CLIP)
_LAYOUT = Setting("layout", Choice(0), omit=0.9, default=0)
_SEQUENCES = Auxiliary(_lengths, omit=0.8)
_INITIAL = Data(_state, within=lambda site: _UNIT, omit=0.5)


# --- torch ------------------------------------------------------------------------------------------------


def _torch(function: str, order: tuple[int, ...]) -> Torch:
    """By a function of torch, which wants the gates in another order.

    torch lets nothing be clipped, and no row end early; peepholes it lacks, and a GRU that resets before the
    product with the recurrence weights.
    """

    def write(site: Site, names: Sequence[str]) -> str | None:
        early = site.given(4) or site.given(7) or site.get("clip") or site.get("layout")
        if early or ("linear_before_reset" in site.operator.defaults and not site.get("linear_before_reset")):
            return None
        count, size = _directions(site), site.get("hidden_size")
        reverse = site.get("direction") == "reverse"
        weights = []
        for direction in range(count):
            weights += [_rows(f"{name}[{direction}]", 0, size, order) for name in names[1:3]]
            if site.given(3):
                gates = len(order)
                weights += [_rows(f"{names[3]}[{direction}]", half * gates, size, order) for half in (0, 1)]
        start = [
            names[place] if site.given(place) else _nothing(site, names[0], count, size)
            for place in ((5, 6) if function == "lstm" else (5,))
        ]
        data = f"{names[0]}.flip(0)" if reverse else names[0]
        states = f"({', '.join(start)})" if len(start) > 1 else start[0]
        text = (
            f"torch.{function}({data}, {states}, "
            f"({', '.join(weights)},), {site.given(3)}, 1, 0.0, False, {count == 2}, False)"
        )
        every = f".unflatten(2, ({count}, {size})).transpose(1, 2)" + (".flip(0)" if reverse else "")
        which = "0" if site.outputs == 1 else f":{site.outputs}"
        return f"(lambda y, *last: (y{every}, *last))(*{text})[{which}]"

    return write


def _rows(name: str, first: int, size: int, order: tuple[int, ...]) -> str:
    """The rows of each gate, from a gate on, in torch's order."""
    parts = [f"{name}[{(first + gate) * size}:{(first + gate + 1) * size}]" for gate in order]
    return parts[0] if len(parts) == 1 else f"torch.cat(({', '.join(parts)}))"


def _nothing(site: Site, name: str, count: int, size: int) -> str:
    return f"{name}.new_zeros({(count, site.dims(0)[1], size)})"


def _recurrent(
    name: str,
    gates: int,
    outputs: int,
    activations: tuple[str, ...],
    *settings: Setting,
    more: tuple[Data, ...] = (),
    torch: Torch,
) -> None:
    slots: tuple[Slot, ...] = (
        LEAD,
        _weight(gates),
        _recurrence(gates),
        _bias(gates),
        _SEQUENCES,
        _INITIAL,
        *more,
    )
    for since, dtypes, layout in ((7, NARROW, ()), (14, NARROW, (_LAYOUT,)), (22, FLOATS, (_LAYOUT,))):
        register(
            Operator(name, since, dtypes=dtypes, ranks=(3,), within=within(-100, 100), slots=slots,
                     degrees=tuple(range(3, len(slots) + 1)), plan=_draw(outputs, activations),
                     settings=(*_SHARED, *layout, *settings), infer=_states, values=_values,
                     torch=torch),
        )  # fmt: skip


_recurrent("RNN", 1, 2, ("Tanh",), torch=_torch("rnn_tanh", (0,)))
_recurrent("GRU", 3, 2, ("Sigmoid", "Tanh"),
           Setting("linear_before_reset", Choice(0, 1), omit=0.4, default=0),
           torch=_torch("gru", (1, 0, 2)))  # fmt: skip
_recurrent("LSTM", 4, 3, ("Sigmoid", "Tanh", "Tanh"),
           Setting("input_forget", Choice(0), omit=0.9, default=0),
           torch=_torch("lstm", (0, 2, 3, 1)),
           more=(_INITIAL, Data(lambda site: (_directions(site), 3 * site.get("hidden_size")),
                                within=lambda site: _WEIGHTS)))  # fmt: skip
