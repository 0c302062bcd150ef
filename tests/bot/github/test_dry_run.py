"""Dry-run writes what live would send: GitHub's own description of its API is the judge."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import InfrastructureError, InternalError
from bot.github.dry_run import DryRunSink
from bot.reports import check_runs, renderer
from bot.store.outbox import ClaimedEffect, EffectDraft
from tests.bot.github.outbox_kit import START, check_run, issue
from tests.bot.reports import sample_campaign
from tests.github_api import prune
from tests.github_api.api_schema import faults


def claimed(draft: EffectDraft, target: str = sample_campaign.TARGET) -> ClaimedEffect:
    return ClaimedEffect(draft.key, draft.kind, target, draft.payload, START, True, False, 1)


def everything() -> list[EffectDraft]:
    drafts = renderer.draft_effects(sample_campaign.report(), sample_campaign.config("auto"))
    return [
        *drafts,
        check_runs.build_untested_check_run(
            sample_campaign.TARGET, sample_campaign.TARGET, sample_campaign.HEAD, 3, "no such release"
        ),
    ]


def test_every_request_is_one_github_describes(tmp_path: Path) -> None:
    sink = DryRunSink(tmp_path)
    for draft in everything():
        sink.send(claimed(draft))
        path = tmp_path / sample_campaign.TARGET / f"{draft.kind}-{draft.key}.json"
        request = json.loads(path.read_text())
        assert faults(request["method"], request["path"], request["body"]) == []
        assert request["body"] == draft.payload


@pytest.mark.parametrize(
    ("method", "path", "body", "fault"),
    [
        ("POST", "/repos/o/n/issues", {"body": "no title"}, "title"),
        ("POST", "/repos/o/n/issues", {"title": "t", "labelz": []}, "labelz"),
        ("POST", "/repos/o/n/check-runs", {"name": "assay"}, "head_sha"),
        ("POST", "/repos/o/n/check-runs", {"name": "a", "head_sha": "b", "conclusion": "fine"}, "fine"),
        ("PATCH", "/repos/o/n/issues", {}, "GitHub has no PATCH"),
        ("POST", "/repos/o/n/issues", None, "a body is missing"),
    ],
)
def test_the_judge_finds_faults(method: str, path: str, body: object, fault: str) -> None:
    assert any(fault in found for found in faults(method, path, body))


def test_a_writer_that_died_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(_: int) -> None:
        raise SystemExit

    with monkeypatch.context() as dying:
        dying.setattr(os, "getpid", lambda: 4711)
        dying.setattr(os, "fsync", die)
        with pytest.raises(SystemExit):
            DryRunSink(tmp_path).send(claimed(issue("a")))
    folder = tmp_path / sample_campaign.TARGET
    assert len(list(folder.iterdir())) == 1
    DryRunSink(tmp_path).send(replace(claimed(issue("a")), resumed=True))
    name = f"issue-{issue('a').key}"
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.json", f"{name}.md"]


def test_the_text_is_what_people_would_read(tmp_path: Path) -> None:
    sink = DryRunSink(tmp_path)
    url = sink.send(claimed(issue("a"))).url
    assert url == (tmp_path / sample_campaign.TARGET / f"issue-{issue('a').key}.json").as_uri()
    text = (tmp_path / sample_campaign.TARGET / f"issue-{issue('a').key}.md").read_text()
    assert text == f"# a\n\ntext\n\n<!-- assay:{issue('a').key} -->\n"
    sink.send(claimed(check_run("k")))
    text = (tmp_path / sample_campaign.TARGET / "check_run-k.md").read_text()
    assert text.startswith(f"# Nothing new\n\nCheck `assay` on `{sample_campaign.HEAD}`: **success**\n\nfine")


def test_writing_twice_is_writing_once(tmp_path: Path) -> None:
    sink, effect = DryRunSink(tmp_path), claimed(issue("a"))
    assert sink.find(effect) is None
    first = sink.send(effect)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert sink.send(effect) == first == sink.find(effect)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "acme").write_text("in the way")
    with pytest.raises(InfrastructureError, match="check the folder's permissions and the disk"):
        DryRunSink(tmp_path).send(claimed(issue("a")))


@pytest.mark.parametrize("target", ["../../etc", "o/..", "o/n/m", "o", "/n", "o/n\n", "o/n?x=1"])
def test_a_target_cannot_lead_elsewhere(target: str, tmp_path: Path) -> None:
    for act in (DryRunSink(tmp_path).send, DryRunSink(tmp_path).find):
        with pytest.raises(InternalError, match="owner/name"):
            act(claimed(issue("a"), target))


def test_the_description_holds_what_prune_keeps() -> None:
    kept = json.loads(Path(prune.__file__).with_name("github_api.json").read_text())["paths"]
    assert {path: tuple(operations) for path, operations in kept.items()} == prune.OPERATIONS
