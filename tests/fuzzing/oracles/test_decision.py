from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.errors import InternalError, UnknownNameError
from fuzzing.execution import Execution
from fuzzing.oracles import (
    Decision,
    OracleInput,
    decide_outcome,
    decision,
    needs_reference,
    register_oracle,
    with_reference,
)
from fuzzing.oracles.decision import oracles
from fuzzing.outcomes import MAX_TEXT, Outcome, Phase, Verdict
from fuzzing.registry import Registry


@dataclass(frozen=True)
class Backend:
    name: str = "toy"
    unsupported: tuple[tuple[str, str, str], ...] = (
        (r"NotImplemented", r"no kernel for (\w+)", r"no kernel for \1"),
        (r"^Fail$", r"opset \d+ is not supported", "a newer opset"),
    )


Y = (("y", Tensor.of(np.array([1.0, 2.0], np.float32))),)
CASE = TestCase(
    program=OnnxModel(b"model"),
    inputs=(),
    provenance=Provenance("test", "test_relu", "Relu", "onnx", "1"),
    expected=Y,
)
GIB = 1 << 30


def ruled(execution: Execution, case: TestCase = CASE, **options: Any) -> Outcome:
    outcome = decide_outcome(case, execution, Backend(), "digest", "CPU", **options)
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome
    assert "\n" not in outcome.summary
    assert 0 < len(outcome.summary) <= 200
    return outcome


def raised(error: str, message: str = "", phase: Phase = Phase.COMPILE) -> Execution:
    return Execution("raised", phase, error=error, message=message)


def killed(**seen: Any) -> Execution:
    return Execution("killed", Phase.COMPILE, **seen)


VERDICTS = {
    "as expected": (Execution("returned", Phase.RUN, outputs=Y), "pass", "1 output as expected"),
    "nothing returned": (
        Execution("returned", Phase.RUN), "wrong_result",
        "output y: the compiled program gives no such output",
    ),
    "exception": (raised("ValueError", "bad axis"), "crash", "ValueError: bad axis (in compilation)"),
    "exception without text": (raised("a.b.KeyError"), "crash", "KeyError (in compilation)"),
    "signal": (killed(signal="SIGSEGV"), "crash", "the process died of SIGSEGV in compilation"),
    "exit": (killed(exit_code=3), "crash", "the process ended itself with code 3 in compilation"),
    "import": (
        raised("ImportError", "no module", Phase.IMPORT), "crash",
        "ImportError: no module (while the compiler was imported)",
    ),
    "hang": (
        Execution("hung", Phase.RUN, durations={"run": 30.2}), "hang", "no end in execution after 30 s",
    ),
    "hang at once": (Execution("hung", Phase.CONVERT), "hang", "no end in conversion"),
    "memory limit": (
        Execution("out_of_memory", Phase.COMPILE, peak_bytes=4 * GIB), "out_of_memory",
        "out of memory in compilation at 4.0 GiB",
    ),
    "MemoryError": (raised("MemoryError"), "out_of_memory", "out of memory in compilation"),
    "numpy's": (
        raised("numpy.core._exceptions._ArrayMemoryError", "Unable to allocate 8.00 GiB for an array"),
        "out_of_memory", "out of memory in compilation",
    ),
    "bad_alloc": (
        raised("RuntimeError", "Exception from src/inference/src/cpp/core.cpp:117:\nstd::bad_alloc"),
        "out_of_memory", "out of memory in compilation",
    ),
    "onnxruntime's arena": (
        raised("RuntimeException", "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : "
               "Failed to allocate memory for requested buffer of size 17179869184"),
        "out_of_memory", "out of memory in compilation",
    ),
    "uncaught bad_alloc": (
        killed(signal="SIGABRT", log="terminate called after throwing an instance of 'std::bad_alloc'\n"),
        "out_of_memory", "out of memory in compilation",
    ),
    "unsupported": (raised("x.NotImplemented", "no kernel for Loop"), "unsupported", "no kernel for Loop"),
    "unsupported by text": (raised("Fail", "opset 27 is not supported"), "unsupported", "a newer opset"),
    "another class": (
        raised("Failure", "opset 27 is not supported"), "crash",
        "Failure: opset 27 is not supported (in compilation)",
    ),
    "memory before unsupported": (
        raised("NotImplemented", "no kernel for Loop: std::bad_alloc"), "out_of_memory",
        "out of memory in compilation",
    ),
    "several lines": (
        raised("RuntimeError", "Exception from a/b.cpp:7:\nCheck 'x > 0' failed at c/d.hpp:8:\n\ndetails\n"),
        "crash", "RuntimeError: Check 'x > 0' (in compilation)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("execution", "verdict", "summary"), VERDICTS.values(), ids=VERDICTS.keys())
def test_verdicts(execution: Execution, verdict: str, summary: str) -> None:
    outcome = ruled(execution)
    assert (outcome.verdict.value, outcome.summary) == (verdict, summary)


def test_unsupported_is_a_matter_of_exceptions() -> None:
    """A process that dies has not said anything, whatever it printed before."""
    assert ruled(killed(signal="SIGSEGV", log="no kernel for Loop")).verdict is Verdict.CRASH


@pytest.mark.parametrize("execution", [execution for execution, *_ in VERDICTS.values()])
def test_without_a_reference_every_end_is_invalid(execution: Execution) -> None:
    outcome = ruled(execution, replace(CASE, expected=None))
    assert outcome.verdict is Verdict.INVALID
    assert not outcome.verdict.is_failure


def test_wrong_results_are_evidence() -> None:
    got = (("y", Tensor.of(np.array([1.0, 9.0], np.float32))),)
    outcome = ruled(Execution("returned", Phase.RUN, outputs=got))
    assert outcome.verdict is Verdict.WRONG_RESULT
    assert outcome.summary == (
        "output y: 1 of 2 elements are wrong, worst at [1]: 9.0 instead of 2.0 "
        "(allowed: 1e-05 + 1.3e-06·|reference|)"
    )
    (mismatch,) = outcome.evidence.mismatches
    assert (mismatch.worst, mismatch.ratio, mismatch.max_abs, mismatch.max_rel) == ((1,), 0.5, 7.0, 3.5)


def test_the_summary_counts_further_outputs() -> None:
    case = replace(CASE, expected=(*Y, ("z", Y[0][1])))
    assert ruled(Execution("returned", Phase.RUN), case).summary.endswith("no such output (and 1 more)")


def test_the_profile_and_the_comparison_are_heeded() -> None:
    got = (("y", Tensor.of(np.array([1.0, 2.001], np.float32))),)
    execution = Execution("returned", Phase.RUN, outputs=got)
    assert ruled(execution).verdict is Verdict.WRONG_RESULT
    assert ruled(execution, profile="onnx").verdict is Verdict.PASS
    assert ruled(execution, replace(CASE, comparison="shapes")).verdict is Verdict.PASS
    with pytest.raises(UnknownNameError):
        ruled(execution, profile="none")


def test_an_outcome_says_what_was_seen() -> None:
    seen = Execution(
        "killed", Phase.RUN, durations={"compile": 1.5, "run": 0.1}, signal="SIGABRT",
        native="stack", log="end", peak_bytes=7,
    )  # fmt: skip
    outcome = ruled(seen)
    assert (outcome.case, outcome.backend, outcome.toolchain, outcome.device) == (
        CASE.id,
        "toy",
        "digest",
        "CPU",
    )
    assert (outcome.phase, outcome.durations, outcome.peak_bytes) == (Phase.RUN, seen.durations, 7)
    evidence = outcome.evidence
    assert (evidence.signal, evidence.native, evidence.log) == ("SIGABRT", "stack", "end")


def test_long_texts_keep_what_matters() -> None:
    long = "a" + "b" * MAX_TEXT + "c"
    evidence = ruled(replace(raised("E", long), log=long, traceback=("x.py:f",))).evidence
    assert (evidence.message[0], len(evidence.message)) == ("a", MAX_TEXT)
    assert (evidence.log[-1], len(evidence.log)) == ("c", MAX_TEXT)
    assert evidence.traceback == ("x.py:f",)


def test_two_oracles_cannot_have_one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(oracles()) >= 6
    monkeypatch.setattr(decision, "_ORACLES", Registry("oracle"))

    def one(_input: OracleInput) -> Decision | None:
        return None

    def another(_input: OracleInput) -> Decision | None:
        return None

    register_oracle(rank=10)(one)
    register_oracle(rank=10)(another)
    with pytest.raises(AssertionError, match="two oracles have one rank"):
        oracles.__wrapped__()


def test_references() -> None:
    bare = replace(CASE, expected=None)
    assert needs_reference(bare)
    assert not needs_reference(CASE)
    assert with_reference(bare, Y) == CASE
    with pytest.raises(InternalError, match="already"):
        with_reference(CASE, Y)
