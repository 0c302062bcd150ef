"""Rule 10: a recurrent layer computes the same batch first and time first."""

from __future__ import annotations

from typing import Any

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

LAYERS = ("torch.nn.RNN", "torch.nn.GRU", "torch.nn.LSTM")


def _apis() -> tuple[str, ...]:
    return LAYERS


def draw(api: str, rng: Rng) -> TestCase:
    """A layer with up to two levels, in one or both directions."""
    size = rng.between(1, 4)
    init: dict[str, Any] = {
        "input_size": size,
        "hidden_size": rng.between(1, 4),
        "num_layers": rng.between(1, 2),
        "bias": rng.chance(0.7),
        "batch_first": rng.chance(0.5),
        "bidirectional": rng.chance(0.5),
    }
    if api == "torch.nn.RNN":
        init["nonlinearity"] = rng.choice(("tanh", "relu"))
    if api == "torch.nn.LSTM" and init["hidden_size"] > 1 and rng.chance(0.3):
        init["proj_size"] = 1
    shape = (*draws.lengths(rng, 2, 1, 5), size)
    return draws.call_case(api, {"input": draws.uniform(rng, shape)}, init=init, seed=rng.seed())


@register_rule(
    "time-major", number=10, equation="f(i, batch first) = f(iᵀ, time first)ᵀ", apis=_apis, draw=draw
)
def rewrite(subject: Subject) -> Sides | None:
    """Swaps the first two dimensions of input and output and the setting; the states have neither."""
    if subject.api not in LAYERS or len(subject.names) != 1 or subject.call.kwargs:
        return None
    name = subject.names[0]
    if len(subject.tensors[name].shape) != 3:
        return None
    setup = [
        "self.layer.batch_first = not self.layer.batch_first",
        f"output, state = self.layer({name}.transpose(0, 1))",
    ]
    return Sides(subject.program(), subject.program("(output.transpose(0, 1), state)", setup))
