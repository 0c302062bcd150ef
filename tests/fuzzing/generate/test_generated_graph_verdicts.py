"""Generated graphs are judged: a planted fault is seen, and what onnxruntime does right is not accused."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard
from fuzzing.execute.shard_run import ShardRun
from fuzzing.migrate import isra
from fuzzing.outcomes import Verdict
from tests.fuzzing.oracles.miscompiling_backend import plant

BACKEND = str(Path(__file__).parents[1] / "oracles" / "miscompiling_backend.py")
MODELS = 60
pytestmark = pytest.mark.compiler_onnxruntime


def verdicts(root: Path, fault: str) -> Counter[Verdict]:
    corpus = Corpus(root)
    for number in range(MODELS):
        case = isra.make_model(number)
        corpus.add(replace(case, program=plant(case.program, fault)))
    shard = Shard(str(root), tuple(corpus.ids()), BACKEND, "digest", sys.executable)
    return Counter(outcome.verdict for _, outcome in ShardRun(shard).outcomes())


def test_a_fault_is_seen_and_good_graphs_pass(tmp_path: Path) -> None:
    good = verdicts(tmp_path / "good", "none")
    assert not [verdict for verdict in good if verdict.is_failure], good
    assert good[Verdict.INVALID] <= MODELS / 20, "their own library runs them"
    assert good[Verdict.PASS] > MODELS / 2
    faulty = verdicts(tmp_path / "faulty", "sign")
    assert faulty[Verdict.WRONG_RESULT] > 0.75 * good[Verdict.PASS], faulty
