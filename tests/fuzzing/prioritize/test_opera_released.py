from __future__ import annotations

from typing import Any

import pytest

from fuzzing.prioritize.strategies import Context, get
from tests.fuzzing.prioritize.prioritize_kit import (
    CountedSuite,
    instance,
    order,
)


@pytest.mark.parametrize(
    ("frontend", "released"),
    [
        # Values as (a, m); m's default None is -100, twice abstracted -2. Seen at the start: a {no_default},
        # m {-100}, pair {(1, -100)}: the first instance's a, m's default.
        # Instance 0 is the first test, hence (1, -100): a is new, the pair is not: 1/2.
        # Instance 1 is (1, -2): both are new, each of one seen, and so is the pair: 1. Instance 2, (0, 2): 1.
        # The first in the file of the two is 1. Seen then: a {no_default, 1}, m {-100, -2}, two pairs.
        # Instance 2 has (1/2 + 1/2) / 2, instance 0 nothing new.
        ("onnx", [1, 2, 0]),
        # For torch instance 0 is (1, -2) as well, and instance 1 repeats it.
        ("torch", [0, 2, 1]),
    ],
)
def test_defaults_are_abstracted_twice(frontend: str, released: list[int]) -> None:
    instances = [
        instance(0, "Pad", frontend, ["a"], a=1, m=None),
        instance(1, "Pad", frontend, ["a"], a=1, m=None),
        instance(2, "Pad", frontend, ["a", "m"], a=0, m=5),
    ]
    assert order("opera-released", instances) == released
    assert order("opera", instances) == [0, 2, 1]


def test_pairs_start_from_the_first_test_and_no_default_is_seen() -> None:
    instances = [
        instance(0, "Relu", given=["a"], a=1, k=7),
        instance(1, "Sum", a=1, b="x"),
        instance(2, "Sum", a=0, b="x"),
    ]
    # Relu: a {no_default}, k {2}, pair {(1, 2)}: the first test's own. Instance 0: a is new, 1/2.
    # Sum: a and b {no_default}, pair {(1, no_default)}. Instances 1 and 2: all is new, 1. After 1: a
    # {no_default, 1}, b {no_default, x}, two pairs. Instance 2: a is new, (1/2)/2, and the pair: 1/2.
    # Relu and Sum tie; Relu's name is first.
    ranked = list(get("opera-released")(instances, Context()))
    assert [(one.instance_index, one.why["diversity"]) for one in ranked] == [(1, 1.0), (0, 0.5), (2, 0.5)]
    # Without the mistakes every one has a pair that nothing preceded.
    assert order("opera", instances) == [0, 1, 2]


def test_the_weight_starts_from_the_suites_first_test() -> None:
    suite = CountedSuite({}, [instance(9, "Pad", "onnx", ["a"], a=0, m=None)])
    instances = [instance(n, "Pad", "onnx", ["a"], a=1, m=None) for n in range(2)]
    # The suite: a {no_default, 0}, m {-100, -2}, pair {(0, -100), (0, -2)}. With the instances (1, -100) and
    # (1, -2): three values of a, two of m, four pairs. 1 - 2/3 · 2/2 · 2/4
    first = next(get("opera-released")(instances, Context({"onnx": suite})))
    assert first.why["operator"] == pytest.approx(2 / 3)


def test_inputs_of_an_onnx_node_are_one_parameter_and_so_are_outputs() -> None:
    def tensor(*shape: int) -> Any:
        return {"tensor": ["float32", list(shape)]}

    instances = [
        instance(0, "Add", "onnx", A=tensor(2), B=tensor(3), m=1, **{"output.C": tensor(2)}),
        instance(1, "Add", "onnx", A=tensor(1), B=tensor(3), m=1, **{"output.C": tensor(2)}),
    ]
    ranked = list(get("opera-released")(instances, Context(explain=True)))
    assert [one.instance_index for one in ranked] == [0, 1]
    names = ["m", "input_shape", "input_dtype", "output_dtype", "output_shape"]
    assert ranked[0].why["new"] == names
    assert ranked[1].why["new"] == ["input_shape"]


def test_the_rest_is_shuffled_as_by_the_released_code() -> None:
    instances = [instance(n, a=1, b=1) for n in range(7)]
    # 0 has all new values, 1 is the one more of the operator; the rest is shuffled by random.seed(1)
    assert order("opera-released", instances, Context(seed=1)) == [0, 1, 4, 5, 6, 2, 3]


def test_what_the_compilers_of_2023_refuse_is_last_without_an_option() -> None:
    instances = [
        instance(n, "torch.abs", input={"tensor": [dtype, [2]]})
        for n, dtype in enumerate(["complex128", "float32"])
    ]
    assert order("opera-released", instances, Context(backend="openvino")) == [1, 0]
    assert order("opera-released", instances, Context(backend="inductor")) == [0, 1]
