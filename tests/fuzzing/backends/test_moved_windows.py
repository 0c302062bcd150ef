"""Window functions in the runs that measure how sensitive a program is to rounding."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx.checker
import onnx.parser
import onnx.reference
import pytest

from fuzzing import backends
from fuzzing.backends.onnx_reference.float64_widening import widen
from fuzzing.backends.onnx_reference.moved_windows import MOVES, move_windows
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.limits import Limits
from fuzzing.execute.recheck import Rechecker, RecheckRequest
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Phase, Verdict


def model_of(text: str) -> bytes:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    return bytes(model.SerializeToString())


def runs(text: str) -> list[Any]:
    """The first output of the float64 runs with the window as it is, and with each of MOVES."""
    model = model_of(text)
    models = [model, *(move_windows(model, how) or b"" for how in MOVES)]
    for one in models:
        onnx.checker.check_model(onnx.load_from_string(one))
    wide = [widen(onnx.load_from_string(one)) for one in models]
    outputs: list[Any] = [onnx.reference.ReferenceEvaluator(one).run(None, {}) for one in wide]
    return [np.asarray(one[0]) for one in outputs]


@pytest.mark.parametrize("window", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("length", [0, 1, 2, 9])
def test_each_number_of_a_window_moves_by_an_amount_of_its_own(window: str, length: int) -> None:
    exact, up, down, reverse, rounded = runs(
        f"() => (float[N] y) <int64 n = {{{length}}}> {{ y = {window}(n) }}"
    )
    assert {one.dtype.name for one in (up, down, reverse, rounded)} == {"float64"}
    moves = up - exact
    assert np.all(moves > 0)
    assert len({*np.round(moves * 2.0**40)}) == length
    assert np.all(moves < 2.0**-20)
    assert np.allclose(moves, exact - down, rtol=1e-6, atol=0)
    assert np.allclose(moves, (reverse - exact)[::-1], rtol=1e-6, atol=0)
    assert np.all(np.abs(rounded - exact) <= 2.0**-20)


def test_numbers_that_differ_by_rounding_become_equal() -> None:
    text = "() => (float[N] y) <int64 n = {2}> { w = HannWindow<periodic = 0>(n) y = Unique(w) }"
    assert [one.size for one in runs(text)] == [2, 2, 2, 2, 1]


def test_other_models_stay_as_they_are() -> None:
    assert move_windows(model_of("(float x) => (float y) { y = Abs(x) }"), "up") is None
    named = "(float HannWindow) => (float y) { y = Abs(HannWindow) }"
    assert move_windows(model_of(named), "up") is None
    whole = "() => (int64[N] y) <int64 n = {3}> { y = HannWindow<output_datatype = 7>(n) }"
    assert move_windows(model_of(whole), "up") is not None  # written again, with the same numbers


def test_bodies_move_too() -> None:
    text = """(bool c) => (int64[1] y) <int64 n = {2}> {
        y = If(c) <then_branch = t () => (int64[1] p) { w = HannWindow<periodic = 0>(n) p = ArgMin(w) },
                   else_branch = e () => (int64[1] q) { v = HannWindow<periodic = 0>(n) q = ArgMax(v) }>
    }"""
    moved = onnx.load_from_string(move_windows(model_of(text), "up") or b"")
    onnx.checker.check_model(moved)
    bodies = [attribute.g for attribute in moved.graph.node[0].attribute]
    assert ["Range" in [node.op_type for node in body.node] for body in bodies] == [True, True]


def judge(case: TestCase, claimed: Tensor, folder: Path) -> Verdict:
    """The verdict if a compiler gives this."""
    execution = Execution(ending="returned", phase=Phase.RUN, outputs=(("y", claimed),))
    outcome = decide_outcome(case, execution, backends.get("openvino"), "digest", "CPU")
    runners = ReferenceRunners(folder, sys.executable, Limits(), keep_workers=True)
    try:
        [found] = Rechecker(runners).recheck([RecheckRequest(case, True, execution.outputs, outcome)])
    finally:
        runners.close()
    return found.verdict


@pytest.mark.parametrize(
    ("text", "want", "got", "verdict"),
    [
        ("ArgMin<select_last_index = 1>(w)", [0], [1], Verdict.PASS),  # both are 0, but for rounding
        ("ArgMin<select_last_index = 1>(b)", [0], [1], Verdict.PASS),
        ("ArgMax(a)", [3], [4], Verdict.WRONG_RESULT),  # 1 is 0.12 above its neighbours
    ],
)
def test_ties_in_a_window_accuse_nobody(
    text: str, want: list[int], got: list[int], verdict: Verdict, tmp_path: Path
) -> None:
    model = model_of(f"""() => (int64[1] y) <int64 n = {{2}}, int64 m = {{7}}> {{
        w = HannWindow<periodic = 0>(n)  a = HannWindow<periodic = 0>(m)  b = Abs(w)  y = {text} }}""")
    expected = (("y", Tensor.of(np.array(want))),)
    case = TestCase(OnnxModel(model), (), Provenance("tests", "t", "Op", "onnx", "1"), expected=expected)
    found = judge(case, Tensor.of(np.array(got)), tmp_path)
    assert found is verdict
