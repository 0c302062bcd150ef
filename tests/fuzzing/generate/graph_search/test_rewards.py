"""Rewards of the search: what is new of operators, of failures and of the compiler."""

from __future__ import annotations

from functools import cache

import pytest

from fuzzing.backends.base import APPLIED_PASS, LINES
from fuzzing.cases import TestCase
from fuzzing.execute.evaluator import Evaluator
from fuzzing.generate.graph_search import rewards
from fuzzing.generate.graph_search.rewards import ModelRun, coverage_gain, status
from fuzzing.generate.graph_search.rewards.compiler_coverage import Part, compiler_parts
from fuzzing.generate.graph_search.search import Search, SearchSettings, SearchStep
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from tests.fuzzing.localize.localize_kit import shard_of, unary


def outcome(verdict: Verdict, phase: Phase = Phase.RUN, summary: str = "") -> Outcome:
    return Outcome("case", "onnxruntime", "digest", "CPU", verdict, phase, summary, evidence=Evidence())


@cache
def step() -> SearchStep:
    """A step that shows something new, and something known."""
    search = Search(SearchSettings((2, 2)), 21, GraphLimits())
    return next(found for found in map(search.advance, range(100)) if 0 < coverage_gain(found) < 1)


def worth(reward: rewards.Reward, run: ModelRun) -> float:
    return reward(step(), run)


def test_statuses_are_those_of_the_paper() -> None:
    assert status(outcome(Verdict.PASS)) == "DCP"
    assert status(outcome(Verdict.WRONG_RESULT)) == "DCF"
    assert status(outcome(Verdict.CRASH)) == "IF"
    assert status(outcome(Verdict.CRASH, Phase.CONVERT)) == "MCF"


def test_a_passed_comparison_is_worth_one() -> None:
    reward = rewards.get("pass")()
    assert [worth(reward, ModelRun(outcome(one))) for one in (Verdict.PASS, Verdict.CRASH)] == [1, 0]


def test_a_failure_is_new_once() -> None:
    reward, gain = rewards.get("new-failure")(), coverage_gain(step())
    crash = ModelRun(outcome(Verdict.CRASH, summary="x"))
    other = ModelRun(outcome(Verdict.CRASH, summary="y"))
    assert [worth(reward, run) for run in (crash, crash, other)] == [1, gain, 1]
    assert worth(reward, ModelRun(outcome(Verdict.PASS))) == gain < 1


def test_a_part_of_the_compiler_is_new_once() -> None:
    reward, gain = rewards.get("compiler-coverage")(), coverage_gain(step())
    passed = outcome(Verdict.PASS)
    runs = [
        ModelRun(passed, ((LINES, "a.py 1-3"),)),
        ModelRun(passed, ((LINES, "a.py 2,3"), ("stage", "Fuse"))),
        ModelRun(passed, ((LINES, "a.py 2"), (APPLIED_PASS, "Fuse"))),
        ModelRun(passed, ((LINES, "b.py 2"),)),
    ]
    assert [worth(reward, run) for run in runs] == [1, gain, 1, 1]


def reached(backend: str, *cases: TestCase) -> list[set[Part]]:
    """The parts of a compiler that each case reaches."""
    instrumentation = rewards.get("compiler-coverage").instrumentation  # type: ignore[attr-defined]
    with Evaluator(shard_of(backend)) as evaluator:
        runs = evaluator.instrumented(cases, dict(instrumentation))
    assert [outcome.verdict for outcome, _ in runs] == [Verdict.PASS] * len(cases)
    return [compiler_parts(notes) for _, notes in runs]


@pytest.mark.compiler_onnxruntime
def test_onnxruntime_tells_the_transformers_that_changed_the_graph() -> None:
    plain, double = reached("onnxruntime", unary("Abs"), unary("Identity", "Identity", "Abs"))
    names = {name for name, _ in double - plain}
    assert any("Transformer" in name or "Elimination" in name for name in names), names


@pytest.mark.compiler_openvino
def test_openvino_tells_the_passes_that_changed_the_model() -> None:
    plain, double = reached("openvino", unary("Abs"), unary("Identity", "Abs"))
    assert {name for name, _ in double - plain} == {"Symbolic/ov::pass::NopElimination"}


@pytest.mark.compiler_tvm
def test_tvm_tells_the_lines_of_its_importer() -> None:
    absolute, sine = reached("tvm", unary("Abs"), unary("Abs", "Sin"))
    assert len(absolute) > 500
    importer = {path for path, _ in sine - absolute}
    assert any(path.startswith("relax/frontend/onnx/") for path in importer), importer
