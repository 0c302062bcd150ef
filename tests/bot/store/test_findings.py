from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bot.store import Database, campaigns, findings
from bot.store.models import Base, Campaign, Classification, Finding

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def finding(
    campaign_id: int, case: str, classification: Classification = Classification.REGRESSION
) -> Finding:
    return Finding(
        campaign_id=campaign_id, case_id=case, classification=classification.value,
        verdict="crash", signature="s" * 16,
        head_failed=3, head_runs=3,
    )  # fmt: skip


def test_findings_are_replaced_whole_and_listed_in_order(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(database.engine)
    with database.transaction() as session:
        row = Campaign(target="t", head="h", trigger="push", created_at=NOW, updated_at=NOW)
        one = campaigns.create(session, row)[0].id
        other = campaigns.create(
            session, Campaign(target="t", head="i", trigger="push", created_at=NOW, updated_at=NOW)
        )[0].id
        findings.replace(session, other, [finding(other, "kept")])
        assert findings.replace(session, one, [finding(one, "old"), finding(one, "b")]) == 2
    with database.transaction() as session:
        new = (
            finding(one, case, classification)
            for case, classification in (("c", Classification.FLAKY), ("b", Classification.FIXED))
        )
        assert findings.replace(session, one, new) == 2
    with database.reading() as session:
        found = list(findings.of_campaign(session, one))
        assert [(row.case_id, row.classification, row.base_runs, row.reason) for row in found] == [
            ("b", "fixed", 0, ""),
            ("c", "flaky", 0, ""),
        ]
        assert findings.counts(session, one) == {Classification.FIXED: 1, Classification.FLAKY: 1}
        assert [row.case_id for row in findings.of_campaign(session, other)] == ["kept"]
    database.close()
