"""Runs sides of pairs in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fuzzing.backends.shared import torch_programs
from fuzzing.cases import EquivalentPair, Recipe, Tensor, TestCase
from fuzzing.equivalence import pairs, rule
from fuzzing.rng import Rng, derive_seed

Array = np.ndarray[Any, Any]


def subject_of(name: str, api: str, seed: int = 0) -> TestCase:
    """A subject that a rule draws itself."""
    draw = rule.get(name).draw
    assert draw is not None
    return draw(api, Rng(derive_seed(seed, name, api)))


def in_float64(case: TestCase) -> TestCase:
    """The case with its float32 inputs drawn in float64."""
    inputs = tuple(
        (name, replace(given, dtype="float64") if isinstance(given, Recipe) else given)
        for name, given in case.inputs
    )
    return replace(case, inputs=inputs)


def pair_for(name: str, api: str, seed: int = 0) -> TestCase | None:
    """The pair of a rule and an API in float64; None if the rule does not apply to this draw."""
    return pairs.make_pair(rule.get(name), in_float64(subject_of(name, api, seed)))


def run_side(side: Any, case: TestCase) -> list[Array]:
    """The outputs of one program, its parameters widened to float64."""
    built = torch_programs.build(side)
    built.module = built.module.double()
    outputs = built.run(list(case.values()))
    return [value.array() for _, value in outputs if isinstance(value, Tensor)]


def arrays(case: TestCase) -> dict[str, Array]:
    """The inputs."""
    return {name: value.array() for name, value in case.values() if isinstance(value, Tensor)}


def sides_of(pair: TestCase) -> tuple[Any, Any]:
    """The left and the right program."""
    assert isinstance(pair.program, EquivalentPair)
    return pair.program.sides
