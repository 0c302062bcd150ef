"""Which commits of a range work over which wheel, and what is said of a change between two wheels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from bot.bisection.commit_plan import Bisect, CommitQuestion, Provision
from bot.bisection.commit_range import CommitQuery, CommitRange, History
from bot.bisection.commit_sources import Sources, list_sources, over_two_wheels
from bot.bisection.overlay_search import OverlayStage
from bot.bisection.release_probe import BisectionQuery
from bot.cli.common.options import validate_configuration
from bot.commit_files import CommitFiles, CommitMessage
from bot.config import RepositoryConfig
from bot.errors import BrokenSourcesError
from bot.toolchains import ToolchainSpec
from bot.toolchains.registry import Folder, OnProgress, link
from tests.bot.bisection.test_release_probe import query

COMMITS = [f"{place:02}" + "0" * 38 for place in range(20)]
BETWEEN = CommitRange(COMMITS[0], COMMITS[-1])
MARKER = "python/tvm/relax/frontend/onnx/onnx_frontend.py"  # as bot/config/layouts/tvm.toml has it


class LinearHistory:
    """A history without merges; each commit changes every folder."""

    target = ""

    def read(self, _target: str, _sha: str, path: str) -> bytes | None:
        return b"" if path == MARKER else None

    def commits(self, _target: str, base: str, head: str, _paths: Sequence[str]) -> list[str]:
        return COMMITS[COMMITS.index(base) + 1 : COMMITS.index(head) + 1]

    def tree(self, _target: str, sha: str, _path: str) -> str:
        return sha

    def parents(self, _sha: str) -> list[str]:
        return ["parent"]

    def message(self, sha: str) -> CommitMessage:
        return CommitMessage(sha, "a", "Change")


@dataclass
class Wheels:
    """What works: wheel and folder → the places of the first and the last commit that work.

    made  the wheel and the commit of each toolchain that was tried
    """

    reach: dict[tuple[str, str], tuple[int, int]]
    made: list[tuple[str, str]] = field(default_factory=list)

    def resolve(self, config: RepositoryConfig, read: Any, _data_dir: Path) -> ToolchainSpec:
        chosen = config.toolchain.wheel
        pairs = [(wheel, folder) for wheel, folder in self.reach if chosen in (None, wheel)]
        return link([self._spec(read, wheel, folder) for wheel, folder in pairs])

    def provision(self, spec: ToolchainSpec, _data_dir: Path, _progress: OnProgress) -> object:
        assert isinstance(spec.commit, CommitFiles)
        wheel = spec.requirements[0].partition("==")[2]
        first, last = self.reach[wheel, spec.overlay[0].path]
        self.made.append((wheel, spec.commit.sha))
        if not first <= COMMITS.index(spec.commit.sha) <= last:
            raise BrokenSourcesError(f"{spec.label}: cannot be imported")
        return None

    def sources(self) -> Sources:
        found = list(self.choices())
        return found[-1] if found[-1].complete else over_two_wheels(found, BETWEEN, lambda _line: None)

    def choices(self) -> Iterator[Sources]:
        return list_sources(
            cast("History", LinearHistory()),
            BETWEEN,
            validate_configuration({"backend": "tvm"}),
            Path("data"),
            lambda _line: None,
            self.resolve,
            cast("Provision", self.provision),
            self.needs,
        )

    def search(self, asked: BisectionQuery, bisect: Bisect) -> dict[str, Any]:
        history = cast("History", LinearHistory())
        stage = OverlayStage(
            history,
            validate_configuration({"backend": "tvm"}),
            Path("data"),
            self.resolve,
            cast("Provision", self.provision),
            self.needs,
        )
        return stage.search(BETWEEN, CommitQuestion(history, asked, bisect, lambda _line: None))

    def needs(self, _spec: ToolchainSpec) -> frozenset[str]:
        return frozenset()

    @staticmethod
    def _spec(read: CommitFiles, wheel: str, folder: str) -> ToolchainSpec:
        laid = (Folder(folder, folder, read.sha),)
        label = f"tvm {wheel} with {folder} of the commit"
        return ToolchainSpec("overlay", "tvm", (f"tvm=={wheel}",), label, overlay=laid, commit=read)


def reached(sources: Sources) -> tuple[int, int, int, int]:
    found = sources.reach(sources.revisions(BETWEEN), lambda _line: None)
    parts = (found.before, found.older, found.between, found.newer)
    assert sum(parts, ()) == tuple(COMMITS)
    before, older, between, newer = map(len, parts)
    return before, older, between, newer


def test_one_wheel_with_which_both_ends_work_is_enough() -> None:
    wheels = Wheels({("2", "all"): (15, 19), ("1", "all"): (0, 12), ("2", "part"): (0, 19)})
    sources = wheels.sources()
    assert (sources.like.label, sources.older) == ("tvm 2 with part of the commit", None)


def test_first_commits_are_laid_over_the_wheel_of_the_good_end() -> None:
    wheels = Wheels({("2", "all"): (15, 19), ("1", "all"): (0, 12)})
    sources = wheels.sources()
    assert reached(sources) == (0, 13, 2, 5)
    assert sources.spec(COMMITS[3], older=True).requirements == ("tvm==1",)
    assert sources.spec(COMMITS[16]).requirements == ("tvm==2",)


def test_the_folders_that_most_commits_work_with() -> None:
    wheels = Wheels({("2", "all"): (17, 19), ("2", "part"): (8, 19), ("1", "part"): (0, 5)})
    assert reached(wheels.sources()) == (0, 6, 2, 12)


def test_a_wheel_of_commits_after_the_good_end() -> None:
    wheels = Wheels({("2", "all"): (17, 19), ("1", "all"): (6, 11)})
    assert reached(wheels.sources()) == (6, 6, 5, 3)


def test_other_folders_are_no_older_wheel() -> None:
    wheels = Wheels({("2", "all"): (17, 19), ("1", "part"): (0, 5)})
    assert reached(wheels.sources()) == (17, 0, 0, 3)


@dataclass
class Change:
    """Answers searches as if one commit had brought a bug; keeps the commits that each was asked about."""

    place: int
    asked: list[list[str]]

    def bisect(self, _query: CommitQuery, _between: CommitRange, shas: Sequence[str]) -> dict[str, Any]:
        self.asked.append(list(shas))
        bad = [COMMITS.index(sha) >= self.place for sha in shas]
        if not any(bad):
            return {"kind": "never", "before": shas[-1], "release": None, "between": []}
        first = bad.index(True)
        if not first:
            return {"kind": "horizon", "before": None, "release": shas[0], "between": []}
        return {"kind": "found", "before": shas[first - 1], "release": shas[first], "between": []}

    @classmethod
    def since(cls, place: int, wheels: Wheels) -> tuple[dict[str, Any], list[list[str]]]:
        """The answer, and the commits that each search was asked about."""
        change = cls(place, [])
        found = wheels.search(query(), change.bisect)
        return found, change.asked


def two_wheels() -> Wheels:
    return Wheels({("2", "all"): (15, 19), ("1", "all"): (0, 12)})


def test_a_change_among_the_last_commits_needs_no_older_wheel() -> None:
    wheels = two_wheels()
    answer, asked = Change.since(17, wheels)
    assert (answer["kind"], answer["release"]) == ("found", COMMITS[17])
    assert asked == [COMMITS[15:]]
    assert answer["over"] == "tvm 2 with all of the commit"
    assert {wheel for wheel, _sha in wheels.made} == {"2"}


def test_folders_that_fewer_commits_work_with_are_searched_first_if_they_are_wider() -> None:
    wheels = Wheels({("2", "all"): (15, 19), ("2", "part"): (8, 19), ("1", "part"): (0, 5)})
    assert Change.since(17, wheels)[1] == [COMMITS[15:]]
    assert Change.since(9, wheels)[1] == [COMMITS[15:], COMMITS[8:]]
    assert Change.since(3, wheels)[1] == [COMMITS[15:], COMMITS[8:], COMMITS[:6] + COMMITS[8:]]


def test_a_case_that_the_last_commit_passes_is_not_searched_over_older_wheels() -> None:
    answer, asked = Change.since(20, two_wheels())
    assert (answer["kind"], asked) == ("never", [COMMITS[15:]])


def test_a_fix_is_looked_for_over_older_wheels_if_the_first_commits_of_the_last_have_it() -> None:
    asked: list[Sequence[str]] = []

    def bisect(_query: CommitQuery, _between: CommitRange, shas: Sequence[str]) -> dict[str, Any]:
        asked.append(shas)
        return {"kind": kind, "before": None, "release": None, "between": []}

    for kind, searches in (("never", 2), ("horizon", 1), ("error", 1), ("unreliable", 2)):
        asked.clear()
        fixed_by = replace(query(), fixed_by=True)
        two_wheels().search(fixed_by, bisect)
        assert len(asked) == searches, kind


def test_searched_commits_are_made_over_the_wheel_of_their_part() -> None:
    seen: list[list[str]] = []

    def bisect(asked: CommitQuery, _between: CommitRange, shas: Sequence[str]) -> dict[str, Any]:
        seen.append([asked.spec(sha).requirements[0] for sha in shas])
        return {"kind": "horizon", "before": None, "release": shas[0], "between": []}

    two_wheels().search(query(), bisect)
    assert seen == [["tvm==2"] * 5, ["tvm==1"] * 13 + ["tvm==2"] * 5]


def test_a_change_over_one_wheel_is_found() -> None:
    answer, asked = Change.since(5, two_wheels())
    assert asked[-1] == COMMITS[:13] + COMMITS[15:]
    assert (answer["kind"], answer["release"]) == ("found", COMMITS[5])
    assert answer["over"] == (
        "tvm 2 with all of the commit; up to 120000000000: tvm 1 with all of the commit"
    )


def test_a_change_between_two_wheels_may_be_of_the_wheels() -> None:
    answer, _asked = Change.since(15, two_wheels())
    assert (answer["kind"], answer["between"]) == ("range", COMMITS[13:15])
    assert answer["across_wheels"]


@dataclass
class Reading(Wheels):
    """Wheels whose missing names are read: `needed` has the places of commits that need one."""

    needed: dict[tuple[str, str], range] = field(default_factory=dict)

    def needs(self, spec: ToolchainSpec) -> frozenset[str]:
        assert isinstance(spec.commit, CommitFiles)
        places = self.needed.get((spec.requirements[0].partition("==")[2], spec.overlay[0].path), range(0))
        return frozenset({"missing"} if COMMITS.index(spec.commit.sha) in places else ())


def places_made(wheels: Wheels) -> list[tuple[str, int]]:
    return [(wheel, COMMITS.index(sha)) for wheel, sha in dict.fromkeys(wheels.made)]


def test_commits_that_need_missing_names_are_not_tried() -> None:
    wheels = Reading({("2", "all"): (15, 19), ("1", "all"): (0, 12)}, needed={("2", "all"): range(15)})
    answer, asked = Change.since(17, wheels)
    assert (answer["kind"], answer["release"]) == ("found", COMMITS[17])
    assert asked == [COMMITS[15:]]
    assert places_made(wheels) == [("2", 19), ("2", 15)]


def test_of_one_wheel_what_most_commits_likely_work_with_comes_first() -> None:
    reach = {("2", "all"): (17, 19), ("2", "part"): (8, 19), ("1", "part"): (0, 5)}
    needed = {("2", "all"): range(17), ("2", "part"): range(8)}
    wheels = Reading(reach, needed=needed)
    assert Change.since(9, wheels)[1] == [COMMITS[8:]]
    assert places_made(wheels) == [("2", 19), ("2", 8)]
    assert Change.since(3, Reading(reach, needed=needed))[1] == [
        COMMITS[8:],
        COMMITS[17:],
        COMMITS[:6] + COMMITS[8:],
    ]


def test_a_wrong_guess_costs_tries_and_no_commit() -> None:
    reach = {("2", "all"): (9, 19), ("1", "all"): (0, 5)}
    for needed in (range(13), range(4), range(19)):
        wheels = Reading(reach, needed={("2", "all"): needed})
        answer, asked = Change.since(11, wheels)
        assert (answer["kind"], answer["release"]) == ("found", COMMITS[11]), needed
        assert asked[-1][0] in (COMMITS[9], COMMITS[0]), needed
        assert reached(Reading(reach, needed={("2", "all"): needed}).sources()) == (0, 6, 3, 11)
