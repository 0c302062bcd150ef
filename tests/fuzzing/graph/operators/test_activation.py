from __future__ import annotations

import math

import pytest

from fuzzing.graph import TensorType, operators
from fuzzing.graph.intervals import Interval
from fuzzing.graph.operator_spec import GraphLimits, NodeContext
from fuzzing.graph.types import FLOATS
from fuzzing.rng import Rng
from tests.support.operators import check, check_torch, single

_NAMES = (
    "Softsign", "Softplus", "Sigmoid", "HardSigmoid", "HardSwish", "Relu", "LeakyRelu", "ThresholdedRelu",
    "Elu", "Selu", "Celu", "Mish", "Gelu", "Swish", "Shrink", "Softmax", "LogSoftmax", "Hardmax",
    "LpNormalization",
)  # fmt: skip


@pytest.mark.parametrize("name", _NAMES)
def test_activations(name: str) -> None:
    check(name, (13, 20, 24), seeds=6)
    for dtype in operators.get_specification(name, 24).dtypes:
        if dtype in FLOATS:  # onnxruntime runs some of these alone
            check(name, (24,), (dtype,), seeds=2, runs=False)


@pytest.mark.parametrize("name", _NAMES)
def test_activations_in_torch(name: str) -> None:
    assert check_torch(name, 24, seeds=8) == 8


def test_activations_of_integers() -> None:
    check("Relu", (14,), ("int8", "int32"), seeds=4)
    check("Shrink", (13,), ("int8", "int64", "uint8", "uint32"), seeds=6)
    assert check_torch("Shrink", 18, ("int8", "int32", "uint8"), seeds=6) == 18


def _bounds(name: str, low: float, high: float, length: int = 3, **attributes: float | str) -> Interval:
    """What an operator promises of a vector whose elements lie between two numbers."""
    operator = operators.get_specification(name, 24)
    context = NodeContext(operator, 24, GraphLimits(), Rng(0), 1)
    context.types[0], context.ranges[0] = TensorType("float32", (length,)), Interval(low, high)
    context.attributes.update(attributes)
    context.unpack_primary()
    (found,) = operator.intervals(context, 1)
    return found


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("Sigmoid", (-1, 1), (0.2689, 0.7311)),
        ("HardSwish", (-10, 10), (-0.375, 10)),
        ("HardSwish", (-10, -4), (0, 0)),
        ("Gelu", (-10, 10), (-0.17, 10)),
        ("Mish", (-10, 10), (-0.3088, 10)),
        ("Swish", (-20, 20), (-0.2785, 20)),
        ("LeakyRelu", (-1, 2), (-0.01, 2)),
        ("Elu", (-100, 2), (-1, 2)),
        ("ThresholdedRelu", (-5, 0.5), (0, 0)),
        ("Shrink", (-5, 0.25), (-5, 0)),
        ("Softmax", (0, 0), (1 / 3, 1 / 3)),
        ("LogSoftmax", (-1, 1), (-math.log(1 + 2 * math.e**2), -math.log(1 + 2 * math.e**-2))),
    ],
)
def test_bounds_are_tight(name: str, given: tuple[float, float], expected: tuple[float, float]) -> None:
    assert _bounds(name, *given) == pytest.approx(expected, abs=3e-4)


def test_swish_is_lower_the_smaller_its_factor() -> None:
    assert _bounds("Swish", -50, 1, alpha=0.5).low == pytest.approx(
        2 * _bounds("Swish", -50, 1).low, abs=1e-3
    )


def test_a_positive_input_keeps_the_sigmoid_away_from_zero_for_a_logarithm() -> None:
    logarithm = operators.get_specification("Log", 24)
    assert logarithm.within(TensorType("float32", (3,))).contains(_bounds("Sigmoid", -1, 1))
    assert not logarithm.within(TensorType("float32", (3,))).contains(_bounds("Sigmoid", -100, 1))


def test_every_attribute_is_given_sometimes_and_left_out_sometimes() -> None:
    for name in ("HardSigmoid", "Selu", "Gelu", "Celu", "Softmax"):
        nodes = [single(name, seed, 20).graph.nodes[0] for seed in range(60)]
        for setting in operators.get_specification(name, 20).attribute_specs:
            given = [setting.name in node.attributes for node in nodes]
            assert any(given), (name, setting.name)
            assert not all(given), (name, setting.name)
