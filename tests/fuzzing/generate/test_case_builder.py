"""A generated graph as a case: what its inputs are drawn from, and that the library runs it."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.cases import OnnxModel, Recipe, Tensor, TestCase, case
from fuzzing.errors import InternalError
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.generate import case_builder
from fuzzing.generate.isra import GeneratedGraph, GeneratorSettings, Solver
from fuzzing.graph.intervals import FULL_RANGES, Interval
from fuzzing.graph.types import ANY, TensorType
from fuzzing.rng import derive_seed

ORIGIN = case_builder.CaseOrigin("isra", "1.23")
MIXED = GeneratorSettings(nodes=(1, 8), dtypes=("float32", "int64", "bfloat16", "bool", "float16"))


def made(
    number: int, requested: GeneratorSettings = MIXED, *, initializers: bool = False
) -> tuple[GeneratedGraph, TestCase]:
    seed = derive_seed(1, number)
    generated = Solver(requested).generate(seed)
    return generated, case_builder.build_case(
        generated, seed, ORIGIN, f"1/{number}", initializers=initializers
    )


@given(number=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_a_case_survives_its_files(number: int) -> None:
    _, one = made(number)
    files = one.files()
    again = case.case_from_manifest(case.parse_manifest(files["case.json"]), files["model.onnx"])
    assert again == one
    assert again.id == one.id
    assert made(number)[1].files() == files


def test_inputs_are_those_of_the_model_with_values_in_their_ranges() -> None:
    for number in range(60):
        generated, one = made(number)
        assert isinstance(one.program, OnnxModel)
        model = onnx.load_from_string(one.program.model)
        assert [name for name, _ in one.inputs] == [item.name for item in model.graph.input]
        for edge, (_, value) in zip(generated.graph.inputs, one.values(), strict=True):
            assert isinstance(value, Tensor)
            type_, range_ = generated.graph.types[edge], generated.ranges[edge]
            assert (value.dtype, value.shape) == type_
            numbers = value.array().astype(np.float64)
            if value.dtype == "bfloat16":
                numbers = (value.array().astype(np.uint32) << 16).view(np.float32).astype(np.float64)
            slack = 1e-2 * max(1.0, range_.largest) if value.dtype in ("float16", "bfloat16") else 1e-6
            assert (numbers >= range_.low - slack).all()
            assert (numbers <= range_.high + slack).all()


def test_nothing_is_expected_and_the_origin_is_kept() -> None:
    generated, one = made(3)
    assert one.expected is None
    prov = one.provenance
    assert (prov.source, prov.test, prov.library, prov.version) == ("isra", "1/3", "onnx", "1.23")
    assert prov.seed == derive_seed(1, 3)
    assert prov.operator == case_builder.single_operator(generated.graph)
    _, single = made(0, GeneratorSettings(nodes=(1, 1), operators=("Softmax",)))
    assert single.provenance.operator == "Softmax"


@pytest.mark.parametrize("dtype", ANY)
def test_every_element_type_can_be_an_input(dtype: str) -> None:
    value = case_builder.make_recipe(TensorType(dtype, (2, 3)), Interval(0, 1), 7)
    assert isinstance(value, Tensor if dtype == "bfloat16" else Recipe)
    drawn = value.draw() if isinstance(value, Recipe) else value
    assert (drawn.dtype, drawn.shape) == (dtype, (2, 3))


@given(low=st.floats(-100, 100), width=st.floats(0, 100), seed=st.integers(0, 2**53 - 1))
def test_whole_numbers_lie_within_fractional_bounds(low: float, width: float, seed: int) -> None:
    bounds = Interval(low, low + width)
    if np.ceil(bounds.low) > np.floor(bounds.high):
        with pytest.raises(InternalError, match="no whole number lies in"):
            case_builder.make_recipe(TensorType("int32", (5,)), bounds, seed)
        return
    value = case_builder.make_recipe(TensorType("int32", (5,)), bounds, seed)
    assert isinstance(value, Recipe)
    assert bounds.contains(Interval(value.low, value.high))


def test_bfloat16_keeps_the_whole_of_its_range_finite() -> None:
    value = case_builder.make_recipe(TensorType("bfloat16", (50,)), FULL_RANGES["bfloat16"], 3)
    assert isinstance(value, Tensor)
    assert np.isfinite((value.array().astype(np.uint32) << 16).view(np.float32)).all()


def test_initializers_give_the_same_results_as_inputs() -> None:
    requested = GeneratorSettings(
        nodes=(1, 6), operators=("Add", "Relu", "MatMul", "Conv", "Softmax", "Transpose")
    )
    pairs = [
        (made(number, requested)[1], made(number, requested, initializers=True)[1]) for number in range(12)
    ]
    assert all(held.inputs == () and fed.inputs for fed, held in pairs)
    supervisor: Supervisor[int] = Supervisor(WorkerCommand(sys.executable, "onnxruntime"))
    runs = dict(supervisor.run(enumerate([one for pair in pairs for one in pair])))
    for place in range(0, len(runs), 2):
        fed, held = runs[place], runs[place + 1]
        assert fed.ending == held.ending == "returned"
        assert [name for name, _ in fed.outputs] == [name for name, _ in held.outputs]
        for (_, mine), (_, theirs) in zip(fed.outputs, held.outputs, strict=True):
            assert isinstance(mine, Tensor)
            assert isinstance(theirs, Tensor)
            np.testing.assert_allclose(mine.array(), theirs.array(), rtol=1e-5, atol=1e-5)
