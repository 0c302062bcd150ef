"""Which tests enter a batch: those that pass each time, in a file where the others still pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.proposals.batch_proof import MAX_TRIES, BatchProof
from bot.proposals.coverage_batch import propose_batch
from bot.proposals.proof import RUNS, TestBuild
from bot.proposals.writer import ProposalSettings
from bot.runners.repository_test import RunResult
from tests.bot.proposals.test_coverage_batch import passing
from tests.bot.proposals.test_writers import tree_of

BUILD = TestBuild("tvm 1", "/good/python", "b" * 40)
PASSES, FAILS = RunResult(True, True, 1.0, ""), RunResult(True, False, 1.0, "AssertionError: 3 differ")


class Runs:
    """Runs of tests: `answers` are those of a test in order, which passes where it has none."""

    def __init__(self, **answers: Sequence[RunResult]) -> None:
        self._left = {name: list(given) for name, given in answers.items()}
        self.seen: list[str] = []

    def __call__(
        self, python: str, files: Mapping[str, str], arguments: Sequence[str], timeout_s: float
    ) -> RunResult:
        assert python == BUILD.python
        path, _, name = arguments[-1].rpartition("::")
        assert f"def {name}():" in files[path]
        self.seen.append(name)
        left = self._left.get(name)
        return left.pop(0) if left else PASSES


def names(runs: Runs, *operators: str) -> tuple[list[str], BatchProof]:
    """The tests of a batch for TVM, and their proof."""
    tree = tree_of("tvm")
    proof = BatchProof(tree, BUILD, runs)
    cases = [passing(one) for one in operators]
    batch = propose_batch(cases, tree, ProposalSettings(), 5, accepts=proof.accepts)
    return [one.proposal.name for one in batch], proof


def test_a_test_that_passes_only_at_first_costs_itself_alone() -> None:
    runs = Runs(test_abs=[PASSES, PASSES, FAILS])
    found, proof = names(runs, "Neg", "Abs", "Ceil")
    assert found == ["test_neg", "test_ceil"]
    assert [(one.good.label, one.good.passed, one.bad) for one in proof.proofs] == [("tvm 1", RUNS, None)] * 2
    assert proof.refusal.startswith("test_abs passes in 2 of 3 runs on tvm 1")
    assert proof.refusal.endswith("AssertionError: 3 differ")


def test_a_test_beside_which_another_fails_is_left_out() -> None:
    runs = Runs(test_neg=[PASSES, PASSES, PASSES, FAILS])
    found, proof = names(runs, "Neg", "Abs", "Ceil")
    assert found == ["test_neg", "test_ceil"]
    assert proof.refusal == "test_neg fails beside test_abs"
    assert runs.seen == ["test_neg"] * 3 + ["test_abs"] * 3 + ["test_neg"] + ["test_ceil"] * 3 + ["test_neg"]


def test_slow_tests_are_left_out_and_tries_are_limited() -> None:
    slow = PASSES._replace(seconds=11.0)
    found, proof = names(Runs(test_neg=[slow] * 3), "Neg", "Abs")
    assert found == ["test_abs"]
    assert "at most 10 s are proposed" in proof.refusal
    unary = ["Neg", "Abs", "Ceil", "Floor", "Exp", "Log", "Sqrt", "Sin", "Cos", "Tan", "Erf", "Sign", "Tanh"]
    unary += ["Atan", "Asin", "Acos", "Sinh"]
    runs = Runs(**{f"test_{one.lower()}": [FAILS] * RUNS for one in unary})
    assert names(runs, *unary)[0] == []
    assert len(set(runs.seen)) == MAX_TRIES == len(unary) - 2
