"""Plans: what is collected is ranked, and written down with what it was made of."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.campaigns.plan import catalog, planner
from bot.campaigns.plan.collection import FIRST_CASES_S, SHARE
from bot.campaigns.plan.planner import COLLECTING, RANKING_TIMEOUT_S
from bot.campaigns.plan.ranking import CaseOrder, find_suites, merge_order
from bot.campaigns.plan.sample import Sample
from bot.campaigns.steps import running
from bot.errors import InfrastructureError, ProvisionError, RunnerError
from bot.runners.protocol import OnEvent
from bot.store import campaigns
from tests.bot.campaigns import fakes
from tests.bot.campaigns.conftest import World
from tests.bot.campaigns.fakes import IDS, NAMES, TESTS, PlainConfig, Tools

IN_ORDER = list(IDS.values())
ID = st.integers(0, 40).map(lambda number: f"{number:02x}" + 62 * "0")


def planned(world: World, campaign_id: int) -> list[str]:
    with world.database.reading() as session:
        return list(campaigns.planned_cases(session, campaign_id))


def configure(world: World, head: str = "2" * 40, **fields: Any) -> None:
    text = fakes.to_bytes(PlainConfig(**fields))
    world.repositories.files[head] = {fakes.CONFIG: text, fakes.PIN: b"standin==2"}


def history_file(args: Sequence[str]) -> list[dict[str, Any]]:
    text = Path(args[list(args).index("--history") + 1]).read_text()
    return [json.loads(line) for line in text.splitlines()]


class Requested(Tools):
    """Keeps the files that a ranking is given."""

    def __init__(self) -> None:
        super().__init__()
        self.change: dict[str, Any] = {}
        self.history: list[dict[str, Any]] = []

    def rank(self, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        if "--change" in args:
            self.change = json.loads(Path(args[list(args).index("--change") + 1]).read_text())
        if "--history" in args:
            self.history = history_file(args)
        super().rank(args, on_event, stop)


def test_the_plan_is_in_the_order_of_the_ranking(world: World) -> None:
    world.tools.order = lambda found: found[::-1]
    campaign_id = world.push()
    world.run()
    assert planned(world, campaign_id) == IN_ORDER[::-1]
    assert list(world.runner.shards[0].cases) == IN_ORDER[::-1]


@given(rank_cases=st.lists(ID), own=st.lists(ID), known=st.lists(ID))
def test_any_ranking_gives_each_case_once(rank_cases: list[str], own: list[str], known: list[str]) -> None:
    """Whatever the ranking leaves out, invents or repeats."""

    class Given:
        def cases(self) -> Iterator[str]:
            return iter(own)

    found = list(merge_order(rank_cases, [Given()], known))  # type: ignore[list-item]
    assert sorted(found) == sorted(set(own) - set(known))
    first = [case for case in dict.fromkeys(rank_cases) if case in set(found)]
    assert found[: len(first)] == first
    rest = [case for case in dict.fromkeys(own) if case in set(found) - set(first)]
    assert found[len(first) :] == rest


@given(st.lists(ID))
def test_an_order_is_kept_in_a_file(ids: list[str]) -> None:
    with CaseOrder() as order:
        for case_id in ids:
            order.add({"event": "ranked", "id": case_id, "why": {}})
        assert not order.ended
        order.add({"event": "end"})
        order.close()
        assert (list(order.ids()), order.ended) == (ids, True)
        order.clear()
        assert list(order.ids()) == []


def fails(*events: dict[str, Any], error: Exception | None = None) -> Any:
    """Tools whose ranking sends these events, then raises."""

    class Failing(Tools):
        def rank(self, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
            for event in events:
                on_event(event)
            if error is not None:
                raise error

    return Failing()


LAST = {"event": "ranked", "id": IN_ORDER[-1]}
FAILURES = {
    "refused": (
        fails(error=RunnerError("ended with status 2; its log ends:\nno such strategy")),
        "no such strategy",
    ),
    "half way": (fails(LAST, error=RunnerError("killed by SIGKILL")), "killed by SIGKILL"),
    "without an end": (fails(LAST), "the ranking ended without an end event; see its log"),
    "nonsense": (fails({"event": "ranked"}, {"event": "end"}), "KeyError"),
    "a bug": (fails(error=ZeroDivisionError("by zero")), "ZeroDivisionError"),
}


@pytest.mark.parametrize(("tools", "reported"), FAILURES.values(), ids=FAILURES.keys())
def test_a_ranking_that_fails_costs_the_order_alone(
    tools: Tools, reported: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.use(run_tool=tools)
    campaign_id = world.push()
    world.run()
    assert world.campaign(campaign_id).state == "done"
    assert planned(world, campaign_id) == IN_ORDER, "not even half of the ranking is used"
    [summary] = world.reports.published
    assert summary.ranking is not None
    assert (summary.ranking.strategy, summary.ranking.failed) == ("", reported)
    out = capsys.readouterr().out
    assert "internal_error" in out
    assert ("Traceback" in out) == reported.endswith("Error")


def test_a_ranking_that_takes_too_long_is_stopped(world: World) -> None:
    class Slow(Tools):
        def rank(self, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
            world.clock.advance(RANKING_TIMEOUT_S + 1)
            assert stop.wait(600)

    world.use(run_tool=Slow())
    campaign_id = world.push()
    world.run()
    assert planned(world, campaign_id) == IN_ORDER
    assert "did not end within 120 s" in world.campaign(campaign_id).plan["ranking"]["failed"]


def test_the_strategy_by_default(world: World) -> None:
    """What is known decides: a change or a history, else nothing but the cases."""
    world.push(base="")
    world.run()
    world.push(head="2" + "b" * 39, base="1" * 40)
    world.run()
    world.push(head="2" + "c" * 39, base="")
    world.run()
    assert [asked["--strategy"] for asked in world.tools.asked] == ["opera", "change", "change"]
    assert ["--change" in asked for asked in world.tools.asked] == [False, True, False]
    assert ["--history" in asked for asked in world.tools.asked] == [False, True, True]


def test_what_the_change_touches_is_kept_with_the_ranking(world: World) -> None:
    reported = {
        "operator": "Add",
        "weight": 0.8,
        "why": "add.cc, line 3",
        "places": [{"path": "add.cc", "line": 3}],
    }
    world.tools.touched = [reported]
    campaign_id = world.push()
    world.run()
    ranking = planner.read_ranking(world.campaign(campaign_id).plan)
    assert ranking is not None
    assert ranking.touched == (reported,)
    assert world.tools.asked[0]["--touched"] == "100"


def test_the_strategy_that_was_asked_for(world: World) -> None:
    configure(world, strategy="random")
    campaign_id = world.push()
    world.run()
    assert world.tools.asked[0]["--strategy"] == "random"
    campaign = world.campaign(campaign_id)
    reported = campaign.plan["ranking"]
    assert (reported["strategy"], reported["asked"], reported["seed"]) == ("random", "random", campaign.seed)
    assert world.tools.asked[0]["--seed"] == str(campaign.seed)


def test_the_change_is_handed_on_and_kept_by_its_digest(world: World) -> None:
    tools = Requested()
    world.use(run_tool=tools)
    first, again = world.push(), world.push(head="2" + "b" * 39)
    world.run()
    assert (tools.change["base"], tools.change["head"]) == ("1" * 40, "2" + "b" * 39)
    assert tools.change["files"][0]["path"] == "op.cc"
    reported = [world.campaign(one).plan.get("ranking", {}).get("change") for one in (first, again)]
    assert reported[0] is None, "superseded before it was planned"
    assert reported[1] is not None
    assert (reported[1]["files"], reported[1]["truncated"], len(reported[1]["digest"])) == (1, False, 64)


def test_without_the_change_the_campaign_goes_on(world: World) -> None:
    world.repositories.problem = InfrastructureError("the network is down")
    campaign_id = world.push()
    world.run()
    assert world.campaign(campaign_id).state == "done"
    assert world.campaign(campaign_id).plan["ranking"]["change"] is None
    assert "--change" not in world.tools.asked[0]


def test_what_earlier_campaigns_left_is_handed_on(world: World) -> None:
    tools = Requested()
    world.use(run_tool=tools)
    world.push()
    world.run()
    assert tools.history == []
    world.push(head="2" + "b" * 39, base="1" + "b" * 39)
    world.push(target="octo/another", head="2" + "c" * 39, base="")
    world.run()
    assert tools.history != []
    reported = {NAMES[line["id"]]: line for line in tools.history}
    assert reported.keys() == TESTS.keys()
    assert reported["Add_regressed"].pop("last_finding_days") > 0
    assert reported["Add_regressed"] == {
        "id": IDS["Add_regressed"],
        "operator": "Add",
        "runs": 2,
        "findings": 1,
        "seconds": 0.25,
    }
    assert reported["Div_already_broken"]["findings"] == 2
    assert (reported["Abs_fine"]["findings"], reported["Abs_fine"]["last_finding_days"]) == (0, None)
    # The other target waited longer for its turn, and has nothing to hand on.
    assert ["--history" in asked for asked in tools.asked] == [False, False, True]


def test_the_plan_says_what_it_was_made_of(world: World) -> None:
    campaign_id = world.push()
    world.run()
    plan = world.campaign(campaign_id).plan
    assert plan["sources"] == [
        {
            "source": "standin-tests",
            "library": "standin 1.0",
            "cases": len(IDS),
            "skipped": {"no values": 2},
            "parts": 1,
            "whole": 1,
            "begun": 0,
            "failed": "",
        }
    ]
    [summary] = world.reports.published
    assert [account.to_json() for account in summary.sources] == plan["sources"]
    assert summary.ranking is not None
    assert summary.ranking.to_json() == plan["ranking"]


def test_the_same_campaign_is_planned_alike(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other")
    for one in (world, other):
        one.tools.order = lambda found: found[3:] + found[:3]
    rows = []
    for one in (world, other):
        campaign_id = one.push()
        one.run()
        rows.append((planned(one, campaign_id), one.campaign(campaign_id).plan))
    other.database.close()
    assert rows[0] == rows[1]


class InParts(Tools):
    """A source of four parts, each of which costs `seconds` of the world's clock.

    of_change  the cases of the operators that any change names, which cost nothing
    changes    the changes for which it was asked
    """

    def __init__(self, world: World, seconds: float, of_change: Sequence[str] = ()) -> None:
        super().__init__()
        self._world, self._seconds, self._of_change = world, seconds, of_change
        self.parts: list[str] = []
        self.changes: list[dict[str, Any]] = []

    def migrate(self, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        if "--change" in args:
            self.changes.append(json.loads(Path(args[args.index("--change") + 1]).read_text()))
            self._give(self._of_change, on_event)
            return
        for part in args[4::2]:
            if stop.is_set():
                return
            self.parts.append(part)
            self._world.clock.advance(self._seconds)
            number, of = map(int, part.split("/"))
            self._give(IN_ORDER[number - 1 :: of], on_event)

    @staticmethod
    def _give(ids: Sequence[str], on_event: OnEvent) -> None:
        for case_id in ids:
            on_event({"event": "case", "id": case_id, "operator": NAMES[case_id].split("_")[0]})
        on_event({"event": "end", "library": "standin", "version": "1", "skipped": {"odd": 1}})


@pytest.fixture
def four_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "source_parts", lambda _: 4)


@pytest.mark.usefixtures("four_parts")
def test_cases_run_before_everything_is_collected(world: World) -> None:
    """Two parts fit into the first minute; the others are collected once these cases have run."""
    configure(world, budget=600.0)
    tools = InParts(world, FIRST_CASES_S / 2)
    world.settings = fakes.PlainSettings(world.settings.data_dir, workers=1)
    world.use(run_tool=tools)
    campaign_id = world.push()
    assert world.engine.run_once()
    first = IN_ORDER[0::4] + IN_ORDER[1::4]
    assert tools.parts == ["1/4", "2/4"]
    assert planned(world, campaign_id) == first
    assert world.campaign(campaign_id).plan["sources"][0]["whole"] == 2
    world.run()
    assert tools.parts == ["1/4", "2/4", "3/4", "4/4"]
    assert planned(world, campaign_id) == first + IN_ORDER[2::4] + IN_ORDER[3::4]
    sizes = [len(shard.cases) for shard in world.runner.shards if not shard.fresh]
    assert sizes[:2] == [len(first), len(IN_ORDER) - len(first)]
    campaign = world.campaign(campaign_id)
    assert campaign.plan["sources"][0]["whole"] == 4
    assert campaign.clock[COLLECTING] == 2 * FIRST_CASES_S
    assert world.reports.published[0].planned == len(IDS)


@pytest.mark.usefixtures("four_parts")
def test_what_a_change_names_is_collected_first(world: World) -> None:
    """A part holds a sixteenth of a library's operators: the one that was changed may be in the last."""
    configure(world, budget=300.0)
    last = IN_ORDER[3::4]
    tools = InParts(world, FIRST_CASES_S / 2, of_change=last[:2])
    world.settings = fakes.PlainSettings(world.settings.data_dir, workers=1)
    world.use(run_tool=tools)
    campaign_id = world.push()
    assert world.engine.run_once()
    assert (len(tools.changes), tools.parts) == (1, ["1/4", "2/4"])
    assert planned(world, campaign_id) == IN_ORDER[0::4] + IN_ORDER[1::4] + last[:2]
    [source] = world.campaign(campaign_id).plan["sources"]
    assert (source["whole"], source["parts"], source["cases"]) == (2, 4, len(planned(world, campaign_id)))
    assert source["skipped"] == {"odd": 2}, "a test that a part skips counts once"


@pytest.mark.usefixtures("four_parts")
def test_a_source_that_is_complete_has_what_a_change_names(world: World) -> None:
    configure(world, budget=3000.0)
    tools = InParts(world, 1.0, of_change=IN_ORDER[:1])
    world.settings = fakes.PlainSettings(world.settings.data_dir, workers=1)
    world.use(run_tool=tools)
    campaign_id = world.push()
    world.run()
    assert planned(world, campaign_id) == IN_ORDER[0::4] + IN_ORDER[1::4] + IN_ORDER[2::4] + IN_ORDER[3::4]
    assert world.campaign(campaign_id).plan["sources"][0]["cases"] == len(IDS)
    configure(world, "3" * 40, budget=3000.0)
    world.push(head="3" * 40)
    world.run()
    assert len(tools.changes) == 1


@pytest.mark.usefixtures("four_parts")
def test_a_sample_is_drawn_once_everything_is_collected(world: World) -> None:
    configure(world, budget=600.0)
    tools = InParts(world, FIRST_CASES_S / 2)
    world.settings = fakes.PlainSettings(world.settings.data_dir, workers=1)
    world.use(run_tool=tools, sample=Sample(3, seed=7))
    campaign_id = world.push()
    assert world.engine.run_once()
    assert tools.parts == ["1/4", "2/4", "3/4", "4/4"]
    assert len(planned(world, campaign_id)) == 3
    world.run()
    assert len(planned(world, campaign_id)) == 3
    [source] = world.campaign(campaign_id).plan["sources"]
    assert (source["whole"], source["cases"], source["drawn"]) == (4, len(IDS), 3)


@pytest.mark.usefixtures("four_parts")
def test_collecting_takes_its_share_and_goes_on_next_time(world: World) -> None:
    configure(world, budget=300.0)
    tools = InParts(world, 40.0)
    world.settings = fakes.PlainSettings(world.settings.data_dir, workers=1)
    world.use(run_tool=tools)
    campaign_id = world.push()
    world.run()
    assert tools.parts == ["1/4", "2/4"], "the limit is 60 s, and what was begun before is finished"
    campaign = world.campaign(campaign_id)
    assert campaign.state == "done"
    assert campaign.plan["sources"][0]["whole"] == 2
    configure(world, "2" + "b" * 39, budget=300.0)
    world.push(head="2" + "b" * 39)
    world.run()
    assert tools.parts == ["1/4", "2/4", "3/4", "4/4"]
    assert world.reports.published[-1].planned == len(IDS)


@pytest.mark.usefixtures("four_parts")
def test_collecting_is_part_of_the_budget(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "FIRST_CONFIRMED_AFTER_S", 1000.0)  # one shard runs all
    configure(world, budget=100.0)
    world.settings = fakes.PlainSettings(world.settings.data_dir, workers=1)
    world.use(run_tool=InParts(world, 15.0))
    world.push()
    world.run()
    assert world.runner.shards[0].budget_s == 100.0 - SHARE * 100.0


def test_a_default_source_without_its_library_is_done_without(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "missing_packages", lambda source: ("keras",) if source == "lacking" else ())
    monkeypatch.setattr(planner, "_uses_default_sources", lambda _: True)
    configure(world, sources=("lacking", "standin-tests"))
    campaign_id = world.push()
    world.run()
    reported = {one["source"]: one for one in world.campaign(campaign_id).plan["sources"]}
    assert reported["lacking"]["failed"] == (
        "lacking needs keras, which is not installed beside Assay; install with: pip install keras"
    )
    assert reported["standin-tests"]["cases"] == len(IDS)


def test_a_source_that_was_named_must_have_its_library(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        planner, "missing_packages", lambda source: ("keras", "pytest") if source == "lacking" else ()
    )
    monkeypatch.setattr(planner, "_uses_default_sources", lambda _: False)
    configure(world, sources=("lacking", "standin-tests"))
    campaign_id = world.push()
    world.run()
    [error] = world.failures
    assert isinstance(error, ProvisionError)
    assert str(error) == (
        "lacking needs keras and pytest, which are not installed beside Assay; "
        "install with: pip install keras pytest"
    )
    assert world.campaign(campaign_id).state == "failed"
    assert world.tools.calls == [], "nothing is migrated first"


def test_suites_are_those_that_were_counted() -> None:
    assert find_suites("nobody", ["onnx"]) == ()
