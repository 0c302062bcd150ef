from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fuzzing.prioritize.api_signatures import ApiSignatures

X = {"tensor": ["float32", [2, 3]]}
SIGNATURES = ApiSignatures()


def _bound(
    api: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, method: str = ""
) -> Any:
    bound = SIGNATURES.call(api, args, kwargs or {}, method)
    return dict(bound.parameters), bound.explicit


def test_a_built_in_of_torch_is_told_by_the_schema_that_fits() -> None:
    assert _bound("torch.add", [X, 2], {"alpha": 3}) == (
        {"input": X, "other": 2, "alpha": 3}, ("input", "other", "alpha")
    )  # fmt: skip
    assert _bound("torch.nn.functional.conv2d", [X, X]) == (
        {
            "input": X,
            "weight": X,
            "bias": None,
            "stride": [1, 1],
            "padding": [0, 0],
            "dilation": [1, 1],
            "groups": 1,
        },
        ("input", "weight"),
    )
    same, _ = _bound("torch.nn.functional.conv2d", [X, X], {"padding": "same"})
    assert same["padding"] == "same"
    assert _bound("torch.ops.aten.sum.dim_IntList", [X, [1]])[0]["keepdim"] is False


@pytest.mark.parametrize("sizes", [[3, 2], [[3, 2]], [{"tuple": [3, 2]}]])
def test_numbers_may_stand_for_a_list_of_them(sizes: list[Any]) -> None:
    parameters, _ = _bound("torch.Tensor.view", [X, *sizes])
    assert parameters in ({"self": X, "size": [3, 2]}, {"self": X, "size": {"tuple": [3, 2]}})


def test_a_function_of_torch_written_in_python() -> None:
    parameters, explicit = _bound("torch.nn.functional.max_pool2d", [X, 2], {"ceil_mode": True})
    assert parameters == {
        "input": X, "kernel_size": 2, "stride": None, "padding": 0, "dilation": 1, "ceil_mode": True,
        "return_indices": False,
    }  # fmt: skip
    assert explicit == ("input", "kernel_size", "ceil_mode")
    assert _bound("torch.einsum", ["ij,jk", X, X])[0] == {"args": ["ij,jk", X, X]}


def test_a_module_that_takes_anything_is_told_by_its_overloads() -> None:
    parameters, explicit = _bound("torch.nn.LSTM", [10, 20], {"batch_first": True}, "__init__")
    assert (parameters["input_size"], parameters["hidden_size"], parameters["num_layers"]) == (10, 20, 1)
    assert explicit == ("input_size", "hidden_size", "batch_first")


def test_a_layer_of_keras() -> None:
    parameters, explicit = _bound("keras.layers.Dense", [], {"units": 3}, "__init__")
    assert (parameters["units"], parameters["use_bias"], explicit) == (3, True, ("units",))
    assert list(_bound("keras.layers.Dense", [X], {}, "call")[0]) == ["inputs", "training"]


def test_a_default_that_has_no_form_goes_by_its_name() -> None:
    parameters, _ = _bound("torch.nn.TransformerEncoderLayer", [8, 2], {}, "__init__")
    assert parameters["activation"] == {"name": "torch.nn.functional.relu"}
    assert _bound("torch.nn.Embedding", [3, 2], {}, "__init__")[0]["sparse"] is False


@pytest.mark.parametrize("api", ["torch.no_such_thing", "nolibrary.add", "torch.Tensor.T"])
def test_what_nobody_knows_goes_by_place(api: str) -> None:
    assert _bound(api, [X, 1], {"axis": 2}) == ({"0": X, "1": 1, "axis": 2}, ("0", "1", "axis"))


def test_a_call_that_fits_no_overload_goes_by_place() -> None:
    assert _bound("torch.add", [X, X, X, X, X])[1] == ("0", "1", "2", "3", "4")
