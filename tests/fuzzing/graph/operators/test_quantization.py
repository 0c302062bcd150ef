from __future__ import annotations

import numpy as np
import pytest

from fuzzing.graph import Attribute, Constant, TensorType, operators
from fuzzing.graph.constants import make_constant, make_scalar
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch, single

STEP = make_scalar("float32", 0.1)


def test_to_quantized() -> None:
    check("QuantizeLinear", (13, 19, 21, 23), ("float32",), 10)
    check("QuantizeLinear", (21,), ("float16",), 10)


def test_from_quantized() -> None:
    check("DequantizeLinear", (13, 21), ("int8", "uint8", "int32"), 8)
    check("DequantizeLinear", (21,), ("int16", "uint16"), 8)


def test_by_what_comes_in() -> None:
    check("DynamicQuantizeLinear", (13, 21), seeds=10)


@pytest.mark.parametrize("name", ["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"])
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    dtypes = [x for x in ("float32", "int8", "uint8") if x in operators.get_specification(name, 21).dtypes]
    check(name, (21,), dtypes, 8)


def test_torch_computes_the_same() -> None:
    assert check_torch("QuantizeLinear", 21, seeds=30) == 30
    assert check_torch("DequantizeLinear", 21, ("int8", "uint8", "int32"), seeds=10) == 30


@pytest.mark.parametrize(
    ("zero", "attributes", "dtype"),
    [
        (None, {}, "uint8"),
        (make_constant("int8", [0], ()), {}, "int8"),
        (None, {"output_dtype": 5}, "int16"),
    ],
)
def test_what_comes_out(zero: Constant | None, attributes: dict[str, Attribute], dtype: str) -> None:
    given = (floats(2, 3), STEP) if zero is None else (floats(2, 3), STEP, zero)
    assert inferred("QuantizeLinear", 21, given, attributes) == (TensorType(dtype, (2, 3)),)


def test_scales_go_by_tensor_axis_and_block() -> None:
    shapes = set()
    for seed in range(100):
        graph = single("QuantizeLinear", seed, 21).graph
        node = graph.nodes[0]
        primary, scale = (graph.types[edge or 0] for edge in node.inputs[:2])
        blocked = "block_size" in node.attributes
        assert scale.rank == (primary.rank if blocked else min(scale.rank, 1))
        shapes.add("block" if blocked else "axis" if scale.rank else "tensor")
    assert shapes == {"tensor", "axis", "block"}


def test_scales_are_positive() -> None:
    for seed in range(30):
        graph = single("DequantizeLinear", seed, 21, ("int8",)).graph
        scale = graph.constants[graph.nodes[0].inputs[1] or 0]
        assert (np.asarray(scale.array) > 0).all()
