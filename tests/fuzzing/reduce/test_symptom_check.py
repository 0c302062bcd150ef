"""What counts as the same bug while a case is made small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.execute.evaluator import Evaluator, Outputs
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.reduce.engine import CLEAN, OTHER, SAME
from fuzzing.reduce.symptom_check import SymptomClassifier, has_symptom, symptom_of


def outcome(verdict: Verdict, message: str = "") -> Outcome:
    evidence = Evidence("RuntimeError", message) if verdict.is_failure else Evidence()
    return Outcome("c", "x", "t", "CPU", verdict, Phase.COMPILE, verdict.value, evidence=evidence)


OUTPUTS = (("y", Tensor("bool", (1,), b"\0")),)


class FakeEvaluator:
    """A bench that knows what each program does there, and what it was asked."""

    def __init__(self, **does: Outcome) -> None:
        self._does = does
        self.asked: list[str] = []

    def reference(self, case: TestCase) -> Outputs:
        return OUTPUTS

    def evaluate(self, cases: Sequence[TestCase]) -> list[Outcome]:
        names = [case.program.to_bytes().decode() for case in cases]
        self.asked += names
        return [self._does[name] for name in names]


def case(name: str) -> TestCase:
    return TestCase(OnnxModel(name.encode()), (), Provenance("tests", name, "", "", ""))


WANTED, ELSE = outcome(Verdict.CRASH, "no such layout"), outcome(Verdict.CRASH, "out of registers")
HEAD = {"new": WANTED, "old": WANTED, "gone": WANTED, "other": ELSE, "fine": outcome(Verdict.PASS)}


def answers(head: FakeEvaluator, base: FakeEvaluator | None = None) -> dict[str, str]:
    passing = None if base is None else cast("Evaluator", base)
    fields: dict[str, Any] = symptom_of(WANTED)
    classify = SymptomClassifier(cast("Evaluator", head), fields, case, passing)
    return dict(zip(HEAD, classify(list(HEAD)), strict=True))


def test_the_same_symptom_is_the_same_bug() -> None:
    assert answers(FakeEvaluator(**HEAD)) == {
        "new": SAME,
        "old": SAME,
        "gone": SAME,
        "other": OTHER,
        "fine": CLEAN,
    }


def test_what_does_not_pass_where_the_first_case_does_was_there_before() -> None:
    there = {"new": outcome(Verdict.PASS), "old": ELSE, "gone": outcome(Verdict.UNSUPPORTED)}
    base = FakeEvaluator(**there)
    assert answers(FakeEvaluator(**HEAD), base) == {
        "new": SAME,
        "old": CLEAN,
        "gone": CLEAN,
        "other": OTHER,
        "fine": CLEAN,
    }
    assert base.asked == ["new", "old", "gone"], "and nothing is run there that does not count anyway"


def test_what_declares_other_outputs_than_the_library_computes_does_not_count() -> None:
    def declares(name: str, outputs: Outputs) -> bool:
        assert outputs == OUTPUTS
        return name == "old"

    head = cast("Evaluator", FakeEvaluator(**HEAD))
    classify = SymptomClassifier(head, symptom_of(WANTED), case, declares=declares)
    assert classify(["new", "old", "other"]) == [CLEAN, SAME, CLEAN]


def of_type(got: str, want: str) -> Outcome:
    mismatch = Mismatch("y", "type", f"{got} instead of {want}")
    evidence = Evidence(mismatches=(mismatch,))
    return Outcome("c", "x", "t", "CPU", Verdict.WRONG_RESULT, Phase.RUN, "s", evidence=evidence)


def test_an_output_of_a_wrong_type_is_that_in_plainer_types_too() -> None:
    """TVM's OneHot of floats is float64, and of small integers int64."""
    assert has_symptom(of_type("float64", "float32"), symptom_of(of_type("float64", "bfloat16")))
    assert has_symptom(of_type("int64", "int32"), symptom_of(of_type("int64", "int8")))
    assert not has_symptom(of_type("float64", "float32"), symptom_of(of_type("int64", "int8")))
    assert not has_symptom(of_type("float32", "int64"), symptom_of(of_type("int64", "float32")))


def test_an_output_of_a_wrong_shape_is_that_whatever_type_it_has() -> None:
    """OpenVINO's `kthvalue`: of integers the type is right by chance, and float32 is tried in their place."""
    shape, kind = Mismatch("y", "shape", ""), Mismatch("y", "type", "float32 instead of int64")
    one, both, other = (
        Outcome(
            "c", "x", "t", "CPU", Verdict.WRONG_RESULT, Phase.RUN, "s", evidence=Evidence(mismatches=each)
        )
        for each in ((shape,), (shape, kind), (kind,))
    )
    assert has_symptom(both, symptom_of(one))
    assert has_symptom(one, symptom_of(both))
    assert not has_symptom(other, symptom_of(one))
