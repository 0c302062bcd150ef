from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from bot.store import Database, campaigns, outcomes
from bot.store.models import Base, Campaign, Side, Toolchain
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HEAD, BASE = CacheKey("head", "x", "CPU"), CacheKey("base", "x", "CPU")
CASES = ["c0", "c1", "c2", "c3"]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/assay.db")
    Base.metadata.create_all(made.engine)
    with made.transaction() as session:
        for digest in ("head", "base"):
            session.add(
                Toolchain(
                    digest=digest,
                    backend="x",
                    provisioner="p",
                    label=digest,
                    python="",
                    versions={},
                    requirements=[],
                    created_at=NOW,
                )
            )
    yield made
    made.close()


def campaign(database: Database, head: str = "h", cases: list[str] = CASES) -> int:
    with database.transaction() as session:
        row = Campaign(target="t", head=head, base="b", trigger="push", created_at=NOW, updated_at=NOW)
        row.head_toolchain, row.base_toolchain = "head", "base"
        made, _ = campaigns.create(session, row)
        campaigns.write_plan(session, made.id, cases)
        return made.id


def outcome(
    case: str, verdict: str, key: CacheKey = HEAD, phase: Phase = Phase.RUN, message: str = ""
) -> Outcome:
    return Outcome(
        case, key.backend, key.toolchain, key.device, Verdict(verdict), phase, verdict,
        evidence=Evidence(message=message), configuration=key.configuration,
    )  # fmt: skip


def record(database: Database, *found: Outcome) -> int:
    with database.transaction() as session:
        return outcomes.record(session, found, NOW)


def test_the_first_verdict_under_a_key_stays(database: Database) -> None:
    assert record(database, outcome("c0", "crash")) == 1
    assert record(database, outcome("c0", "pass"), outcome("c0", "pass", BASE)) == 1
    with database.reading() as session:
        first = outcomes.get(session, "c0", HEAD)
        assert first == outcome("c0", "crash")
        assert outcomes.get(session, "c9", HEAD) is None


@pytest.mark.parametrize(
    "other",
    [
        CacheKey("h2", "x", "CPU"),
        CacheKey("head", "y", "CPU"),
        CacheKey("head", "x", "GPU"),
        CacheKey("head", "x", "CPU", "optimization=basic"),
    ],
)
def test_each_part_of_the_key_tells_outcomes_apart(database: Database, other: CacheKey) -> None:
    campaign_id = campaign(database)
    record(database, outcome("c0", "pass", other))
    assert not HEAD.fits(outcome("c0", "pass", other))
    with database.reading() as session:
        assert outcomes.pending(session, campaign_id, HEAD, limit=9) == CASES
        assert outcomes.pending(session, campaign_id, other, limit=9) == CASES[1:]


def test_pending_follows_the_plan(database: Database) -> None:
    campaign_id = campaign(database, cases=["c2", "c0", "c3", "c1"])
    record(database, outcome("c0", "pass"))
    with database.reading() as session:
        assert outcomes.pending(session, campaign_id, HEAD, limit=9) == ["c2", "c3", "c1"]
        assert outcomes.pending(session, campaign_id, HEAD, limit=2) == ["c2", "c3"]


def test_pending_at_base_can_be_narrowed_by_the_verdict_at_head(database: Database) -> None:
    campaign_id = campaign(database)
    record(
        database,
        outcome("c0", "crash"),
        outcome("c1", "pass"),
        outcome("c2", "hang"),
        outcome("c2", "pass", BASE),
    )
    accusing = [verdict for verdict in Verdict if verdict.is_failure]
    with database.reading() as session:
        assert outcomes.pending(session, campaign_id, BASE, limit=9, head=HEAD, verdicts=accusing) == ["c0"]
        assert outcomes.pending(session, campaign_id, BASE, limit=9, head=HEAD, verdicts=[Verdict.PASS]) == [
            "c1"
        ]


def test_pending_at_base_can_be_ordered_by_the_verdict_at_head(database: Database) -> None:
    campaign_id = campaign(database, cases=["c3", "c2", "c1", "c0"])
    verdicts = {"c0": "unsupported", "c1": "pass", "c2": "unsupported", "c3": "pass"}
    record(database, *(outcome(case, verdict) for case, verdict in verdicts.items()))
    wanted = [Verdict.UNSUPPORTED, Verdict.PASS]
    with database.reading() as session:
        narrowed = partial(outcomes.pending, session, campaign_id, BASE, limit=9, head=HEAD, verdicts=wanted)
        assert narrowed() == ["c3", "c2", "c1", "c0"]
        assert narrowed(by_verdict=True) == ["c2", "c0", "c3", "c1"]


def test_counts_see_planned_cases_only(database: Database) -> None:
    campaign_id = campaign(database)
    record(
        database,
        outcome("c0", "crash"),
        outcome("c1", "pass"),
        outcome("c2", "pass"),
        outcome("elsewhere", "hang"),
    )
    with database.reading() as session:
        assert outcomes.counts(session, campaign_id, HEAD) == {Verdict.CRASH: 1, Verdict.PASS: 2}
        assert outcomes.ran(session, campaign_id, HEAD) == 3
        assert outcomes.cases_with_verdict(session, campaign_id, HEAD, [Verdict.PASS]) == ["c1", "c2"]
        assert list(outcomes.verdicts(session, campaign_id, HEAD)) == [
            ("c0", Verdict.CRASH),
            ("c1", Verdict.PASS),
            ("c2", Verdict.PASS),
        ]


def test_pairs_are_what_is_worth_a_word(database: Database) -> None:
    cases = ["both", "fixed", "fine", "tie", "only", "unsupported", "gone"]
    campaign_id = campaign(database, cases=cases)
    excused = Evidence(excused=(Mismatch("y", "value", "1 of 4 elements are wrong"),))
    record(
        database,
        outcome("both", "crash"), outcome("both", "pass", BASE),
        outcome("fixed", "pass"), outcome("fixed", "hang", BASE),
        outcome("fine", "pass"), outcome("fine", "pass", BASE),
        replace(outcome("tie", "pass"), evidence=excused), outcome("tie", "pass", BASE),
        outcome("only", "hang"),
        outcome("unsupported", "unsupported"), outcome("unsupported", "pass", BASE),
        outcome("gone", "crash", BASE),
    )  # fmt: skip
    with database.reading() as session:
        both = [
            (h.case, b and b.verdict.value)
            for h, b in outcomes.outcome_pairs(session, campaign_id, HEAD, BASE)
        ]
        alone = [(h.case, b) for h, b in outcomes.outcome_pairs(session, campaign_id, HEAD, None)]
    assert both == [
        ("both", "pass"),
        ("fixed", "hang"),
        ("tie", "pass"),
        ("only", None),
        ("unsupported", "pass"),
    ]
    assert alone == [("both", None), ("only", None), ("unsupported", None)]


def repeats(database: Database, campaign_id: int, side: Side, *runs: tuple[int, Outcome]) -> int:
    with database.transaction() as session:
        return outcomes.record_repeats(session, campaign_id, side, runs)


def test_missing_repeats_are_told_by_number(database: Database) -> None:
    campaign_id = campaign(database)
    repeats(
        database,
        campaign_id,
        Side.HEAD,
        (1, outcome("c0", "crash")),
        *((n, outcome("c1", "hang")) for n in range(3)),
    )
    with database.reading() as session:
        missing = outcomes.missing_repeats(session, campaign_id, Side.HEAD, ["c0", "c1", "c2"], 3)
        at_base = outcomes.missing_repeats(session, campaign_id, Side.BASE, ["c1"], 2)
    assert missing == {"c0": [0, 2], "c2": [0, 1, 2]}
    assert at_base == {"c1": [0, 1]}


def test_agreement_counts_the_same_verdict_in_the_same_phase(database: Database) -> None:
    campaign_id = campaign(database)
    record(database, outcome("c0", "crash", phase=Phase.COMPILE))
    repeats(
        database,
        campaign_id,
        Side.HEAD,
        (0, outcome("c0", "crash", phase=Phase.COMPILE, message="another address")),
        (1, outcome("c0", "crash", phase=Phase.RUN)),
        (2, outcome("c0", "hang", phase=Phase.COMPILE)),
    )
    with database.reading() as session:
        assert outcomes.agreement(session, campaign_id, Side.HEAD, HEAD) == {"c0": (1, 3)}
        assert outcomes.agreement(session, campaign_id, Side.BASE, BASE) == {}


def test_repeats_are_reused_on_the_same_toolchain_on_either_side(database: Database) -> None:
    first, second = campaign(database), campaign(database, head="h2")
    repeats(database, first, Side.BASE, (0, outcome("c0", "pass", BASE)), (1, outcome("c0", "pass", BASE)))
    repeats(
        database,
        first,
        Side.HEAD,
        (0, outcome("c0", "crash")),
        (0, outcome("c1", "crash", CacheKey("head", "x", "GPU"))),
    )

    def there(key: CacheKey, **missing: list[int]) -> list[tuple[int, str, str]]:
        with database.reading() as session:
            found = outcomes.repeats_of_other_campaigns(session, second, key, missing)
        return [(number, one.case, one.verdict.value) for number, one in found]

    assert there(BASE, c0=[0], c1=[0]) == [(0, "c0", "pass")]
    assert there(BASE, c0=[1, 2]) == [(1, "c0", "pass")], "what is not lacking is not asked for"
    assert there(HEAD, c0=[0, 1, 2], c1=[0, 1, 2]) == [(0, "c0", "crash")]
    assert there(HEAD, c0=[]) == []


def test_many_cases_go_through_in_chunks(database: Database) -> None:
    cases = [f"{n:064x}" for n in range(3 * campaigns.CHUNK)]
    campaign_id = campaign(database, cases=cases)
    assert record(database, *(outcome(case, "crash") for case in cases)) == len(cases)
    with database.transaction() as session:
        outcome_pairs = outcomes.outcome_pairs(session, campaign_id, HEAD, BASE)
        assert [head.case for head, _ in outcome_pairs] == cases
        assert len(outcomes.missing_repeats(session, campaign_id, Side.HEAD, cases, 2)) == len(cases)


def test_a_key_names_what_is_not_the_default() -> None:
    config = {"backend": "x", "device": "CPU", "options": {"level": "0"}, "profile": "isra"}
    assert CacheKey.of("head", config) == CacheKey("head", "x", "CPU", "level=0 profile=isra")
    assert CacheKey.of("head", {"backend": "x", "device": "CPU"}) == HEAD, "as campaigns of old have it"


def test_what_was_known_before_is_counted(database: Database) -> None:
    campaign_id = campaign(database)
    record(database, outcome("c0", "pass"), outcome("c1", "crash", phase=Phase.CONVERT))
    with database.transaction() as session:
        outcomes.record(session, [outcome("c2", "crash", phase=Phase.RUN)], NOW + timedelta(seconds=5))
    with database.reading() as session:
        assert outcomes.cached(session, campaign_id, HEAD, NOW + timedelta(seconds=1)) == 2
        assert outcomes.cached(session, campaign_id, HEAD, NOW) == 0
        assert outcomes.by_phase(session, campaign_id, HEAD) == {
            Phase.CONVERT: {Verdict.CRASH: 1},
            Phase.RUN: {Verdict.PASS: 1, Verdict.CRASH: 1},
        }
        assert outcomes.by_phase(session, campaign_id, BASE) == {}


@pytest.mark.parametrize(
    "with_component",
    [
        Evidence(
            ablation_runs=(("torch_backend=eager", "pass"), ("torch_backend=inductor", "crash")),
            component="inductor",
        ),
        Evidence(rewrite="unit-axes"),
    ],
)
def test_the_first_repeat_that_looked_says_who_is_to_blame(
    database: Database, with_component: Evidence
) -> None:
    campaign_id = campaign(database)
    runs = [(0, outcome("c0", "crash")), (1, replace(outcome("c0", "crash"), evidence=with_component))]
    with database.transaction() as session:
        outcomes.record_repeats(session, campaign_id, Side.HEAD, runs)
    with database.reading() as session:
        first, other = outcome("c0", "crash"), outcome("c1", "crash")
        assert outcomes.with_component(session, campaign_id, Side.HEAD, first) == replace(
            first, evidence=with_component
        )
        assert outcomes.with_component(session, campaign_id, Side.BASE, first) == first
        assert outcomes.with_component(session, campaign_id, Side.HEAD, other) == other


def test_one_case_is_asked_about_alone(database: Database) -> None:
    campaign_id = campaign(database)
    record(database, outcome("c0", "crash"), outcome("c1", "crash"))
    runs = [(0, outcome("c0", "crash")), (1, outcome("c0", "pass")), (0, outcome("c1", "crash"))]
    with database.transaction() as session:
        outcomes.record_repeats(session, campaign_id, Side.HEAD, runs)
    with database.reading() as session:
        assert outcomes.agreement(session, campaign_id, Side.HEAD, HEAD, "c0") == {"c0": (1, 2)}
        assert outcomes.agreement(session, campaign_id, Side.HEAD, HEAD, "c9") == {}
        assert [one.verdict for one in outcomes.repeats(session, campaign_id, Side.HEAD, "c0")] == [
            Verdict.CRASH,
            Verdict.PASS,
        ]


def test_noise_is_what_passes_and_then_does_not(database: Database) -> None:
    campaign_id = campaign(database)
    record(database, outcome("c0", "pass"), outcome("c1", "pass"), outcome("c2", "crash"))
    runs = [(0, outcome("c0", "pass")), (0, outcome("c1", "wrong_result")), (0, outcome("c2", "pass"))]
    with database.transaction() as session:
        outcomes.record_repeats(session, campaign_id, Side.HEAD, runs)
        outcomes.record_repeats(session, campaign_id, Side.BASE, [(0, outcome("c0", "crash", BASE))])
    with database.reading() as session:
        assert outcomes.noise(session, campaign_id, HEAD) == (1, 2)
        assert outcomes.noise(session, campaign_id, BASE) == (0, 0)


def test_what_is_forgotten_is_to_be_run_again(database: Database) -> None:
    campaign_id = campaign(database)
    record(database, *(outcome(case, "hang") for case in CASES), outcome("c0", "pass", BASE))
    with database.transaction() as session:
        for side in Side:
            outcomes.record_repeats(session, campaign_id, side, [(0, outcome("c0", "pass"))])
        outcomes.delete_outcomes(session, campaign_id, HEAD, ["c0"])
    with database.reading() as session:
        assert outcomes.pending(session, campaign_id, HEAD, limit=9) == ["c0"]
        assert outcomes.get(session, "c0", BASE) is not None
        assert outcomes.repeats(session, campaign_id, Side.HEAD, "c0") == []
        assert len(outcomes.repeats(session, campaign_id, Side.BASE, "c0")) == 1
