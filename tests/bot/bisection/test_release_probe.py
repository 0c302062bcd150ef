"""What is asked of each release, with releases that are made up and runs that are not run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from bot.bisection.journal import Journal
from bot.bisection.release_probe import BisectionQuery, ReleaseProbe
from bot.bisection.releases import Range
from bot.bisection.report import format_lines, result_to_json
from bot.bisection.search import ResultKind, bisect
from bot.errors import ProvisionError, RunnerError, ToolchainError
from bot.runners.protocol import OnEvent
from bot.toolchains import ReadyToolchain, ToolchainSpec
from bot.toolchains.installer import IndexUnreachableError
from bot.toolchains.registry import OnProgress
from fuzzing.cases import TestCase, TorchCall
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from tests.bot.cli.command_helpers import GOOD as CASE

PASS, WRONG, NAN = "pass", "wrong", "nan"
RAISES, REWORDS, REFUSES = "raises", "rewords", "refuses"
BROKEN, REWORDED = "the adder is broken", "Adder: broken operands of Add"


def outcome(fate: str, shard: Shard) -> Outcome:
    verdict, summary, evidence = {
        PASS: (Verdict.PASS, "pass", Evidence()),
        WRONG: (Verdict.WRONG_RESULT, "z is 1", _mismatch("1.0")),
        NAN: (Verdict.WRONG_RESULT, "z is nan", _mismatch("nan")),
        RAISES: (Verdict.CRASH, "RuntimeError: no", Evidence(error="RuntimeError", message=BROKEN)),
        REWORDS: (Verdict.CRASH, "AddError: no", Evidence(error="AddError", message=REWORDED)),
        REFUSES: (Verdict.UNSUPPORTED, "no Add", Evidence()),
    }[fate]
    return Outcome(
        shard.cases[0],
        shard.backend,
        shard.toolchain,
        shard.device,
        verdict,
        Phase.RUN,
        summary,
        evidence=evidence,
    )


def _mismatch(got: str) -> Evidence:
    return Evidence(mismatches=(Mismatch("z", "value", "1 of 3 elements", got=got, want="2.0"),))


class World:
    """Releases by what they do: a fate for each run in turn, the last one for ever; or an error."""

    def __init__(self, folder: Path, does: Mapping[str, Sequence[str] | Exception]) -> None:
        self.folder, self.does = folder, does
        self.made: list[str] = []
        self.ran: dict[str, int] = {}
        self.said: list[str] = []
        self.journal = folder / "bisections"

    def make(self, spec: ToolchainSpec, _data_dir: Path, progress: OnProgress) -> ReadyToolchain:
        release = spec.label.split()[1]
        fate = self.does[release]
        if isinstance(fate, ProvisionError):
            raise fate
        if release not in self.made:
            progress("installing")
            self.made.append(release)
        progress("there")
        return ReadyToolchain(spec, spec.digest, f"/toolchains/{release}/bin/python", {}, ())

    def run(self, shard: Shard, on_event: OnEvent, _stop: threading.Event) -> None:
        assert shard.fresh, "evidence is of fresh processes"
        release = shard.python.split("/")[2]
        fate = self.does[release]
        if isinstance(fate, Exception):
            raise fate
        for repeat in range(shard.repeats):
            at = self.ran.get(release, 0)
            self.ran[release] = at + 1
            result_to_json = outcome(fate[min(at, len(fate) - 1)], shard).to_json()
            on_event({"event": "outcome", "repeat": repeat, "outcome": result_to_json})

    def release_probe(
        self, query: BisectionQuery, out_of_time: Callable[[], bool] = lambda: False
    ) -> ReleaseProbe:
        journal = Journal(self.journal, query.identity)
        releases = list(self.does)
        return ReleaseProbe(
            query,
            releases,
            self.folder,
            journal,
            self,
            self.said.append,
            make=self.make,
            out_of_time=out_of_time,
        )


def query(*, fixed_by: bool = False, any_failure: bool = False, case: TestCase = CASE) -> BisectionQuery:
    return BisectionQuery(
        Path("corpus"), case, "openvino", "openvino", "CPU", fixed_by=fixed_by, any_failure=any_failure
    )


def test_each_release_is_made_once_and_run_in_fresh_processes(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": [PASS], "1.2": [WRONG], "1.3": [WRONG]})
    release_probe = world.release_probe(query())
    answer = bisect(4, release_probe)
    assert (answer.kind, answer.clean, answer.failing) == (ResultKind.FOUND, 1, 2)
    assert world.ran == {"1.0": 2, "1.1": 10, "1.2": 2, "1.3": 2}
    assert (release_probe.cost.installs, release_probe.cost.runs, release_probe.cost.replayed) == (4, 16, 0)


def test_a_second_bisection_takes_the_runs_of_the_first(tmp_path: Path) -> None:
    does = {"1.0": [PASS], "1.1": [PASS], "1.2": [WRONG], "1.3": [WRONG]}
    first = bisect(4, World(tmp_path, does).release_probe(query()))
    world = World(tmp_path, does)
    release_probe = world.release_probe(query())
    assert bisect(4, release_probe) == first
    assert (world.made, world.ran) == ([], {})
    assert (release_probe.cost.installs, release_probe.cost.runs, release_probe.cost.replayed) == (0, 0, 16)


def test_another_failure_is_told_and_not_taken_for_the_bug(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": [RAISES], "1.2": [NAN], "1.3": [WRONG]})
    answer = bisect(4, world.release_probe(query()))
    assert (answer.kind, answer.clean, answer.failing, answer.between) == (ResultKind.RANGE, 0, 3, (1, 2))
    again = bisect(4, world.release_probe(query(any_failure=True)))
    assert (again.kind, again.clean, again.failing) == (ResultKind.FOUND, 0, 1)


def test_the_failure_that_is_followed_is_the_most_frequent_of_the_first_release(tmp_path: Path) -> None:
    mixed = [WRONG, RAISES, *[WRONG] * 30]
    world = World(tmp_path, {"1.0": [PASS], "1.1": [WRONG], "1.2": mixed})
    release_probe = world.release_probe(query())
    assert bisect(3, release_probe).failing == 1
    assert release_probe.wanted is not None
    assert release_probe.wanted["complaint"] == "wrong values"
    assert world.ran == {"1.0": 10, "1.1": 10, "1.2": 20}, "runs that disagree make the others cost more"


def test_a_refusal_is_clean_where_it_began_and_no_mending_where_it_ended(tmp_path: Path) -> None:
    began = World(tmp_path, {"1.0": [REFUSES], "1.1": [WRONG]})
    assert bisect(2, began.release_probe(query())).kind is ResultKind.FOUND
    ended = World(tmp_path / "b", {"1.2": [PASS], "1.1": [REFUSES], "1.0": [WRONG]})
    answer = bisect(3, ended.release_probe(query(fixed_by=True)))
    assert (answer.kind, answer.between) == (ResultKind.RANGE, (1,))


@pytest.mark.parametrize(
    "gone", [ProvisionError("no wheel.\nTo fix: pin another"), ToolchainError("it does not start")]
)
def test_a_release_that_cannot_be_had_is_skipped_at_once(tmp_path: Path, gone: Exception) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": gone, "1.2": [WRONG]})
    release_probe = world.release_probe(query())
    answer = bisect(3, release_probe)
    assert (answer.kind, answer.between) == (ResultKind.RANGE, (1,))
    assert release_probe.probed[1].failure in ("no wheel.", "it does not start")


@pytest.mark.parametrize("failing", [RunnerError("the shard was killed"), IndexUnreachableError("offline")])
def test_a_machine_that_fails_says_nothing_of_a_release(tmp_path: Path, failing: Exception) -> None:
    world = World(tmp_path, {"1.0": failing, "1.1": [WRONG]})
    release_probe = world.release_probe(query())
    assert bisect(2, release_probe).kind is ResultKind.ERROR
    assert release_probe.probed[0].failure == str(failing)
    assert sum(str(failing) in line for line in world.said) == 3, "it was tried again"


def test_toolchains_hold_what_a_target_would_get() -> None:
    old = query().spec("2023.1.0")
    assert old.requirements == ("openvino==2023.1.0", "numpy<2")
    assert query().spec("2026.0.0").requirements == ("openvino==2026.0.0",)
    call = TestCase(TorchCall("torch.relu", ()), (), CASE.provenance)
    beside = query(case=call).spec("2026.0.0").requirements[1:]
    assert all(pin.startswith("torch==") and "+" not in pin for pin in beside)


def test_the_journal_forgets_only_what_was_half_written(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": [WRONG]})
    bisect(2, world.release_probe(query()))
    [file] = world.journal.glob("*.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    release_probe = world.release_probe(query())
    assert bisect(2, release_probe).kind is ResultKind.FOUND
    assert (release_probe.cost.runs, release_probe.cost.replayed) == (1, 11)
    assert file.read_bytes().count(b"\n") == whole.count(b"\n")


def test_a_case_has_a_journal_for_each_way_to_run_it() -> None:
    other = BisectionQuery(Path("corpus"), CASE, "openvino", "openvino", "CPU", options={"precision": "f16"})
    assert other.identity != query().identity
    assert query(fixed_by=True).identity == query().identity, "the runs are the same"


SINCE = """\
began to fail after openvino 1.1, in openvino 1.4 at the latest
  could not be judged: 1.2, 1.3
  confidence 99.9 %, at a rate of failure of 75%
  tried 5 of 5 releases: 4 installs, 16 runs, 3.0 s

  ✓  clean    1.0  unsupported ×2
  ✓  clean    1.1  pass ×10
  –  skipped  1.2  crash ×2 (something else)  RuntimeError: no
  –  skipped  1.3                             no wheel
  ✗  fails    1.4  wrong_result ×2            z is 1"""

FIXED = """\
stopped failing in openvino 1.2; openvino 1.1 still fails
  confidence 99.9 %, at a rate of failure of 83%
  tried 3 of 3 releases: 3 installs, 14 runs, 3.0 s

  ✗  fails  1.0  wrong_result ×2  z is 1
  ✗  fails  1.1  wrong_result ×2  z is 1
  ✓  clean  1.2  pass ×10"""


def shown(world: World, requested: BisectionQuery) -> list[str]:
    releases = list(world.does)
    release_probe = world.release_probe(requested)
    answer = bisect(len(releases), release_probe)
    between = Range("openvino", min(releases), max(releases))
    return format_lines(result_to_json(requested, between, releases, answer, release_probe, 3.0))


def test_a_release_that_refused_the_case_is_not_said_to_have_passed_it(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [REFUSES], "1.1": [WRONG]})
    assert shown(world, query())[0] == "began to fail in openvino 1.1; openvino 1.0 refuses it"


def test_what_people_read(tmp_path: Path) -> None:
    since: dict[str, Sequence[str] | Exception] = {
        "1.0": [REFUSES],
        "1.1": [PASS],
        "1.2": [RAISES],
        "1.3": ProvisionError("no wheel"),
        "1.4": [WRONG],
    }
    assert "\n".join(shown(World(tmp_path / "a", since), query())) == SINCE
    fixed = {"1.2": [PASS], "1.1": [WRONG], "1.0": [WRONG]}
    assert "\n".join(shown(World(tmp_path / "b", fixed), query(fixed_by=True))) == FIXED


@pytest.mark.parametrize(
    ("does", "fixed_by", "said"),
    [
        ({"1.0": [WRONG], "1.1": [WRONG]}, False, "openvino 1.0 fails already: no older release in"),
        ({"1.0": [PASS], "1.1": [PASS]}, False, "openvino 1.1 does not fail: no change"),
        (
            {"1.1": [WRONG], "1.0": [WRONG]},
            True,
            "openvino 1.1 still fails: no release in openvino:1.0..1.1 fixes it",
        ),
        ({"1.1": [PASS], "1.0": [PASS]}, True, "openvino 1.0 does not fail: no change"),
        ({"1.0": [PASS], "1.1": [WRONG, *[PASS] * 19]}, False, "it fails too rarely to follow"),
        ({"1.0": [RAISES], "1.1": RunnerError("broken")}, False, "no answer: infrastructure failed at 1.1"),
        ({"1.0": ProvisionError("gone")}, False, "no answer: no release could be judged"),
    ],
)
def test_the_other_answers_in_words(
    tmp_path: Path, does: dict[str, list[str] | Exception], fixed_by: bool, said: str
) -> None:
    assert said in shown(World(tmp_path, does), query(fixed_by=fixed_by))[0]


def test_what_there_is_no_time_for_is_not_tried_and_said(tmp_path: Path) -> None:
    world = World(tmp_path, {f"1.{minor}": [PASS] if minor < 3 else [WRONG] for minor in range(6)})
    release_probe = world.release_probe(query(), out_of_time=lambda: len(world.made) > 1)
    answer = bisect(6, release_probe)
    assert (answer.kind, answer.clean, answer.failing) == (ResultKind.RANGE, 0, 5)
    assert world.ran == {"1.0": 10, "1.5": 2}, "what carries the claim is run in full all the same"
    said = result_to_json(
        query(), Range.parse("openvino:1.0..1.5"), list(world.does), answer, release_probe, 1.0
    )
    assert said["untried"] == ["1.1", "1.2", "1.3", "1.4"]
    assert [row["release"] for row in said["probed"]] == ["1.0", "1.5"]
    assert format_lines(said)[0] == "began to fail after openvino 1.0, in openvino 1.5 at the latest"
    assert "  not tried within the time limit: 1.1, 1.2, 1.3, 1.4" in format_lines(said)


def test_without_time_for_the_oldest_release_nothing_is_said_of_it(tmp_path: Path) -> None:
    world = World(tmp_path, {"1.0": [PASS], "1.1": [WRONG], "1.2": [WRONG]})
    release_probe = world.release_probe(query(), out_of_time=lambda: bool(world.made))
    said = result_to_json(
        query(),
        Range.parse("openvino:1.0..1.5"),
        list(world.does),
        bisect(3, release_probe),
        release_probe,
        1.0,
    )
    assert said["kind"] == ResultKind.HORIZON.value
    assert format_lines(said)[0] == (
        "openvino 1.2 fails already: the time limit was reached before a release that does not"
    )
