"""Pairs of equal graphs find wrong passes of an optimizer, without any reference."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from onnx import ModelProto, load_model_from_string

from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.cases import EquivalentModels, OnnxModel, TestCase
from fuzzing.equivalence.graphs.models import make_pair
from fuzzing.oracles import compare
from tests.fuzzing.equivalence.toy_optimizer import PASSES, WrongPass

#: Pairs of the seed 0 that find all wrong passes; a campaign has a thousand.
PAIRS = 180


@cache
def pairs() -> tuple[TestCase, ...]:
    return tuple(filter(None, (make_pair(number, 0) for number in range(PAIRS))))


def outputs(backend: OnnxReference, model: ModelProto, case: TestCase) -> Any:
    """The reference's outputs of a model, or the class of its exception."""
    values = list(case.values())
    try:
        program = OnnxModel(model.SerializeToString())
        return tuple(backend.run(backend.compile(backend.convert(program, values)), values))
    except Exception as error:  # noqa: BLE001 - of a model that a wrong pass broke
        return type(error)


def differ(one: Any, other: Any) -> bool:
    if isinstance(one, type) or isinstance(other, type):
        return one is not other
    return bool(compare(one, other, profile="eagle"))


def shows(wrong: WrongPass, backend: OnnxReference, case: TestCase) -> bool:
    program = case.program
    assert isinstance(program, EquivalentModels)
    plain = [load_model_from_string(side.model) for side in program.sides]
    optimized = [wrong(model) for model in plain]
    if plain == optimized:
        return False
    return differ(*(outputs(backend, model, case) for model in optimized))


@pytest.mark.filterwarnings("ignore")  # numpy's, of overflows
def test_all_wrong_passes_are_found() -> None:
    backend = OnnxReference()
    backend.load("CPU", {})
    missed = [wrong.name for wrong in PASSES if not any(shows(wrong, backend, case) for case in pairs())]
    assert len(PASSES) == 20
    assert not missed


@pytest.mark.filterwarnings("ignore")
def test_the_right_optimizer_is_not_accused() -> None:
    backend = OnnxReference()
    backend.load("CPU", {})
    right = WrongPass("none", lambda node, find: False)
    for case in pairs():
        program = case.program
        assert isinstance(program, EquivalentModels)
        sides = [outputs(backend, right(load_model_from_string(side.model)), case) for side in program.sides]
        assert not differ(*sides), case.provenance
