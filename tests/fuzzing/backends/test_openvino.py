"""What is particular to OpenVINO."""

from __future__ import annotations

import re
from importlib import metadata

import numpy as np
import pytest

from fuzzing import backends
from fuzzing.backends.openvino import takes_exported
from fuzzing.cases import Sequence, Tensor, TensorArg, TorchCall
from tests.fuzzing.backends.backend_kit import arrays, floats, onnx_case, program_case, run_all


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("2023.3.0", ["openvino==2023.3.0", "numpy<2"]),
        ("2024.0.0", ["openvino==2024.0.0", "numpy<2"]),
        ("2024.1.0", ["openvino==2024.1.0"]),
    ],
)
def test_old_openvino_asks_for_old_numpy(version: str, wanted: list[str]) -> None:
    assert backends.get("openvino").requirements(version) == wanted


@pytest.mark.compiler_openvino
def test_openvino_takes_no_sequences_and_finds_renamed_inputs_whatever_the_shapes() -> None:
    items = Sequence((Tensor.of(np.zeros(2, np.float32)),))
    cases = {
        "sequence": onnx_case("(seq(float[2]) s) => (int64 n)", "n = SequenceLength(s)", s=items),
        # An identity leaves its input with the name of the output.
        "renamed": onnx_case("(float[3] x) => (float[3] y)", "y = Dropout(x)", x=floats(3)),
        "dynamic": onnx_case("(float[N] x) => (float[N] y)", "y = Add(x, x)", x=floats(3)),
    }
    for shapes in ("dynamic", "static"):
        found = run_all("openvino", cases, shapes=shapes)
        assert found["sequence"].ending == "raised"
        assert arrays(found["renamed"])[0].tolist() == [0, 1, 2]
        assert arrays(found["dynamic"])[0].tolist() == [0, 2, 4]


@pytest.mark.compiler_openvino
@pytest.mark.parametrize("body", ["r = Constant<value_float = 0.5>() y = Dropout(x, r)", "y = Identity(x)"])
def test_equal_outputs_keep_their_names(body: str) -> None:
    """The compiled ones have both names, or their input's."""
    text = f'z = Einsum<equation = "ab->ab">(x) {body}'
    case = onnx_case("(float[2,2] x) => (float[2,2] y, float[2,2] z)", text, 18, x=floats(2, 2))
    outputs = run_all("openvino", {"": case})[""].outputs
    assert [name for name, _ in outputs] == ["y", "z"]


@pytest.mark.compiler_openvino
def test_no_strings_are_strings() -> None:
    nothing = Tensor.of(np.zeros(0, np.str_))
    case = onnx_case("(string[0] x) => (string[0] y)", "y = Identity(x)", x=nothing)
    assert run_all("openvino", {"": case})[""].outputs == (("y", nothing),)


@pytest.mark.compiler_openvino
def test_single_precision_is_computed_in_single_precision_unless_asked_otherwise() -> None:
    """1 + 2**-10 squared needs more bits than bfloat16 or float16 have."""
    x = Tensor.of(np.full((1, 1, 8, 8), 1 + 2.0**-10, np.float32))
    conv = "y = Conv <kernel_shape = [3, 3]> (x, w)"
    weights = Tensor.of(np.full((1, 1, 3, 3), 1 + 2.0**-10, np.float32))
    case = onnx_case("(float[1,1,8,8] x, float[1,1,3,3] w) => (float[1,1,6,6] y)", conv, x=x, w=weights)
    want = 9 * (1 + 2.0**-10) ** 2
    [got] = arrays(run_all("openvino", {"conv": case})["conv"])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_the_newest_opset_of_a_release_is_found_by_year_and_number() -> None:
    openvino = backends.get("openvino")
    assert openvino.package in openvino.packages, "or workers do not tell its release"
    assert [openvino.newest_opset(version) for version in ("2023.1.0", "2026.4.1", "1.0", "")] == [
        18, 27, None, None,
    ]  # fmt: skip


@pytest.mark.compiler_openvino
def test_the_installed_release_is_built_with_the_opset_that_is_recorded() -> None:
    files = metadata.files("openvino") or []
    [library] = [file for file in files if "libopenvino_onnx_frontend" in file.name]
    found = re.findall(rb"OpSet_Onnx_ver(\d+)E", library.read_binary())
    assert max(map(int, found)) == backends.get("openvino").newest_opset(metadata.version("openvino"))


@pytest.mark.parametrize(
    ("version", "takes"),
    [
        ("2023.1.0-12185-9e6b00e51cd-releases/2023/1", False),
        ("2024.0.0", False),
        ("2024.1.0", True),
        ("2026.4.1", True),
    ],
)
def test_programs_are_exported_for_releases_that_take_exports_and_traced_for_others(
    version: str, takes: bool
) -> None:
    assert takes_exported(version) == takes


@pytest.mark.compiler_openvino
def test_a_traced_program_may_have_empty_lists() -> None:
    """A bare trace loses the types of empty lists: OpenVINO 2023.1 converts none of them."""
    program = program_case(TorchCall("torch.permute", (TensorArg("x"), ())), x=floats())
    assert [one.tolist() for one in arrays(run_all("openvino", {"": program}, capture="traced")[""])] == [0.0]
