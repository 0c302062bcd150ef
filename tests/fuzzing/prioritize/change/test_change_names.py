"""One name for one operator: `fuzzing.prioritize.change.operator_names`."""

from __future__ import annotations

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.prioritize.change.operator_names import library, name
from fuzzing.torch_aliases import ALIASES

#: Spellings of one operator: torch's users', its dispatcher's, exported graphs', converters' and tests'.
SAME = [
    "torch.nn.functional.conv2d torch.nn.Conv2d torch.conv2d aten::conv2d aten.conv2d.default conv2d.default "
    "torch.ops.aten.conv2d.default translate_conv2d _conv2d keras.layers.Conv2D relax.nn.conv2d "
    "InferStructInfoConv2d test_conv2d",
    "torch.add torch.Tensor.add torch.Tensor.add_ aten::add_ aten.add.Tensor Add keras.ops.add relax.add",
    "torch.nn.BatchNorm2d BatchNorm2d _batch_norm_2d_module",
    "aten::batch_norm BatchNormalization aten._native_batch_norm_legit_no_training.default "
    "keras.layers.BatchNormalization translate_batch_norm",
    "torch.cat torch.concat torch.concatenate aten.cat.default Concat keras.layers.Concatenate",
    "torch.nn.functional.conv_transpose2d torch.nn.ConvTranspose2d aten::conv_transpose2d "
    "keras.layers.Conv2DTranspose",
    "torch.nn.MaxPool2d max_pool2d_with_indices aten::max_pool2d keras.layers.MaxPooling2D",
    "torch.linalg.norm aten::linalg_norm linalg_norm.default translate_linalg_norm",
    "torch.special.erf torch.erf Erf aten::erf",
    "torch.nn.CrossEntropyLoss torch.nn.functional.cross_entropy aten::cross_entropy_loss",
    "torch.Tensor.view aten.view.dtype aten::view",
    "CumSum cumsum_test torch.cumsum",
    "Div Ops.IDIV Ops.CDIV torch.true_divide",
    "Less Ops.CMPLT torch.lt",
    "Max Ops.MAX",
    "Softmax torch.nn.Softmax aten::_softmax aten._softmax.default",
]


@pytest.mark.parametrize("spellings", SAME, ids=lambda text: text.split()[0])
def test_spellings_of_one_operator_have_one_name(spellings: str) -> None:
    names = {spelling: name(spelling).exact for spelling in spellings.split()}
    assert len(set(names.values())) == 1, names


@pytest.mark.parametrize(("alias", "canonical"), ALIASES.items())
def test_an_alias_of_torch_has_the_name_of_its_function(alias: str, canonical: str) -> None:
    assert name(f"torch.{alias}").exact == name(f"torch.{canonical}").exact


def test_what_one_converter_serves_shares_the_bare_name() -> None:
    ours = ["conv1d", "torch.nn.Conv2d", "aten::conv3d", "translate_convnd", "Conv", "aten::convolution"]
    assert {name(one).bare for one in ours} == {"conv"}
    assert name("ConvTranspose").bare != "conv"
    assert name("torch.bitwise_and").bare == "bitwiseand"


def test_families_hold_what_shares_kernels() -> None:
    assert {name(one).family for one in ("Gemm", "aten::addmm", "torch.nn.Linear", "MatMul")} == {"matmul"}
    assert {name(one).family for one in ("Resize", "Upsample", "torch.nn.functional.interpolate")} == {
        "resize"
    }


def test_different_onnx_operators_have_different_names() -> None:
    operators = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    names: dict[str, list[str]] = {}
    for operator in sorted(operators):
        names.setdefault(name(operator).exact, []).append(operator)
    assert [group for group in names.values() if len(group) > 1] == []


@given(st.text(max_size=300))
def test_any_text_has_a_name(text: str) -> None:
    one = name(text)
    assert one == name(text)
    assert "_" not in one.exact
    assert "" not in one.words


def test_the_library_is_told_by_the_root() -> None:
    spelled = ["torch.nn.Conv2d", "keras.layers.Dense", "Conv", "com.microsoft.Gelu"]
    assert [library(one) for one in spelled] == ["torch", "keras", "onnx", "onnx"]
