"""Gradients are slopes: both sides are the derivative that numpy gives, and a wrong backward is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws, pairs, rule
from fuzzing.rng import Rng
from tests.fuzzing.equivalence.pair_helpers import arrays, pair_for, run_side, sides_of

#: torch warns of what it is made of.
pytestmark = pytest.mark.filterwarnings("ignore")

RULES = ("finite-differences", "forward-reverse")
DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "torch.sin": np.cos,
    "torch.exp": np.exp,
    "torch.tanh": lambda x: 1 - np.tanh(x) ** 2,
    "torch.square": lambda x: 2 * x,
    "torch.nn.functional.silu": lambda x: (1 + np.exp(-x) * (1 + x)) / (1 + np.exp(-x)) ** 2,
}


def pair(name: str, api: str) -> TestCase:
    made = pairs.make_pair(
        rule.get(name), draws.call_case(api, {"input": draws.uniform(Rng(3), (2, 5), "float64")})
    )
    assert made is not None
    return made


def slopes(case: TestCase) -> list[Any]:
    return [run_side(side, case)[0] for side in sides_of(case)]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("api", DERIVATIVES)
def test_both_sides_are_the_derivative(name: str, api: str) -> None:
    case = pair(name, api)
    x = arrays(case)["input"]
    places = np.arange(x.size).reshape(x.shape)
    want = (DERIVATIVES[api](x) * (1 + places % 3) * (1 - 2 * (places % 2))).sum()
    np.testing.assert_allclose(slopes(case), [want, want], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("api", ["torch.floor", "torch.nn.functional.relu"])
def test_a_kink_is_not_compared(api: str) -> None:
    case = draws.call_case(api, {"input": draws.integers(Rng(0), (2, 2), "float64", 0, 0)})
    made = pairs.make_pair(rule.get("finite-differences"), case)
    assert made is not None
    left, right = slopes(made)
    assert left == right


class WrongSine(torch.autograd.Function):
    """A sine whose backward lacks a sign."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        wrong: torch.Tensor = -grads[0] * x.cos()
        return wrong


def test_a_wrong_backward_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "sin", WrongSine.apply)
    left, right = slopes(pair("finite-differences", "torch.sin"))
    assert abs(left - right) > 0.1


@pytest.mark.parametrize("api", ["torch.nn.Linear", "torch.nn.MaxPool2d", "torch.nn.GRU", "torch.nn.Conv1d"])
def test_the_order_of_samples_is_kept(api: str) -> None:
    made = pair_for("batch-order", api)
    assert made is not None
    left, right = slopes(made)
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-12)


def test_a_layer_that_looks_at_the_whole_batch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.nn.Linear.forward
    monkeypatch.setattr(torch.nn.Linear, "forward", lambda layer, data: right(layer, data) + data[0, 0, 0])
    made = pair_for("batch-order", "torch.nn.Linear")
    assert made is not None
    left, other = slopes(made)
    assert np.abs(left - other).max() > 1e-3


def test_what_rounds_to_a_narrower_type_has_no_slope() -> None:
    """Steps of 1e-5 are lost in bfloat16."""
    with pytest.raises(NotImplementedError, match="narrower type"):
        slopes(pair("finite-differences", "torch.Tensor.bfloat16"))
