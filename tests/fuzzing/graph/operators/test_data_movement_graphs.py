"""Graphs of nothing but operators that move elements: each takes what the others give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import operators
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.graph.torch_writer import to_torch
from fuzzing.graph.types import TensorType
from fuzzing.rng import derive_seed
from tests.support.bounds import check_bounds
from tests.support.nodes import floats, placed, shapes
from tests.support.operators import run

_NAMES = (
    "CenterCropPad", "Compress", "Concat", "Constant", "ConstantOfShape", "Expand", "EyeLike", "Flatten",
    "Gather", "GatherElements", "GatherND", "NonZero", "Pad", "Range", "Reshape", "ReverseSequence",
    "ScatterElements", "ScatterND", "Shape", "Size", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Trilu", "Unsqueeze",
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_bounds_hold_for_every_edge(dtype: str) -> None:
    assert check_bounds(_NAMES, dtype, models=6, nodes=25, opset=18, label="moving") > 25


@pytest.mark.parametrize("empty", [False, True])
def test_torch_gives_the_same(empty: bool) -> None:
    limits = GraphLimits(min_rank=0, min_dim=0) if empty else GraphLimits()
    solver = Solver(GeneratorSettings(nodes=(10, 20), opset=18, operators=_NAMES, limits=limits))
    agreed = 0
    for number in range(12):
        generated = solver.generate(derive_seed(number, "moving"))
        ran = run(generated, number)
        if ran.outputs is None:
            continue
        scope: dict[str, Any] = {}
        exec(to_torch(generated.graph), scope)
        given = [torch.tensor(ran.inputs[edge]) for edge in generated.graph.inputs]
        found = scope["forward"](*given)
        for mine, theirs in zip(found if isinstance(found, tuple) else (found,), ran.outputs, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-4, atol=1e-4)
        agreed += 1
    assert agreed > 8


def test_the_same_seed_gives_the_same_graph() -> None:
    solver = Solver(
        GeneratorSettings(nodes=(40, 40), opset=24, operators=(*_NAMES, "Resize", "RoiAlign", "Col2Im"))
    )
    assert solver.generate(5).graph == solver.generate(5).graph
    assert solver.generate(5).graph != solver.generate(6).graph


@pytest.mark.parametrize("name", ["Slice", "Gather", "ScatterND", "Pad", "Tile", "Compress", "Trilu"])
def test_torch_has_no_form_for_inputs_that_nobody_knows(name: str) -> None:
    unknown = TensorType("int64", (2,))
    data = floats(2) if name == "ScatterND" else unknown
    context = placed(name, [floats(3, 4), unknown, data])
    form = context.operator.torch
    assert form is not None
    assert not isinstance(form, str)
    assert form(context, ["v0", "v1", "v2"]) is None


@pytest.mark.parametrize("name", ["Transpose", "Reshape", "Flatten", "Unsqueeze", "Shape", "Size", "NonZero"])
def test_lengths_that_only_the_data_tell_are_taken(name: str) -> None:
    operator = operators.get_specification(name, 21)
    assert operator.dynamic
    constants = {"Reshape": [np.array([0, -1])], "Unsqueeze": [np.array([1])]}
    attributes = {"axis": 1} if name == "Flatten" else {}
    found = shapes(name, [floats(2, None, 3), *constants.get(name, [])], attributes)
    expected = {
        "Transpose": (3, None, 2), "Reshape": (2, None), "Flatten": (2, None), "Unsqueeze": (2, 1, None, 3),
        "Shape": (3,), "Size": (), "NonZero": (3, None),
    }  # fmt: skip
    assert found == [expected[name]]
