"""From a view to files: the road a campaign's reporting step takes."""

from __future__ import annotations

import json
from pathlib import Path

from bot.github.dry_run import DryRunSink
from bot.github.outbox_queue import OutboxQueue
from bot.reports.renderer import draft_effects
from bot.store import bugs, outbox
from bot.store.models import Classification, EffectState
from bot.worker import Worker
from tests.bot.github.outbox_kit import START, campaign, database
from tests.bot.reports import sample_campaign

NOT_FILED = {Classification.REGRESSION: "", Classification.ALREADY_BROKEN: "already broken at base"}


def test_a_campaign_is_reported_once(tmp_path: Path) -> None:
    store, report = database(tmp_path), sample_campaign.report()
    number = campaign(store)
    for _ in range(2):  # a step that died after its work is done again
        with store.transaction() as session:
            for group in report.groups:
                bugs.record_sighting(
                    session,
                    sample_campaign.TARGET,
                    group.signature,
                    group.title,
                    START,
                    NOT_FILED.get(group.classification, "not a bug"),
                )
            drafts = draft_effects(report, sample_campaign.config())
            posted = outbox.post(session, drafts, campaign_id=number, issues_per_day=2, at=START)
        publisher = Worker(OutboxQueue(store, DryRunSink(tmp_path / "outbox"), lambda: START))
        while publisher.run_once():
            pass
    assert [item.state for item in posted] == [EffectState.SENT] * 3 + [EffectState.HELD]
    with store.reading() as session:
        shown = {
            bug.title: (bug.state, bug.reason) for bug in bugs.of_target(session, sample_campaign.TARGET)
        }
    assert shown["openvino convert crash: Resize axes"] == (
        "new",
        "already broken at base",
    )
    assert sorted(state for state, _ in shown.values()) == ["held", *["new"] * 4, "reported", "reported"]
    assert all(reason for _, reason in shown.values())
    files = sorted((tmp_path / "outbox" / sample_campaign.TARGET).glob("*.json"))
    assert [path.name.partition("-")[0] for path in files] == ["check_run", "issue", "issue"]
    titles = {json.loads(path.read_text())["body"].get("title") for path in files[1:]}
    assert {title.removeprefix("[Bug]: ") for title in titles} < set(shown)
