"""Telling what a torch call is given: large tensors, modules, options, literals."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fuzzing.cases import NewObject, Recipe, Tensor, TensorArg, TensorLiteral
from fuzzing.cases.arguments import MAX_LITERAL
from fuzzing.migrate.recorders.torch_constructors import ConstructorRecorder
from fuzzing.torch_api.serializer import (
    MAX_REDRAWN_ELEMENTS,
    SMALL_TENSOR_BYTES,
    InitSerializer,
    NotSerializableError,
    Serializer,
    serialize_literal,
    serialize_tensor,
)

pytestmark = pytest.mark.compiler_torch_eager

LARGE = SMALL_TENSOR_BYTES // 4 + 1  # elements of float32


def told(tensor: Any) -> Any:
    return serialize_tensor(tensor, "x", redraw=True)[1]


def test_a_large_tensor_becomes_a_recipe_of_its_range() -> None:
    import torch

    tensor = torch.linspace(-1, 3, LARGE)
    recipe = told(tensor)
    assert isinstance(recipe, Recipe)
    assert (recipe.kind, recipe.dtype, recipe.shape, recipe.low, recipe.high) == (
        "uniform", "float32", (LARGE,), -1.0, 3.0,
    )  # fmt: skip
    assert told(tensor) == recipe  # the same each time
    assert isinstance(told(tensor[:-1]), Tensor)  # small enough
    assert isinstance(serialize_tensor(tensor, "x")[1], Tensor)  # not asked to redraw


def test_whole_numbers_and_bools_are_redrawn_within_their_range() -> None:
    import torch

    numbers = told(torch.arange(LARGE) - 5)
    assert (numbers.kind, numbers.dtype, numbers.low, numbers.high) == (
        "integers",
        "int64",
        -5.0,
        LARGE - 6.0,
    )
    flags = told(torch.arange(4 * LARGE) % 2 == 0)
    assert (flags.kind, flags.dtype, flags.low, flags.high) == ("integers", "bool", 0.0, 1.0)
    assert flags.draw().array().any()


@pytest.mark.parametrize("kind", ["expanded", "not finite", "complex", "bfloat16", "sparse", "huge numbers"])
def test_what_a_recipe_cannot_draw_keeps_its_elements(kind: str) -> None:
    import torch

    tensor = {
        "expanded": lambda: torch.arange(3.0).expand(LARGE, 3),
        "not finite": lambda: torch.full((LARGE,), float("inf")),
        "complex": lambda: torch.ones(LARGE, dtype=torch.complex64),
        "bfloat16": lambda: torch.arange(2 * LARGE).bfloat16(),
        "sparse": lambda: torch.eye(LARGE // 50).to_sparse(),
        "huge numbers": lambda: torch.full((LARGE,), 2**60),
    }[kind]()
    value = told(tensor)
    assert not isinstance(value, Recipe) or value.kind == "constant"


def test_too_large_is_too_large() -> None:
    import torch

    with pytest.raises(NotSerializableError, match="too large to keep"):
        told(torch.empty(1).expand(MAX_REDRAWN_ELEMENTS + 1))
    with pytest.raises(NotSerializableError, match="no elements"):
        told(torch.empty(2, device="meta"))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_small_tensors_have_a_literal_form() -> None:
    import torch

    assert serialize_literal(torch.tensor([[1, 2], [3, 4]]).t()) == TensorLiteral(
        "int64", (2, 2), (1, 3, 2, 4)
    )
    assert serialize_literal(torch.tensor(0.1)).values == (torch.tensor(0.1).item(),)
    for tensor, message in (
        (torch.zeros(MAX_LITERAL + 1), "made from a large tensor"),
        (torch.eye(2).to_sparse(), "no literal form"),
        (torch.zeros(2, dtype=torch.complex32), "no literal form"),
    ):
        with pytest.raises(NotSerializableError, match=message):
            serialize_literal(tensor)


def test_modules_are_told_by_how_they_were_made() -> None:
    from torch import nn

    making = ConstructorRecorder()
    layer, distance = nn.Linear(2, 3), nn.PairwiseDistance(p=1)
    made = {id(layer): ((2, 3), {}), id(distance): ((), {"p": 1})}
    init, call = (kind(made=lambda module: made.get(id(module))) for kind in (InitSerializer, Serializer))
    assert init.argument(layer, "x") == NewObject("torch.nn.Linear", (2, 3))
    assert call.argument(distance, "x") == NewObject("torch.nn.PairwiseDistance", (), (("p", 1),))
    with pytest.raises(NotSerializableError, match="a module with parameters"):
        call.argument(layer, "x")
    with pytest.raises(NotSerializableError, match="made elsewhere"):
        init.argument(nn.ReLU(), "x")
    assert making.given(layer) is None  # nobody was watching


def test_options_are_told_by_their_fields() -> None:
    from torch import nn

    options = nn.LinearCrossEntropyOptions()
    argument = Serializer().argument(options, "x")
    assert isinstance(argument, NewObject)
    assert argument.api == "torch.nn.LinearCrossEntropyOptions"
    fields = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    assert dict(argument.kwargs) == fields


def test_one_tensor_is_one_input_and_one_literal_each_time() -> None:
    import torch

    tensor = torch.ones(2)
    teller = Serializer()
    assert teller.args([tensor, [tensor]]) == (TensorArg("x"), [TensorArg("x")])
    literal = serialize_literal(tensor)
    assert InitSerializer().args([tensor, [tensor]]) == (literal, [literal])
