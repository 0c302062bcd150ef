"""Pruning of corpora: references, catalogs, caches, locks and kills."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bot import corpus_pruning
from bot.campaigns.plan.catalog import SourceCatalog, catalog_path
from bot.data_lock import CORPUS_LOCK, DataLock
from bot.store import Database, now
from bot.store.case_references import referred_cases
from bot.store.models import (
    Bug,
    Campaign,
    CampaignCase,
    CampaignState,
    Finding,
    Job,
    OutcomeRow,
    Proposal,
    Reduction,
    Repeat,
)
from bot.verdict_cache import open_database
from fuzzing.cases import Corpus, Tensor
from fuzzing.execute.case_cache import PACK_FOLDER, CaseCache
from tests.bot.cli.command_helpers import SOURCE, CommandResult, add_case, assay
from tests.support import kills

AT = now()


def add_cases(corpus: Path, count: int) -> list[str]:
    """Cases that differ in data alone, so that one of them covers what all do; and their catalog."""
    made = Corpus(corpus)
    for number in range(count):
        case = add_case(f"test_{number}")
        made.add(replace(case, inputs=(("x", Tensor.of(np.full(3, number, np.float32))), case.inputs[1])))
    ids = list(made.ids())
    catalog = catalog_path(corpus, SOURCE)
    catalog.parent.mkdir()
    end = {"library": "onnx 1", "skipped": {}}
    lines = [*({"id": case_id, "test": "t", "operator": "Add"} for case_id in ids), end]
    catalog.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ids


def prune(data: Path, *arguments: str | Path) -> CommandResult:
    return assay(data, "corpus", "prune", "--json", *arguments)


def test_nothing_changes_without_yes(tmp_path: Path) -> None:
    ids = add_cases(tmp_path / "corpus", 4)
    found = prune(tmp_path, "--list", tmp_path / "list").result
    assert (found["cases"], found["kept"], found["removable"], found["removed"]) == (4, {"operator": 1}, 3, 0)
    assert list(Corpus(tmp_path / "corpus").ids()) == ids
    listed = list(map(json.loads, (tmp_path / "list").read_text().splitlines()))
    assert listed == [
        {"case": case_id, "keep": not place, "why": "" if place else "operator"}
        for place, case_id in enumerate(ids)
    ]
    shown = assay(tmp_path, "corpus", "prune").out
    assert "3 cases of 4 would be removed; --yes removes them" in shown


def test_cases_leave_corpus_catalogs_and_caches(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    ids = add_cases(corpus, 4)
    cache = CaseCache(Corpus(corpus))
    references = corpus / ".references" / "onnx-1"
    for case_id in ids:
        cache.get(case_id)
        path = references / case_id[:2] / f"{case_id}.float64.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    stale = corpus / ids[0][:2] / ".incoming-ab"
    stale.mkdir()
    found = prune(tmp_path, "--yes").result
    assert (found["removable"], found["removed"]) == (3, 3)
    assert list(Corpus(corpus).ids()) == ids[:1]
    assert list(SourceCatalog(corpus, SOURCE).cases()) == ids[:1]
    assert SourceCatalog(corpus, SOURCE).account().library == "onnx 1"
    assert [path.name[:64] for path in references.rglob("*.json")] == ids[:1]
    assert not (corpus / PACK_FOLDER).exists()
    assert not stale.exists()
    assert prune(tmp_path, "--yes").result["removed"] == 0


def test_what_rows_refer_to_stays(tmp_path: Path) -> None:
    ids = add_cases(tmp_path / "corpus", 16)
    key: dict[str, Any] = {"toolchain": "t", "backend": "b", "device": "CPU"}
    created: dict[str, Any] = {"created_at": AT, "updated_at": AT}
    done = Campaign(target="t", head="h", trigger="push", state=CampaignState.DONE.value, **created)
    due = Campaign(target="t", head="h", trigger="other", **created)
    with open_database(tmp_path / "assay.db") as database, database.transaction() as session:
        session.add_all([done, due])
        session.flush()
        held = iter(ids[1:])
        seen = {"first_seen": AT, "last_seen": AT}
        facts = {"first": [{"case": next(held)}]}
        session.add(Bug(target="t", signature="s", title="", case_id=next(held), facts=facts, **seen))
        finding = {"classification": "c", "verdict": "crash", "signature": "s"}
        session.add(Finding(campaign_id=done.id, case_id=next(held), reduced=next(held), **finding))
        repeat = {"side": "head", "number": 0, "verdict": "pass", "body": {}}
        session.add(Repeat(campaign_id=done.id, case_id=next(held), **repeat))
        session.add(Reduction(case_id=next(held), reduced=next(held), recorded_at=AT, **key))
        test = {"effect": "e", "branch": "b", "path": "p", "test": "t", "writer": "w", **created}
        proof = {"cases": [next(held)]}
        session.add(Proposal(target="t", signature=next(held), proof=proof, **test))
        session.add(Job(key="k", kind="reduce", target="t", arguments={"case": next(held)}, created_at=AT))
        session.add(OutcomeRow(case_id=next(held), verdict="hang", body={}, recorded_at=AT, **key))
        session.add(CampaignCase(campaign_id=due.id, rank=0, case_id=next(held)))
        referred = len(ids) - 1 - len(list(held))
        session.add(OutcomeRow(case_id=ids[-1], verdict="pass", body={}, recorded_at=AT, **key))
        session.add(CampaignCase(campaign_id=done.id, rank=0, case_id=ids[-1]))
    runs = tmp_path / "runs" / "onnxruntime.db"
    with open_database(runs) as database, database.transaction() as session:
        session.add(OutcomeRow(case_id=ids[-2], verdict="crash", body={}, recorded_at=AT, **key))
        killed = Campaign(target="t", head="h", trigger="push", **created)
        session.add(killed)
        session.flush()
        session.add(CampaignCase(campaign_id=killed.id, rank=0, case_id=ids[-1]))
    found = prune(tmp_path, "--yes").result
    assert found["kept"] == {"referred": referred + 1}
    assert set(Corpus(tmp_path / "corpus").ids()) == {*ids[1 : 1 + referred], ids[-2]}


def test_references_are_read_from_postgresql_too(postgresql: str) -> None:
    database = Database(postgresql)
    database.migrate()
    with database.transaction() as session:
        session.add(Bug(target="t", signature="s", title="", first_seen=AT, last_seen=AT, case_id="a" * 64))
    with database.reading() as session:
        assert list(referred_cases(session, plans=True)) == ["a" * 64]
    database.close()


def _service(data: Path) -> DataLock:
    return DataLock(data)


def _service_on_postgresql(data: Path) -> DataLock:
    return DataLock(data, CORPUS_LOCK, shared=True)


def _run(data: Path) -> DataLock:
    return DataLock(data / "runs", "onnxruntime")


@pytest.mark.parametrize("make", [_service, _service_on_postgresql, _run])
def test_cases_stay_while_a_service_or_run_uses_them(
    tmp_path: Path, make: Callable[[Path], DataLock]
) -> None:
    add_cases(tmp_path / "corpus", 2)
    lock = make(tmp_path)
    lock.acquire()
    try:
        refused = prune(tmp_path, "--yes")
        looked = prune(tmp_path)
    finally:
        lock.release()
    assert refused.code == 3
    assert "another" in refused.err
    assert looked.result["removable"] == 1


def test_a_killed_removal_leaves_whole_cases_and_is_completed(tmp_path: Path) -> None:
    def removal(corpus: Path, gone: list[str]) -> Callable[[], object]:
        return partial(corpus_pruning.remove, Corpus(corpus), gone)

    gone = add_cases(tmp_path / "counted", 5)[1:]
    total = kills.count_steps(removal(tmp_path / "counted", gone))
    for step in kills.spread(total, 12):
        corpus = tmp_path / f"killed-{step}"
        ids = add_cases(corpus, 5)
        kills.kill_at(step, removal(corpus, gone))
        left = set(Corpus(corpus).ids())
        assert len(list(Corpus(corpus))) == len(left)  # each is whole
        assert set(SourceCatalog(corpus, SOURCE).cases()) <= left
        removal(corpus, gone)()
        assert list(Corpus(corpus).ids()) == ids[:1] == list(SourceCatalog(corpus, SOURCE).cases())
        assert not [*corpus.rglob(".incoming-*"), *corpus.rglob(".*.jsonl.*")]
