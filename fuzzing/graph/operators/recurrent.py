"""Recurrent networks: RNN, LSTM and GRU.

Hidden states are outputs of tanh, or mixtures of such and of the states before, so they are bounded by 1
and by where they begin; the cell of an LSTM adds at most 1 each step.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzzing.graph.domains import Choice, Made
from fuzzing.graph.intervals import Interval, hull, within
from fuzzing.graph.ir import Constant
from fuzzing.graph.literals import literal
from fuzzing.graph.operator import LEAD, Auxiliary, Data, Operator, Setting, Slot
from fuzzing.graph.operators import register
from fuzzing.graph.operators.sums import planned
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
        given["hidden_size"] = draws.between(1, max(1, site.limits.max_dim))
        if draws.chance(0.7):
            given["direction"] = draws.choice(("forward", "reverse", "bidirectional"))
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


def _recurrent(
    name: str,
    gates: int,
    outputs: int,
    activations: tuple[str, ...],
    *settings: Setting,
    more: tuple[Data, ...] = (),
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
                     settings=(*_SHARED, *layout, *settings), infer=_states, values=_values),
        )  # fmt: skip


_recurrent("RNN", 1, 2, ("Tanh",))
_recurrent("GRU", 3, 2, ("Sigmoid", "Tanh"),
           Setting("linear_before_reset", Choice(0, 1), omit=0.4, default=0))  # fmt: skip
_recurrent("LSTM", 4, 3, ("Sigmoid", "Tanh", "Tanh"),
           Setting("input_forget", Choice(0), omit=0.9, default=0),
           more=(_INITIAL, Data(lambda site: (_directions(site), 3 * site.get("hidden_size")),
                                within=lambda site: _WEIGHTS)))  # fmt: skip
