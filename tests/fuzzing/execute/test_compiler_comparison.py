"""Comparisons through their own command line, on real compilers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase, TorchProgram
from tests.fuzzing.oracles.miscompiling_backend import plant

MISCOMPILING = str(Path(__file__).parents[1] / "oracles" / "miscompiling_backend.py")
WRONG_GRADIENT = str(Path(__file__).with_name("wrong_gradient.py"))
GRAPH = "(float[2] x) => (float[2] y) { y = Exp(x) }"


def compared(folder: Path, case: TestCase, *given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    corpus = Corpus(folder / "corpus")
    corpus.add(case)
    path = folder / "spec.json"
    path.write_text(json.dumps({"corpus": str(corpus.root), "case": case.id, "backends": given}))
    return run(str(path))


def run(*arguments: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "fuzzing.execute.compiler_comparison", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    [line] = done.stdout.splitlines()
    table: dict[str, Any] = json.loads(line)
    return done.returncode, table


def case(graph: str = GRAPH, fault: str = "none") -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}')
    program = plant(OnnxModel(model.SerializeToString()), fault)
    inputs = (("x", Tensor.of(np.array([1, 2], np.float32))),)
    return TestCase(program, inputs, Provenance("tests", graph, "", "", ""))


@pytest.mark.compiler_onnxruntime
@pytest.mark.compiler_openvino
def test_the_lonely_deviator_is_marked(tmp_path: Path) -> None:
    code, table = compared(
        tmp_path,
        case(fault="sign"),
        {"backend": "onnxruntime"},
        {"backend": MISCOMPILING},
        {"backend": "openvino", "device": "CPU"},
        {"backend": "onnxruntime", "python": "/nowhere/python", "options": {"optimization": "disabled"}},
    )
    assert (code, table["invalid"]) == (0, "")
    rows = {row["label"]: row for row in table["rows"]}
    assert list(rows) == ["onnxruntime", "miscompiling", "openvino", "onnxruntime optimization=disabled"]
    seen = {label: (row["verdict"], row["group"], row["outlier"]) for label, row in rows.items()}
    assert seen == {
        "onnxruntime": ("pass", 0, False),
        "miscompiling": ("wrong_result", 1, True),
        "openvino": ("pass", 0, False),
        "onnxruntime optimization=disabled": ("", None, False),
    }
    assert "/nowhere/python" in rows["onnxruntime optimization=disabled"]["summary"]
    assert rows["miscompiling"]["to_float64"] == pytest.approx(2 * np.exp(2))
    assert rows["openvino"]["to_float64"] < 1e-5
    assert rows["openvino"]["seconds"] > 0


def test_a_case_that_fails_in_its_own_library_has_no_table(tmp_path: Path) -> None:
    wrong = case("(float[2] x) => (float[3] y) { s = Constant<value_ints = [3]>() y = Reshape(x, s) }")
    code, table = compared(tmp_path, wrong, {"backend": "onnxruntime"})
    assert (code, table["rows"]) == (0, [])
    assert "onnx_reference fails" in table["invalid"]


@pytest.mark.slow
@pytest.mark.compiler_torch_eager
def test_gradients_are_compared_with_gradients(tmp_path: Path) -> None:
    """Rows without gradients have a reference of their own."""
    program = TorchProgram("import torch\n\n\ndef forward(x):\n    return torch.tanh(x)\n")
    inputs = (("x", Tensor.of(np.array([1, 2], np.float32))),)
    code, table = compared(
        tmp_path,
        TestCase(program, inputs, Provenance("tests", "tanh", "", "", "")),
        {"backend": WRONG_GRADIENT},
        {"backend": WRONG_GRADIENT, "options": {"backward": "on"}},
        {"backend": WRONG_GRADIENT, "options": {"backward": "on", "doubled": "no"}},
    )
    assert (code, table["invalid"]) == (0, "")
    seen = [(row["verdict"], row["to_reference"], row["group"], row["outlier"]) for row in table["rows"]]
    largest = (1 - np.tanh(1) ** 2).item()  # the derivative itself, which is doubled
    assert seen == [
        ("pass", 0, 0, False),
        ("wrong_result", pytest.approx(largest), 1, True),
        ("pass", 0, 0, False),
    ]


NO_GRADIENT = """
import torch


class Opaque(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("no derivative")


def forward(x):
    return Opaque.apply(x)
"""


@pytest.mark.slow
@pytest.mark.compiler_torch_eager
def test_a_row_without_a_reference_of_its_own_says_why(tmp_path: Path) -> None:
    inputs = (("x", Tensor.of(np.array([1, 2], np.float32))),)
    code, table = compared(
        tmp_path,
        TestCase(TorchProgram(NO_GRADIENT), inputs, Provenance("tests", "opaque", "", "", "")),
        {"backend": WRONG_GRADIENT},
        {"backend": WRONG_GRADIENT, "options": {"backward": "on"}},
    )
    assert (code, table["invalid"]) == (0, "")
    forward, backward = table["rows"]
    assert (forward["verdict"], forward["group"]) == ("pass", 0)
    assert (backward["verdict"], backward["group"]) == ("", None)
    assert "no derivative" in backward["summary"]


BAD: dict[str, Any] = {
    "twice the same": [
        {"backend": "onnxruntime"},
        {"backend": "onnxruntime", "options": {"optimization": "all"}},
    ],
    "unknown backend": [{"backend": "nope"}],
    "unknown device": [{"backend": "onnxruntime", "device": "NPU"}],
    "unknown option": [{"backend": "onnxruntime", "options": {"color": "red"}}],
    "no backend": [{}],
    "no objects": ["onnxruntime"],
}


@pytest.mark.parametrize("given", BAD.values(), ids=BAD.keys())
def test_bad_comparisons_are_exit_code_2(given: list[Any], tmp_path: Path) -> None:
    code, reported = compared(tmp_path, case(), *given)
    assert (code, reported["event"], reported["kind"]) == (2, "error", "usage")
    assert reported["message"]


def test_bad_command_lines_are_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    for text in ("{", "[]", "{}"):
        path.write_text(text)
        assert run(str(path))[0] == 2
    assert run()[0] == 2
    assert run("/nowhere/spec.json")[0] == 2
