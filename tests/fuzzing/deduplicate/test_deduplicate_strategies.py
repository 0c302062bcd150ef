"""Which failures each strategy takes for one bug."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import OnnxModel
from fuzzing.deduplicate.strategies.base import Failure, get_strategy, names
from fuzzing.errors import UnknownNameError
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from tests.fuzzing.triage.test_traits import case_of

RELU = case_of("(float x) => (float y) { y = Relu(x) }")
RELU_2 = case_of("(float[2] x) => (float[2] y) { y = Relu(x) }")
TANH = case_of("(float x) => (float y) { y = Tanh(x) }")
BOTH = case_of("(float x) => (float y) { a = Tanh(x) y = Relu(a) }")


def crash(message: str, frames: tuple[str, ...] = (), error: str = "ValueError") -> Outcome:
    seen = Evidence(error=error, message=message, traceback=frames)
    return Outcome("0" * 64, "tvm", "t", "CPU", Verdict.CRASH, Phase.CONVERT, message, evidence=seen)


def wrong(kind: str = "value") -> Outcome:
    seen = Evidence(mismatches=(Mismatch("y", kind, "", got="1", want="2"),))
    return Outcome("0" * 64, "tvm", "t", "CPU", Verdict.WRONG_RESULT, Phase.RUN, "s", evidence=seen)


def bugs(strategy: str, *failures: Failure) -> int:
    """How many bugs a strategy sees in failures."""
    labels = get_strategy(strategy)(failures)
    assert len(labels) == len(failures)
    return len(set(labels))


def reduced(case: object, outcome: Outcome) -> Failure:
    assert isinstance(case, type(RELU))
    return Failure(case, outcome, reduced=True)


def test_all_are_known_by_name() -> None:
    assert names() == ("eagle", "gbft", "isra", "isra-exact", "key", "opera", "signature")
    with pytest.raises(UnknownNameError, match="there are: eagle, gbft"):
        get_strategy("none")


def test_ours_tells_operators_apart_and_takes_needs_for_accidents() -> None:
    small, large, other = (reduced(case, wrong()) for case in (RELU, RELU_2, TANH))
    assert bugs("signature", small, large) == 1
    assert bugs("key", small, large) == 2
    assert bugs("signature", small, other) == 2
    assert bugs("signature", small, reduced(RELU, wrong("shape"))) == 2


def test_of_an_unreduced_failure_ours_is_the_signature_of_campaigns() -> None:
    assert bugs("signature", Failure(RELU, wrong()), Failure(BOTH, wrong())) == 1
    assert bugs("signature", Failure(RELU, wrong()), reduced(RELU, wrong())) == 2


@given(st.permutations([RELU, RELU_2, TANH, BOTH, RELU_2]))
def test_in_which_order_failures_come_makes_no_difference(cases: list[object]) -> None:
    failures = [reduced(case, wrong()) for case in cases]
    labels = dict(
        zip((failure.case.id for failure in failures), get_strategy("signature")(failures), strict=True)
    )
    again = [reduced(case, wrong()) for case in (RELU, RELU_2, TANH, BOTH)]
    assert [labels[failure.case.id] for failure in again] == get_strategy("signature")(again)


def test_opera_goes_by_the_converters_function() -> None:
    pool = ("onnx.py:from_onnx", "onnx.py:convert_pool", "expr.py:shape")
    one, other = (
        Failure(RELU, crash("a", pool)),
        Failure(TANH, crash("b", (*pool[:2], "ir.py:x"), "TypeError")),
    )
    assert bugs("opera", one, other) == 1
    assert bugs("opera", one, Failure(RELU, crash("a", ("onnx.py:convert_conv",)))) == 2


def test_opera_else_by_the_error_without_what_is_in_brackets() -> None:
    one, other = (Failure(RELU, crash(f"note\nno kernel for [{n}]")) for n in (1, 2))
    assert bugs("opera", one, other) == 1
    assert bugs("opera", one, Failure(RELU, crash("note\nno schedule"))) == 2
    assert bugs("opera", Failure(RELU, wrong()), Failure(RELU_2, wrong()), Failure(TANH, wrong())) == 2


def test_isra_goes_by_the_text() -> None:
    near = [Failure(RELU, crash(f"the operator v{n} cannot be lowered here")) for n in (1, 2)]
    assert bugs("isra", *near) == 1
    assert bugs("isra-exact", *near) == 2
    assert bugs("isra", near[0], Failure(RELU, crash("something else altogether"))) == 2
    elsewhere = Failure(RELU, crash(near[0].outcome.evidence.message, ("a.py:f",)))
    assert bugs("isra", near[0], elsewhere) == 2


def test_gbft_goes_by_error_and_operator_or_by_structure() -> None:
    assert bugs("gbft", Failure(RELU, crash("a")), Failure(RELU_2, crash("b"))) == 1
    assert bugs("gbft", Failure(RELU, crash("[E] : 1 : FAIL")), Failure(RELU, crash("[E] : 2 : FAIL"))) == 2
    assert bugs("gbft", Failure(RELU, crash("Relu")), Failure(BOTH, crash("Relu"))) == 1, (
        "the message names it"
    )
    assert bugs("gbft", Failure(RELU, wrong()), Failure(BOTH, wrong())) == 2


def test_eagle_goes_by_the_rule_and_the_api() -> None:
    assert bugs("eagle", Failure(RELU, crash("a")), Failure(RELU_2, wrong())) == 1
    ruled = replace(RELU, provenance=replace(RELU.provenance, source="rule 7"))
    assert isinstance(ruled.program, OnnxModel)
    assert bugs("eagle", Failure(RELU, wrong()), Failure(ruled, wrong())) == 2
