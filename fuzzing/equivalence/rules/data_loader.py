"""Rule 11: an operator on each sample computes the same through a Dataset and a DataLoader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

_NAMES = (
    "abs", "ceil", "cos", "cumsum", "diff", "exp", "erf", "fft.fft", "fft.rfft", "flip", "floor", "frac",
    "flatten", "log1p", "logit", "neg", "nn.functional.gelu", "nn.functional.relu", "nn.functional.silu",
    "nn.functional.softplus", "round", "rsqrt", "sigmoid", "sign", "sin", "sinc", "softmax", "sort", "sqrt",
    "square", "std", "sum", "tanh", "transpose", "trunc", "unbind", "amax", "argmax", "mean", "median",
    "var", "prod", "logsumexp", "roll", "rot90",
)  # fmt: skip
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "cumsum": {"dim": 0}, "flip": {"dims": [1]}, "softmax": {"dim": 1}, "logsumexp": {"dim": 0},
    "roll": {"shifts": 2}, "transpose": {"dim0": 0, "dim1": 1}, "median": {"dim": 1}, "amax": {"dim": 0},
    "argmax": {"dim": 1},
}  # fmt: skip
APIS = tuple(f"torch.{name}" for name in _NAMES)
_HELPER = """

class Samples(torch.utils.data.Dataset):
    def __init__(self, tensor, function):
        self.tensor, self.function = tensor, function

    def __len__(self):
        return len(self.tensor)

    def __getitem__(self, place):
        return torch.utils._pytree.tree_leaves(self.function(self.tensor[place]))
"""


def _apis() -> tuple[str, ...]:
    return APIS


def _draw(api: str, rng: Rng) -> TestCase:
    shape = (rng.between(1, 5), *draws.lengths(rng, 2, 2, 6))
    settings = _SETTINGS.get(api.removeprefix("torch."), {})
    return draws.call_case(api, {"input": draws.uniform(rng, shape)}, settings)


@register_rule(
    "data-loader", number=11, equation="stack(f(i₁), …) = concatenated batches of Dataset(i, f)",
    apis=_apis, draw=_draw,
)  # fmt: skip
def rewrite(subject: Subject) -> Sides | None:
    """Samples are the rows of the input; batches of two, none shuffled, loaded in this process."""
    if subject.names != ("input",) or subject.api not in APIS:
        return None
    function = f"function = lambda input: {subject.expression}"
    rows = "rows = [torch.utils._pytree.tree_leaves(function(row)) for row in input]"
    loaded = [function, "batches = list(torch.utils.data.DataLoader(Samples(input, function), batch_size=2))"]
    return Sides(
        subject.program("[torch.stack(list(column)) for column in zip(*rows)]", [function, rows]),
        subject.program("[torch.cat(list(column)) for column in zip(*batches)]", loaded, helpers=_HELPER),
    )
