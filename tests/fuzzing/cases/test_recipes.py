from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from fuzzing.cases import Recipe
from fuzzing.errors import CaseFormatError
from tests.fuzzing.cases.strategies import integer_recipes, recipes, uniform_recipes

#: Bytes of every kind and type, fixed for ever: stored cases depend on them. The same on numpy 1.26.
GOLDEN = {
    Recipe("uniform", "float16", (3, 5), -1, 1, 1): "a7048b635346ca8b",
    Recipe("uniform", "float32", (3, 5), -1, 1, 1): "9a0da148cb04091d",
    Recipe("uniform", "float64", (7,), 0, 1e-300, 2): "f4d01a8e7f27a0bf",
    Recipe("uniform", "complex64", (2, 2), 0, 1, 3): "ddd94947087789c9",
    Recipe("uniform", "complex128", (2, 2), 0, 1, 3): "cd07f0dfcdf5bc8f",
    Recipe("normal", "float32", (100,), 0, 1, 4): "bdc4aa0f39b863ab",
    Recipe("normal", "float64", (2, 50), 5, 0.1, 2**64 - 1): "6926fd4121cda933",
    Recipe("integers", "bool", (64,), 0, 1, 5): "8d68a3ed2eb48a5d",
    Recipe("integers", "int8", (64,), -128, 127, 6): "f6d2610cf29a5a7f",
    Recipe("integers", "uint16", (64,), 0, 65535, 7): "99b2ad670c6a4b18",
    Recipe("integers", "int64", (64,), -(2**52), 2**52 - 1, 8): "32a04e749361c49b",
    Recipe("integers", "uint64", (64,), 0, 2**53 - 1, 9): "aa95005cf2448cd0",
    Recipe("integers", "float32", (64,), -3, 3, 10): "292f70a7607902d1",
    Recipe("constant", "float16", (2,), 1e6, 0, 11): "c90974d9e959aa75",
    Recipe("constant", "int32", (2, 0), -7, 0, 12): "e3b0c44298fc1c14",
}


def _digest(recipe: Recipe) -> str:
    return hashlib.sha256(recipe.draw().data).hexdigest()[:16]


@pytest.mark.parametrize(("recipe", "digest"), GOLDEN.items(), ids=lambda given: str(given)[:60])
def test_drawn_bytes_are_frozen(recipe: Recipe, digest: str) -> None:
    assert _digest(recipe) == digest


@given(recipes)
def test_recipes_survive_json(recipe: Recipe) -> None:
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


@given(recipes)
def test_a_recipe_draws_the_same_each_time(recipe: Recipe) -> None:
    tensor = recipe.draw()
    assert tensor == recipe.draw()
    assert (tensor.dtype, tensor.shape) == (recipe.dtype, recipe.shape)


@given(integer_recipes)
def test_integers_keep_their_bounds(recipe: Recipe) -> None:
    drawn = recipe.draw().array().real.astype(np.float64)
    assert ((drawn >= recipe.low) & (drawn <= recipe.high)).all()
    assert (drawn == np.floor(drawn)).all()


@given(uniform_recipes)
def test_uniform_keeps_its_bounds(recipe: Recipe) -> None:
    drawn = recipe.draw().array().real
    with np.errstate(over="ignore"):  # 65520 is infinite in float16, as is what is drawn there
        low, high = np.array([recipe.low, recipe.high]).astype(drawn.dtype)
    assert ((drawn >= low) & (drawn <= high)).all()


def test_integers_reach_both_ends() -> None:
    drawn = Recipe("integers", "int8", (1000,), -2, 2, 0).draw().array()
    assert sorted(set(drawn.tolist())) == [-2, -1, 0, 1, 2]


def test_normal_has_its_mean_and_deviation() -> None:
    drawn = Recipe("normal", "float64", (20_000,), 5, 2, 0).draw().array()
    assert abs(drawn.mean() - 5) < 0.05
    assert abs(drawn.std() - 2) < 0.05
    assert (np.abs(drawn - 5) <= 12).all()


def _recipe(**changes: object) -> dict[str, Any]:
    return {
        "recipe": "uniform", "dtype": "float32", "shape": [2], "low": 0.0, "high": 1.0, "seed": 0
    } | changes  # fmt: skip


HOSTILE = {
    "extra key": _recipe(extra=1),
    "unknown kind": _recipe(recipe="cauchy"),
    "kind of another type": _recipe(recipe=["uniform"]),
    "unknown dtype": _recipe(dtype="float31"),
    "dtype of another type": _recipe(dtype=4),
    "string": _recipe(dtype="string"),
    "raw bits": _recipe(dtype="bfloat16"),
    "bool bound": _recipe(low=True),
    "text bound": _recipe(low="0"),
    "infinite bound": _recipe(high=float("inf")),
    "NaN bound": _recipe(low=float("nan")),
    "bound beyond float": _recipe(high=10**400),
    "bounds too far apart": _recipe(low=-1e308, high=1e308),
    "bounds the wrong way": _recipe(low=1.0, high=0.0),
    "float seed": _recipe(seed=0.0),
    "negative seed": _recipe(seed=-1),
    "seed of 65 bits": _recipe(seed=2**64),
    "huge seed": _recipe(seed=10**5000),
    "negative dimension": _recipe(shape=[-2]),
    "too large": _recipe(shape=[2**40]),
    "shape of another type": _recipe(shape="2"),
    "floats for integers": _recipe(dtype="int8"),
    "integers out of range": _recipe(recipe="integers", dtype="int8", high=128.0),
    "negative for unsigned": _recipe(recipe="integers", dtype="uint8", low=-1.0),
    "fraction for integers": _recipe(recipe="integers", dtype="float32", high=1.5),
    "no integers between": _recipe(recipe="integers", dtype="int8", low=1.0, high=0.0),
    "integers too far apart": _recipe(recipe="integers", dtype="int64", low=-(2**53), high=2**53),
    "constant out of range": _recipe(recipe="constant", dtype="uint8", low=256.0),
    "fraction as constant": _recipe(recipe="constant", dtype="int8", low=0.5),
    "bool of two": _recipe(recipe="integers", dtype="bool", high=2.0),
}


@pytest.mark.parametrize("obj", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_recipes_are_refused(obj: dict[str, Any]) -> None:
    with pytest.raises(CaseFormatError) as refused:
        Recipe.from_json(obj)
    assert 0 < len(str(refused.value)) < 2000
