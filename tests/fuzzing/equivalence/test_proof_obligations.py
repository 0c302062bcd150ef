"""Rules 2 to 7 hold in float64, to 1e-6, and agree with the definitions in numpy (seed-systems 8.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.equivalence import convolutions
from fuzzing.equivalence.subject import Subject
from tests.fuzzing.equivalence.convolution_in_numpy import convolve, pool
from tests.fuzzing.equivalence.pair_helpers import (
    arrays,
    in_float64,
    pair_for,
    run_side,
    sides_of,
    subject_of,
)

#: torch warns of settings that cost time.
pytestmark = pytest.mark.filterwarnings("ignore")

CONVOLUTION_RULES = ("same-padding", "unit-dimension", "depthwise", "dilation")
SEEDS = st.integers(0, 1 << 32)


def expected(subject: Any) -> np.ndarray[Any, Any]:
    found = convolutions.read(Subject(subject))
    assert found is not None
    data = arrays(subject)
    if found.padding == "same":
        padding = [((span - 1) // 2, span - 1 - (span - 1) // 2) for span in found.spans]
    else:
        padding = [(int(width), int(width)) for width in found.padding]
    bias = data.get("bias")
    return convolve(data["input"], data["weight"], bias, found.stride, padding, found.dilation, found.groups)


@pytest.mark.parametrize("name", CONVOLUTION_RULES)
@given(seed=SEEDS, rank=st.integers(1, 2))
@settings(max_examples=8, deadline=None)
def test_both_sides_of_a_convolution_are_its_definition(name: str, seed: int, rank: int) -> None:
    api = convolutions.function(rank)
    pair = pair_for(name, api, seed)
    if pair is None:  # such as one group, or no dilation
        return
    want = expected(in_float64(subject_of(name, api, seed)))
    for side in sides_of(pair):
        [got] = run_side(side, pair)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


@given(seed=SEEDS)
@settings(max_examples=8, deadline=None)
def test_a_separable_convolution_is_a_depthwise_and_a_pointwise_one(seed: int) -> None:
    pair = pair_for("separable", convolutions.function(2), seed)
    assert pair is not None
    subject = in_float64(subject_of("separable", convolutions.function(2), seed))
    found = convolutions.read(Subject(subject))
    assert found is not None
    data = arrays(subject)
    padding = [(int(width), int(width)) for width in found.padding]
    depthwise = convolve(
        data["input"], data["weight"], None, found.stride, padding, found.dilation, found.groups
    )
    pointwise = np.repeat(data["weight"].reshape(len(data["weight"]), -1)[:, :1].T, 2, 0)
    want = np.einsum("ncij,oc->noij", depthwise, pointwise)
    for side in sides_of(pair):
        [got] = run_side(side, pair)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["max", "avg"])
@given(seed=SEEDS)
@settings(max_examples=10, deadline=None)
def test_pooling_with_a_unit_dimension_is_its_definition(kind: str, seed: int) -> None:
    api = f"torch.nn.functional.{kind}_pool2d"
    subject = in_float64(subject_of("unit-dimension", api, seed))
    pair = pair_for("unit-dimension", api, seed)
    assert pair is not None
    sides = [run_side(side, pair)[0] for side in sides_of(pair)]
    np.testing.assert_allclose(sides[0], sides[1], rtol=0, atol=1e-6)
    kwargs = dict(Subject(subject).call.kwargs)
    plain = (
        not kwargs["ceil_mode"] and not any(kwargs["padding"]) and set(kwargs.get("dilation", (1,))) == {1}
    )
    if plain:
        want = pool(arrays(subject)["input"], kwargs["kernel_size"], kwargs["stride"], largest=kind == "max")
        np.testing.assert_allclose(sides[1], want, rtol=0, atol=1e-6)


@given(seed=SEEDS, affine=st.booleans())
@settings(max_examples=8, deadline=None)
def test_batch_normalization_is_its_formula(seed: int, affine: bool) -> None:
    from fuzzing.equivalence import draws, pairs, rule
    from fuzzing.rng import Rng

    rng = Rng(seed)
    shape = draws.lengths(rng, 4, 1, 5)
    each = {"running_mean": (shape[1],), "running_var": (shape[1],)}
    each |= {"weight": (shape[1],), "bias": (shape[1],)} if affine else {}
    inputs: dict[str, Any] = {"input": draws.uniform(rng, shape, "float64")}
    for name, size in each.items():
        inputs[name] = draws.uniform(rng, size, "float64")
    inputs["running_var"] = draws.integers(rng, (shape[1],), "float64", 1, 3)
    case = draws.call_case("torch.nn.functional.batch_norm", inputs)
    pair = pairs.make_pair(rule.get("formula"), case)
    assert pair is not None
    given_ = arrays(case)
    columns = {name: given_[name].reshape(-1, 1, 1) for name in each}
    want = (given_["input"] - columns["running_mean"]) / np.sqrt(columns["running_var"] + 1e-5)
    want = want * columns.get("weight", 1) + columns.get("bias", 0)
    for side in sides_of(pair):
        [got] = run_side(side, pair)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)
