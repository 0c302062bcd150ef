"""Keys of live arguments: the same for what is one operator instance, and for nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases.arguments import argument_to_json
from fuzzing.migrate.recorders.torch_call_keys import CallKeys

pytestmark = pytest.mark.compiler_torch_eager

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, 2.0, math.nan, 1j])
    | st.text("ab", max_size=1)
)
VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from("kl"), inner, max_size=2)
    ),
    max_leaves=4,
)


def spelled(value: Any) -> str:
    return repr(argument_to_json(value))


@given(one=VALUES, other=VALUES)
def test_keys_are_equal_where_the_text_is(one: Any, other: Any) -> None:
    keys = CallKeys()
    assert (keys.of(one) == keys.of(other)) == (spelled(one) == spelled(other))
    assert hash(keys.of(one)) == hash(keys.of(one))


def test_a_tensor_is_its_type_its_shape_and_its_strides() -> None:
    import torch

    keys = CallKeys()
    x = torch.ones(3, 3)
    assert keys.of(x) == keys.of(torch.zeros(3, 3)) == keys.of(torch.nn.Parameter(x))
    others = [x.t()[:, :2], x[:, :2], x.double(), x[:2], x.to_sparse(), x.to_sparse().bool()]
    assert len({keys.of(tensor) for tensor in [x, *others]}) == 7


def test_types_of_torch_are_themselves() -> None:
    import torch

    keys = CallKeys()
    given = [
        torch.float32,
        torch.float64,
        torch.strided,
        torch.channels_last,
        torch.device("cpu"),
        torch.Size([2]),
    ]
    assert len({keys.of(value) for value in given}) == len(given)
    assert keys.of(torch.device("cpu")) == keys.of(torch.device("cpu"))


def test_what_is_of_no_known_type_has_a_key_too() -> None:
    keys = CallKeys()
    assert keys.of(object()) == keys.of(object())
    assert keys.of(math.sin) != keys.of(math.cos)
