"""The ablation on outcomes alone; tests of inductor run it on the real compiler."""

from collections.abc import Iterator

import numpy as np
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.backends import AblationLevel, Backend
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.errors import InternalError, ToolchainError
from fuzzing.execute.ablation import AblationResult, is_same_failure, run_ablation
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> g (float x) => (float y) {y = Neg(x)}'
)
CASE = TestCase(
    OnnxModel(MODEL.SerializeToString()),
    (("x", Tensor.of(np.float32(1))),),
    Provenance("tests", "", "", "", ""),
)
ACCUSING = [verdict for verdict in Verdict if verdict.is_failure]


class Layered(Backend):
    """Three layers of a compiler that is not there."""

    name = "layered"
    ablation = (
        AblationLevel({"level": "parse"}, "parser"),
        AblationLevel({"level": "plan", "fold": "yes"}, "planner"),
        AblationLevel({"level": "all"}, "code generator"),
    )


def outcome(verdict: Verdict, *, signal: str = "", differences: tuple[str, ...] = ()) -> Outcome:
    mismatches = tuple(Mismatch("0", kind, "") for kind in differences)
    evidence = Evidence(signal=signal, mismatches=mismatches)
    return Outcome(CASE.id, "layered", "t", "CPU", verdict, Phase.COMPILE, "", evidence=evidence)


def run_levels(failing: Outcome, *ablation_runs: Outcome) -> tuple[AblationResult, list[dict[str, str]]]:
    """What a climb finds whose rungs end as given, and the options that were asked for."""
    requested: list[dict[str, str]] = []
    ends: Iterator[Outcome] = iter(ablation_runs)

    def run(options: dict[str, str]) -> Outcome:
        requested.append(options)
        return next(ends)

    return run_ablation(CASE, run, Layered, failing), requested


def test_the_first_rung_that_fails_alike_is_blamed_and_the_climb_ends_there() -> None:
    crash, fine = outcome(Verdict.CRASH), outcome(Verdict.PASS)
    found, requested = run_levels(crash, fine, crash)
    assert found == AblationResult((("level=parse", "pass"), ("fold=yes level=plan", "crash")), "planner")
    assert requested == [{"level": "parse"}, {"level": "plan", "fold": "yes"}]


def test_a_failure_that_does_not_come_back_is_nobodys() -> None:
    fine = outcome(Verdict.PASS)
    found, requested = run_levels(outcome(Verdict.HANG), fine, fine, fine)
    assert found.component == ""
    assert [verdict for _, verdict in found.ablation_runs] == ["pass"] * 3
    assert len(requested) == 3


def test_a_rung_that_fails_otherwise_is_shown_and_passed_over() -> None:
    wrong = outcome(Verdict.WRONG_RESULT, differences=("value",))
    found, _ = run_levels(wrong, outcome(Verdict.UNSUPPORTED), outcome(Verdict.CRASH), wrong)
    assert found.component == "code generator"
    assert [verdict for _, verdict in found.ablation_runs] == ["unsupported", "crash", "wrong_result"]


def test_a_backend_without_rungs_blames_nobody() -> None:
    def run(options: dict[str, str]) -> Outcome:
        raise AssertionError(f"there is no rung to run with {options}")

    assert run_ablation(CASE, run, Backend, outcome(Verdict.CRASH)) == AblationResult()


def test_trouble_of_the_machine_is_passed_on() -> None:
    def run(options: dict[str, str]) -> Outcome:
        raise ToolchainError("gone")

    with pytest.raises(ToolchainError, match="gone"):
        run_ablation(CASE, run, Layered, outcome(Verdict.CRASH))


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if not verdict.is_failure])
def test_what_is_no_failure_is_not_localized(verdict: Verdict) -> None:
    with pytest.raises(InternalError, match=f"its verdict is no failure but {verdict.value}"):
        run_levels(outcome(verdict))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (outcome(Verdict.CRASH), outcome(Verdict.CRASH), True),
        (outcome(Verdict.CRASH, signal="SIGSEGV"), outcome(Verdict.CRASH), False),
        (outcome(Verdict.CRASH, signal="SIGSEGV"), outcome(Verdict.CRASH, signal="SIGABRT"), False),
        (outcome(Verdict.HANG), outcome(Verdict.HANG), True),
        (outcome(Verdict.HANG), outcome(Verdict.OUT_OF_MEMORY), False),
        (
            outcome(Verdict.WRONG_RESULT, differences=("value", "type")),
            outcome(Verdict.WRONG_RESULT, differences=("value",)),
            True,
        ),
        (
            outcome(Verdict.WRONG_RESULT, differences=("shape",)),
            outcome(Verdict.WRONG_RESULT, differences=("value",)),
            False,
        ),
    ],
)
def test_what_counts_as_the_same_failure(one: Outcome, other: Outcome, same: bool) -> None:
    assert is_same_failure(one, other) is same
    assert is_same_failure(other, one) is same


@given(failing=st.sampled_from(ACCUSING), first=st.integers(0, 3))
def test_the_component_is_that_of_the_first_failing_level(failing: Verdict, first: int) -> None:
    differences = ("value",) if failing is Verdict.WRONG_RESULT else ()
    bad, fine = outcome(failing, differences=differences), outcome(Verdict.PASS)
    found, requested = run_levels(bad, *(bad if place >= first else fine for place in range(3)))
    names = [level.component for level in Layered.ablation]
    assert found.component == (names[first] if first < 3 else "")
    assert len(requested) == len(found.ablation_runs) == min(first + 1, 3)
