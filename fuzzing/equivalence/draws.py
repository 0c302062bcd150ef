"""Helpers for rules that draw their own subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from fuzzing.cases import Init, Input, Provenance, Recipe, TensorArg, TestCase, TorchCall
from fuzzing.rng import Rng

LIBRARY = "torch"


def uniform(rng: Rng, shape: tuple[int, ...], dtype: str = "float32", bound: float = 1.0) -> Recipe:
    """Floats in [-bound, bound)."""
    return Recipe("uniform", dtype, shape, -bound, bound, rng.seed())


def integers(rng: Rng, shape: tuple[int, ...], dtype: str, low: int, high: int) -> Recipe:
    """Integers in [low, high]."""
    return Recipe("integers", dtype, shape, low, high, rng.seed())


def lengths(rng: Rng, count: int, low: int, high: int) -> tuple[int, ...]:
    """So many lengths in [low, high]."""
    return tuple(rng.between(low, high) for _ in range(count))


def call_case(
    api: str,
    inputs: Mapping[str, Input],
    kwargs: Mapping[str, Any] | None = None,
    init: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> TestCase:
    """A call of `api` with the inputs in order, then `kwargs`; a module is made with `init`."""
    program = TorchCall(
        api,
        tuple(TensorArg(name) for name in inputs),
        tuple((kwargs or {}).items()),
        None if init is None else Init((), tuple(init.items())),
        seed,
    )
    provenance = Provenance("eagle", api, api, LIBRARY, version(LIBRARY))
    return TestCase(program, tuple(inputs.items()), provenance)


def renamed(provenance: Provenance, api: str) -> Provenance:
    """The provenance of a subject that stands for another API than its call's."""
    return replace(provenance, operator=api, test=api)
