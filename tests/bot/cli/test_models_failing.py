"""ONNX models that compilers fail, as they lie on disk: where, since when, with how little of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from tests.bot.bisection.tiny_index import BACKEND, GOOD, WRONG, make_index
from tests.bot.cli.command_helpers import assay

pytestmark = pytest.mark.compiler_openvino
HEAD = '<ir_version: 8, opset_import: ["" : 19]>'
#: OpenVINO's cast to float8 overflows where it must saturate (docs/findings.md).
CAST = f"""{HEAD} g (float[4, 5] x, float[5, 6] w) => (float[4, 6] y) {{
    k = Constant<value = float {{1e6}}>() p = MatMul(x, w) q = Mul(p, k)
    e = Cast<to = 17>(q) f = Cast<to = 1>(e) y = Relu(f) }}"""
#: Not known to OpenVINO 2023.3.0, and wrong in 2024.0.0 for 16 bits without a sign.
NOT = f"{HEAD} g (uint16[3] x) => (uint16[3] y) {{ y = BitwiseNot(x) }}"
#: Valid, but of shapes that do not fit: 4 elements cannot be 3 by 2.
UNFIT = f"""{HEAD} g (float[n] x) => (float[3, 2] y) {{
    s = Constant<value_ints = [3, 2]>() y = Reshape(x, s) }}"""
ADD = f"{HEAD} g (float[3] x, float[3] y) => (float[3] z) {{ z = Add(x, y) }}"


def save(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.parser.parse_model(text), path)
    return path


@pytest.mark.slow
def test_a_model_is_localized(tmp_path: Path) -> None:
    net = save(tmp_path / "net.onnx", CAST)
    ran = assay(tmp_path / "data", "localize", net, "--backend", "openvino", "--json")
    assert ran.code == 1, ran.err
    facts = {fact["what"]: fact["found"] for fact in ran.result["facts"]}
    assert facts["stage"] == ["conversion"]
    assert "Cast" in facts["subgraph"]


def test_a_model_is_reduced(tmp_path: Path) -> None:
    net = save(tmp_path / "net.onnx", CAST)
    ran = assay(tmp_path / "data", "reduce", net, "--backend", "openvino", "--json")
    assert ran.code == 1, ran.err
    assert ran.result["after"] < ran.result["before"]
    assert Path(ran.result["reproducer"]).is_file()


@pytest.mark.slow
def test_a_model_is_bisected_with_the_data_set_that_is_named(tmp_path: Path) -> None:
    net = save(tmp_path / "nets" / "net.onnx", ADD)
    for number, given in enumerate((0, 1)):  # x - y is x + y where both are 0
        folder = net.parent / f"test_data_set_{number}"
        folder.mkdir()
        for place in range(2):
            value = onnx.numpy_helper.from_array(np.full(3, given, np.float32))
            (folder / f"input_{place}.pb").write_bytes(value.SerializeToString())
    env = make_index(tmp_path, {"1.0": GOOD, "1.1": WRONG, "1.2": WRONG})
    requested = (
        "bisect",
        net,
        "--releases",
        "tinyc:1.0..1.2",
        "--backend",
        BACKEND,
        "--repeats",
        "2",
        "--json",
    )
    found = assay(tmp_path / "data", *requested, "--data-set", "1", env=env)
    assert (found.code, found.result["release"], found.result["before"]) == (1, "1.1", "1.0"), found.err
    passing = assay(tmp_path / "data", *requested, "--data-set", "0", env=env)
    assert (passing.code, passing.result["release"]) == (0, None), passing.err


def test_what_its_own_library_cannot_run_is_told_of_the_first_release(tmp_path: Path) -> None:
    net = save(tmp_path / "net.onnx", UNFIT)
    env = make_index(tmp_path, {"1.0": GOOD, "1.1": GOOD, "1.2": GOOD})
    ran = assay(
        tmp_path / "data", "bisect", net, "--releases", "tinyc:1.0..1.2", "--backend", BACKEND, env=env
    )
    assert ran.code == 2
    assert "cannot be bisected: its own library fails it: onnx_reference fails" in ran.err
    assert ran.err.count(": installed\n") == 1, ran.err


@pytest.mark.slow
@pytest.mark.network
def test_a_model_is_bisected_through_real_releases(tmp_path: Path) -> None:
    net = save(tmp_path / "net.onnx", NOT)
    ran = assay(tmp_path / "data", "bisect", net, "--releases", "openvino:2023.3..2024.0", "--json")
    assert ran.code == 1, ran.err
    assert (ran.result["kind"], ran.result["before"], ran.result["release"]) == (
        "found",
        "2023.3.0",
        "2024.0.0",
    )
