"""The database that `assay run` keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot import verdict_cache
from bot.errors import InfrastructureError
from bot.store import now, outcomes
from bot.store.outcomes import CacheKey
from bot.verdict_cache import open_verdict_cache
from fuzzing.outcomes import Outcome, Phase, Verdict

KEY = CacheKey("t", "onnxruntime", "CPU")
SEEN = Outcome("c", "onnxruntime", "t", "CPU", Verdict.PASS, Phase.RUN, "")


def known(data_dir: Path, *, add: bool = False) -> Outcome | None:
    with open_verdict_cache(data_dir, "onnxruntime") as database, database.transaction() as session:
        if add:
            outcomes.record(session, [SEEN], now())
        return outcomes.get(session, "c", KEY)


def test_verdicts_stay_from_run_to_run(tmp_path: Path) -> None:
    assert known(tmp_path) is None
    assert known(tmp_path, add=True) == known(tmp_path) == SEEN
    with open_verdict_cache(tmp_path, "openvino") as database, database.reading() as session:
        assert outcomes.get(session, "c", KEY) is None, "each backend has a database of its own"


def test_a_change_of_our_own_code_empties_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another oracle may judge otherwise."""
    known(tmp_path, add=True)
    digest = verdict_cache.verdict_digest("onnxruntime")
    assert digest == verdict_cache.verdict_digest("onnxruntime")
    monkeypatch.setattr(verdict_cache, "verdict_digest", lambda backend: digest[::-1])
    assert known(tmp_path) is None


def test_the_code_of_a_backend_that_is_a_file_counts(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("x = 1\n")
    first = verdict_cache.verdict_digest(str(mine))
    mine.write_text("x = 2\n")
    assert verdict_cache.verdict_digest(str(mine)) != first


def test_a_second_run_of_one_backend_is_refused_by_name(tmp_path: Path) -> None:
    refused = pytest.raises(InfrastructureError, match="another `assay run --backend onnxruntime` works on")
    first, other = open_verdict_cache(tmp_path, "onnxruntime"), open_verdict_cache(tmp_path, "openvino")
    with first, other, refused, open_verdict_cache(tmp_path, "onnxruntime"):
        pass
    with open_verdict_cache(tmp_path, "onnxruntime"):
        pass
