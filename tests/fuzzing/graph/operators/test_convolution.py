from __future__ import annotations

import pytest

from fuzzing.graph import Attribute
from tests.support.boundary_values import use_boundary_values
from tests.support.nodes import floats, inferred
from tests.support.operators import check, check_torch, single

NAMES = ("Conv", "ConvTranspose")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_nodes_are_what_onnx_and_onnxruntime_say(name: str, dtype: str) -> None:
    check(name, (13, 23), (dtype,), 10)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    check(name, (21,), ("float32", "float16"), 8)


@pytest.mark.parametrize("name", NAMES)
def test_torch_computes_the_same(name: str) -> None:
    assert check_torch(name, 21, seeds=20) == 20


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ({"pads": (2, 2)}, (1, 3, 6)),  # a full convolution, longer than what goes in
        ({"auto_pad": "SAME_LOWER", "strides": (2,)}, (1, 3, 2)),
        ({"auto_pad": "VALID", "pads": (0, 0)}, (1, 3, 2)),
        ({"dilations": (3,), "pads": (3, 3), "kernel_shape": (3,)}, (1, 3, 4)),
    ],
)
def test_lengths_of_a_convolution(attributes: dict[str, Attribute], shape: tuple[int, ...]) -> None:
    (type_,) = inferred("Conv", 21, (floats(1, 2, 4), floats(3, 2, 3)), attributes)
    assert type_.shape == shape


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ({"strides": (3,), "output_padding": (1,)}, (1, 3, 13)),
        ({"strides": (3,), "output_shape": (11,)}, (1, 3, 11)),
        ({"strides": (2,), "auto_pad": "SAME_UPPER"}, (1, 3, 8)),
        ({"pads": (1, 1)}, (1, 3, 4)),
    ],
)
def test_lengths_of_a_transposed_one(attributes: dict[str, Attribute], shape: tuple[int, ...]) -> None:
    (type_,) = inferred("ConvTranspose", 21, (floats(1, 2, 4), floats(2, 3, 3)), attributes)
    assert type_.shape == shape


def test_every_attribute_is_drawn_sometimes() -> None:
    seen = {name for seed in range(200) for name in single("Conv", seed, 21).graph.nodes[0].attributes}
    assert seen == {"auto_pad", "pads", "kernel_shape", "strides", "dilations", "group"}
    also = {name for seed in range(200) for name in single("ConvTranspose", seed).graph.nodes[0].attributes}
    assert also == {*seen, "output_padding", "output_shape"}
