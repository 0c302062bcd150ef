"""Collecting sources in parts: by several processes, within a limit, resumed where it stopped."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.campaigns.plan import catalog, collection
from bot.campaigns.plan.case_source import CatalogPart, SourceReport
from bot.campaigns.plan.catalog import SourceCatalog
from bot.campaigns.plan.collection import FAILURES, Collector, limit, missing
from bot.campaigns.plan.planner import sources_without_cases
from bot.errors import InfrastructureError, InternalError, RunnerError, UsageError
from bot.runners.protocol import OnEvent
from tests.bot.campaigns.fakes import IDS, ManualClock

PARTS = 4
ALL = list(IDS.values())


class Migrations:
    """`fuzzing.migrate` of any source: part I of N gives each N-th case; `act` says what else happens.

    calls      the parts, in the order in which they began
    processes  their sources, one item for each process
    begin      what happens before the first case of a process
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.processes: list[str] = []
        self.act: Callable[[str, OnEvent, threading.Event], bool] = lambda *_: True
        self.begin: Callable[[threading.Event], object] = lambda _: None

    def __call__(self, module: str, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        assert (module, args[1]) == ("fuzzing.migrate", "--corpus")
        self.processes.append(args[0])
        assert args[3::2] == ["--part"] * (len(args[3:]) // 2)
        self.begin(stop)
        for text in args[4::2] or ["1/1"]:
            number, of = map(int, text.split("/"))
            if stop.is_set() or not self._migrate(args[0], number, of, on_event, stop):
                return

    def _migrate(self, source: str, number: int, of: int, on_event: OnEvent, stop: threading.Event) -> bool:
        name = source if of == 1 else f"{source} {number}"
        self.calls.append(name)
        for case_id in ALL[number - 1 :: of]:
            on_event(
                {"event": "case", "id": case_id, "test": "t", "operator": "Op", "instance": {"id": case_id}}
            )
        if not self.act(name, on_event, stop):
            return False
        on_event({"event": "end", "library": "lib", "version": "2", "skipped": {"odd": number}})
        return True


class DemoRepository:
    def __init__(self, corpus: Path) -> None:
        self.corpus, self.clock, self.tool = corpus, ManualClock(), Migrations()
        self.notes: list[dict[str, Any]] = []
        self.processes, self.patience = 1, dict[str, float]()

    def collector(self) -> Collector:
        return Collector(self.corpus, self.tool, self.processes, self.clock.monotonic, self.patience)

    def collect(
        self, *sources: str, seconds: float | None = 10.0, stop: threading.Event | None = None
    ) -> list[SourceReport]:
        """One round; the accounts afterwards."""
        self.tool.calls.clear()
        cases = [SourceCatalog(self.corpus, source) for source in sources]
        collector = self.collector()
        collector.collect(missing(cases), seconds, self.notes.append, stop or threading.Event())
        return collector.accounts(cases)

    def stop_expired(self, *names: str) -> None:
        """Makes the time pass over in these migrations, of which nothing comes any more."""

        def act(name: str, _on_event: OnEvent, stop: threading.Event) -> bool:
            if name in names:
                self.clock.advance(10.0)
                assert stop.wait(600)
                return False
            return True

        self.tool.act = act


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoRepository:
    monkeypatch.setattr(catalog, "source_parts", lambda name: 1 if name.startswith("whole") else PARTS)
    return DemoRepository(tmp_path)


def ids(stage: DemoRepository, source: str) -> list[str]:
    return list(SourceCatalog(stage.corpus, source).cases())


def test_a_source_is_migrated_in_parts_once(stage: DemoRepository) -> None:
    [account] = stage.collect("many")
    assert stage.tool.calls == ["many 1", "many 2", "many 3", "many 4"]
    assert account == SourceReport("many", "lib 2", len(ALL), {"odd": 1 + 2 + 3 + 4}, PARTS, PARTS)
    assert ids(stage, "many") == [case for number in range(PARTS) for case in ALL[number::PARTS]]
    assert stage.notes[-1] == {
        "note": f"many, part 4 of 4 migrated: {len(ALL) // 4} cases",
        "done": 4,
        "total": 4,
    }
    stage.collect("many")
    assert stage.tool.calls == []


def test_several_processes_give_what_one_gives(stage: DemoRepository, tmp_path: Path) -> None:
    stage.collect("many", "whole")
    other = DemoRepository(tmp_path / "other")
    other.processes = 3
    other.collect("many", "whole")
    for source in ("many", "whole"):
        assert ids(other, source) == ids(stage, source)
    assert sorted(other.tool.calls) == sorted(stage.tool.calls)


def test_sources_take_turns(stage: DemoRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_PARTS_IN_TURN", 2)
    stage.collect("many", "whole", "more")
    assert stage.tool.calls[:6] == ["many 1", "many 2", "whole", "more 1", "more 2", "many 3"]


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_a_source_alone_starts_each_process_once(stage: DemoRepository, processes: int) -> None:
    stage.processes = processes
    stage.collect("many")
    assert len(stage.tool.processes) == -(-PARTS // -(-PARTS // processes))
    assert sorted(stage.tool.calls) == ["many 1", "many 2", "many 3", "many 4"]


def test_a_catalogue_keeps_what_ranking_and_history_need(stage: DemoRepository) -> None:
    stage.collect("many")
    one = SourceCatalog(stage.corpus, "many")
    assert next(one.lines()) == {"id": ALL[0], "test": "t", "operator": "Op", "instance": {"id": ALL[0]}}
    assert one.operators({ALL[0], "f" * 64}) == {ALL[0]: "Op"}
    words = one.arguments()
    assert words[::2] == ["--catalog"] * PARTS
    assert [Path(word).exists() for word in words[1::2]] == [True] * PARTS


def test_what_the_limit_cuts_off_goes_on_next_time(stage: DemoRepository) -> None:
    stage.stop_expired("many 2")
    [account] = stage.collect("many")
    assert stage.tool.calls == ["many 1", "many 2"], "no part is begun when the time is over"
    assert (account.whole, account.begun, account.missing_parts) == (1, 1, 3)
    assert account.cases == len(ALL[0::4]) + len(ALL[1::4]), "what a part gave before it was cut off counts"
    assert ids(stage, "many") == ALL[0::4] + ALL[1::4]
    assert SourceCatalog(stage.corpus, "many").arguments()[3].endswith(".partial")
    stage.stop_expired()
    [account] = stage.collect("many")
    assert stage.tool.calls == ["many 3", "many 4", "many 2"], "what was cut off comes last"
    assert (account.whole, account.begun) == (PARTS, 0)
    assert not list(stage.corpus.rglob("*.partial"))


def test_a_part_that_was_cut_off_gets_twice_the_time(stage: DemoRepository) -> None:
    """Else what takes longer than the limit would be begun for ever and never done."""
    stage.stop_expired("whole")
    stage.collect("whole", seconds=10)
    allowed: list[bool] = []

    def act(_part_name: str, _on_event: OnEvent, stop: threading.Event) -> bool:
        for _ in range(19):
            stage.clock.advance(1.0)
            allowed.append(not stop.wait(2 * collection._POLL_S if len(allowed) == 18 else 0))
        return True

    stage.tool.act = act
    [account] = stage.collect("whole", seconds=1)
    assert allowed == [True] * 19, "19 s pass within 2 * 10 s"
    assert account.whole == 1


@pytest.mark.parametrize(("patience", "whole"), [(0.0, 0), (15.0, 2)])
def test_an_import_that_outlasts_the_time_still_gives_cases(
    stage: DemoRepository, patience: float, whole: int
) -> None:
    """The library takes 20 of 10 s; from the first case on there are 5 s more, for two parts of 3 s."""
    stage.patience = {"many": patience} if patience else {}

    def begin(stop: threading.Event) -> None:
        stage.clock.advance(20.0)
        assert stop.wait(2 * collection._POLL_S if patience else 600) is not bool(patience)

    def act(*_: object) -> bool:
        stage.clock.advance(3.0)
        return True

    stage.tool.begin, stage.tool.act = begin, act
    [account] = stage.collect("many", seconds=10)
    assert (account.whole, bool(account.cases)) == (whole, whole > 0)


def test_a_quick_source_does_not_end_the_patience_with_a_slow_one(stage: DemoRepository) -> None:
    """The second process imports for 20 of 10 s; the first one's cases were there at once."""
    stage.patience = {"whole": 15.0, "many": 15.0}

    def begin(stop: threading.Event) -> None:
        if stage.tool.processes[-1] == "many":
            stage.clock.advance(20.0)
            assert not stop.wait(2 * collection._POLL_S)

    stage.tool.begin = begin
    quick, slow = stage.collect("whole", "many", seconds=10)
    assert (quick.whole, slow.whole, slow.cases) == (1, PARTS, len(ALL))


def test_patience_ends(stage: DemoRepository) -> None:
    stage.patience = {"many": 15.0}

    def begin(stop: threading.Event) -> None:
        stage.clock.advance(25.0)
        assert stop.wait(600)

    stage.tool.begin = begin
    [account] = stage.collect("many", seconds=10)
    assert account.cases == 0


def test_a_part_cut_off_before_its_first_case_has_not_begun(stage: DemoRepository) -> None:
    sources = [SourceCatalog(stage.corpus, name) for name in ("whole", "whole-too", "whole-new")]
    with_case, without_case, _ = [one.parts()[0].partial for one in sources]
    with_case.parent.mkdir(parents=True)
    with_case.write_text(f'{{"id": "{ALL[0]}"}}\n{{"cut_after": 5}}\n')
    without_case.write_text('{"cut_after": 5}\n')
    assert sources_without_cases(sources) == {"whole-too", "whole-new"}


def test_a_worse_attempt_does_not_forget_what_a_better_one_gave(stage: DemoRepository) -> None:
    stage.stop_expired("whole")
    stage.collect("whole")
    path = SourceCatalog(stage.corpus, "whole").parts()[0].partial
    before = path.read_text().splitlines()

    def nothing(module: str, args: Sequence[str], on_event: OnEvent, stop: threading.Event) -> None:
        stage.clock.advance(100.0)
        assert stop.wait(600)

    stage.tool.calls.clear()
    cases = [SourceCatalog(stage.corpus, "whole")]
    Collector(stage.corpus, nothing, 1, stage.clock.monotonic).collect(
        missing(cases), 1, stage.notes.append, threading.Event()
    )
    *lines, last = path.read_text().splitlines()
    assert lines == before[:-1]
    assert json.loads(last)["cut_after"] == 100.0


def test_a_stop_ends_it_soon_and_leaves_no_litter(stage: DemoRepository) -> None:
    stop = threading.Event()

    def act(name: str, _on_event: OnEvent, part_stop: threading.Event) -> bool:
        stop.set()
        assert part_stop.wait(600)
        return False

    stage.tool.act = act
    [account] = stage.collect("many", seconds=None, stop=stop)
    assert stage.tool.calls == ["many 1"]
    assert (account.whole, account.begun) == (0, 1)
    assert [path.suffix for path in (stage.corpus / "catalogs").iterdir()] == [".partial"]


def test_one_source_may_fail_and_the_others_go_on(stage: DemoRepository) -> None:
    def act(name: str, _on_event: OnEvent, _stop: threading.Event) -> bool:
        if name.startswith("many"):
            raise RunnerError(
                "fuzzing.migrate ended with status 3; its log ends:\nmany needs torch: pip install torch"
            )
        return True

    stage.tool.act = act
    many, whole = stage.collect("many", "whole")
    assert many.failed == "many needs torch: pip install torch"
    assert (many.cases, many.whole) == (0, 0)
    assert (whole.failed, whole.cases) == ("", len(ALL))
    assert len([name for name in stage.tool.calls if name.startswith("many")]) == FAILURES


def test_a_failed_part_costs_that_part(stage: DemoRepository) -> None:
    def act(name: str, _on_event: OnEvent, _stop: threading.Event) -> bool:
        if name == "many 3":
            raise RunnerError("killed by SIGSEGV")
        return True

    stage.tool.act = act
    [account] = stage.collect("many")
    assert (account.whole, account.failed) == (3, "killed by SIGSEGV")
    assert stage.tool.processes == ["many", "many"], "another process goes on with the next part"


def test_where_everything_fails_the_first_failure_is_raised(stage: DemoRepository) -> None:
    stage.tool.act = lambda *_: False
    with pytest.raises(
        InfrastructureError, match="migration of many, part 1 of 4 ended without an end event"
    ):
        stage.collect("many")
    assert not list(stage.corpus.rglob("*.jsonl"))


def test_where_nothing_can_be_written_the_machine_is_to_blame(stage: DemoRepository) -> None:
    (stage.corpus / "catalogs").write_text("no folder")  # root may write anywhere else
    with pytest.raises(InfrastructureError, match=r"cannot write to .* ASSAY_DATA_DIR"):
        stage.collect("a")


def test_a_migration_that_refuses_costs_its_part_and_says_why(stage: DemoRepository) -> None:
    def act(name: str, _on_event: OnEvent, _stop: threading.Event) -> bool:
        if name == "many 2":
            raise UsageError("it needs an interpreter that has the library")
        return True

    stage.tool.act = act
    [account] = stage.collect("many")
    assert (account.whole, account.failed) == (3, "it needs an interpreter that has the library")


def test_a_bug_of_ours_stops_everything(stage: DemoRepository) -> None:
    """It is not swallowed, and costs no further migration."""
    both = threading.Barrier(2, timeout=600)

    def act(name: str, _on_event: OnEvent, stop: threading.Event) -> bool:
        both.wait()
        if name == "many 3":
            raise InternalError("no such part")
        return not stop.wait(600)

    stage.processes, stage.tool.act = 2, act
    with pytest.raises(InternalError, match="no such part"):
        stage.collect("many", seconds=None)
    assert sorted(stage.tool.calls) == ["many 1", "many 3"]


def test_the_limit_is_a_share_of_the_budget_or_a_minute() -> None:
    assert [limit(budget) for budget in (3.0, 300.0, 3600.0)] == [60.0, 60.0, 720.0]


def test_parts_have_catalogues_of_their_own(tmp_path: Path) -> None:
    whole = catalog.catalog_path(tmp_path, "source")
    third = catalog.catalog_path(tmp_path, "source", 3, 16)
    assert third.name == f"{whole.stem}.03-16.jsonl"
    assert CatalogPart("source", 3, 16, third).partial.name == f"{whole.stem}.03-16.partial"
