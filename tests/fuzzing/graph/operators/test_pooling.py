from __future__ import annotations

import pytest

from fuzzing.graph import Attribute
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch, single

WINDOWED = ("MaxPool", "AveragePool", "LpPool")
NAMES = (*WINDOWED, "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool", "MaxUnpool")


@pytest.mark.parametrize("name", NAMES)
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (13, 18, 21), ("float32",), 8)
    check(name, (21,), ("float16",), 5)


def test_largest_of_bytes_and_doubles() -> None:
    check("MaxPool", (21, 23), ("int8", "uint8", "float64"), 5)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check(name, (21,), ("float32", "float16"), 6)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "MaxUnpool"])
def test_torch_computes_the_same(name: str) -> None:
    assert check_torch(name, 21, seeds=20) == 20


@pytest.mark.parametrize(
    ("attributes", "length"),
    [
        ({"kernel_shape": (2,), "strides": (2,)}, 3),
        ({"kernel_shape": (2,), "strides": (2,), "ceil_mode": 1}, 4),
        ({"kernel_shape": (3,), "strides": (2,), "auto_pad": "SAME_UPPER"}, 4),
        ({"kernel_shape": (3,), "dilations": (2,)}, 3),
    ],
)
def test_lengths_of_a_pool(attributes: dict[str, Attribute], length: int) -> None:
    (type_,) = inferred("MaxPool", 21, (floats(1, 1, 7),), attributes)
    assert type_.shape == (1, 1, length)


def test_indices_are_whole_numbers_of_the_same_shape() -> None:
    found = inferred("MaxPool", 21, (floats(1, 2, 5),), {"kernel_shape": (2,)}, outputs=2)
    assert [str(type_) for type_ in found] == ["float32[1,2,4]", "int64[1,2,4]"]


def test_every_attribute_is_drawn_sometimes() -> None:
    seen = {name for seed in range(300) for name in single("AveragePool", seed, 21).graph.nodes[0].attributes}
    assert seen == {
        "auto_pad", "pads", "kernel_shape", "strides", "dilations", "ceil_mode", "count_include_pad"
    }  # fmt: skip
