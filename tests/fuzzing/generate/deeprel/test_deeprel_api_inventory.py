"""The inventory of torch: what is in it, and what is known of each API."""

from __future__ import annotations

import pytest

from fuzzing.generate.deeprel.api_inventory import canonical_name, list_apis, parse_types
from fuzzing.generate.deeprel.signatures import ANY

pytestmark = pytest.mark.compiler_torch_eager


def shown(name: str) -> list[str]:
    """The signatures of an API as text: optional parameters in brackets, keywords behind a star."""
    lines = []
    for signature in list_apis()[name].signatures:
        parts = []
        for p in signature.parameters:
            text = f"{'*' if p.variadic else ''}{p.name}:{'|'.join(sorted(p.types))}"
            parts.append(("* " if p.keyword else "") + (f"[{text}]" if p.optional else text))
        lines.append(", ".join(parts))
    return lines


@pytest.mark.parametrize(
    ("name", "signatures"),
    [
        ("torch.nn.functional.relu", ["input:tensor, [inplace:bool]"]),  # Python
        ("torch.amax", ["input:tensor, [dim:int|ints], [keepdim:bool]"]),  # native
        ("torch.Tensor.amax", ["self:tensor, [dim:int|ints], [keepdim:bool]"]),
        ("torch.nn.ReLU6", ["[inplace:bool]"]),
        ("torch.Tensor.T", ["self:tensor"]),
        ("torch.meshgrid", ["*tensors:any, * [indexing:none|str]"]),
        (  # two functions behind one
            "torch.nn.functional.max_pool2d",
            [
                "input:tensor, kernel_size:int|ints, [stride:int|ints|none], [padding:int|ints], "
                "[dilation:int|ints], [ceil_mode:bool], [return_indices:bool]"
            ],
        ),
    ],
)
def test_signatures_come_from_python_and_from_native_schemas(name: str, signatures: list[str]) -> None:
    assert shown(name) == signatures


def test_overloads_are_signatures_of_their_own() -> None:
    assert set(shown("torch.max")) == {
        "input:tensor",
        "input:tensor, other:tensor",
        "input:tensor, dim:int, [keepdim:bool]",
    }


def test_torch_offers_more_than_a_thousand_apis_and_none_of_its_tools() -> None:
    kinds = {api.kind for api in list_apis().values()}
    assert kinds == {"function", "method", "class"}
    assert len(list_apis()) > 1_400
    tools = {
        "torch.set_default_dtype",
        "torch.save",
        "torch.manual_seed",
        "torch.Tensor.data_ptr",
        "torch.compile",
    }
    assert not tools & set(list_apis())


def test_of_two_names_of_one_object_one_counts() -> None:
    assert canonical_name("torch.conv2d") == "torch.nn.functional.conv2d"
    assert "torch.conv2d" not in list_apis()
    assert canonical_name("torch.relu") == "torch.relu"  # another object than nn.functional.relu
    assert canonical_name("torch.nothing") == ""


def test_a_text_that_refers_to_another_has_that_ones_words() -> None:
    assert "Returns the maximum value of each slice" in list_apis()["torch.Tensor.amax"].text


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("Optional[Tensor]", {"tensor", "none"}),
        ("torch.Tensor | None", {"tensor", "none"}),
        ("typing.Union[int, tuple[int, int], NoneType]", {"int", "ints", "none"}),
        ("List[Tensor]", {"tensors"}),
        ("collections.abc.Sequence[int]", {"ints"}),
        ("number", {"int", "float", "complex"}),
        ("typing.Literal['zeros', 'reflect']", {"str"}),
        ("collections.abc.Callable[[torch.Tensor], torch.Tensor]", {"function"}),
        ("LinearCrossEntropyOptions", {ANY}),
    ],
)
def test_types_are_read_from_annotations_and_schemas(text: str, types: set[str]) -> None:
    assert parse_types(text) == types
