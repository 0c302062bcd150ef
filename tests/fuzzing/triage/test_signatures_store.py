"""What the benchmark of signatures keeps of a failure."""

from __future__ import annotations

from pathlib import Path

from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.deduplicate.strategies.base import Failure
from fuzzing.outcomes import Outcome, Phase, Verdict
from fuzzing.triage.traits import Traits
from tests.benchmarks.signatures import KnownBug, Store

SYMPTOM = {
    "phase": "run",
    "verdict": "wrong_result",
    "error": "",
    "complaint": "shape",
    "frames": ["shape.py"],
}
TRAITS = Traits("Shape", ("float",), ("Shape.end", "rank 1"), ("Shape",), SYMPTOM)


def failure(model: bytes, traits: Traits | None = None) -> Failure:
    case = TestCase(OnnxModel(model), (), Provenance("isra", "1", "Add", "onnx", "1"))
    outcome = Outcome(case.id, "b", "t", "CPU", Verdict.CRASH, Phase.RUN, "it failed")
    return Failure(case, outcome, traits is not None, traits)


def test_a_failure_is_signed_as_before_it_was_kept(tmp_path: Path) -> None:
    known = KnownBug("shape-end", failure(b"found"), failure(b"left", TRAITS))
    Store(tmp_path).add(known)
    [again] = Store(tmp_path).all()
    assert again.small.traits == TRAITS
    assert [one.signature() for one in (again.found, again.small)] == [
        one.signature() for one in (known.found, known.small)
    ]
