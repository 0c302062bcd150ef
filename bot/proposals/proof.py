"""The proof of a proposed test: it fails on the build with the bug and passes on the newest one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bot.errors import RefusalError
from bot.proposals.proposal import Proposal
from bot.proposals.tree import Tree
from bot.runners.repository_test import RunResult

#: Runs on each build; syzbot, too, asks for three before it calls something reproducible.
RUNS = 3
#: Slowest test that a suite is asked to take, in seconds.
MAX_SECONDS = 10.0
#: Characters of a failing run's output in messages.
_SHOWN_OUTPUT = 500


#: Runs the arguments of Python in a folder with these files: (interpreter, files, arguments, timeout in s).
RunTest = Callable[[str, dict[str, str], Sequence[str], float], RunResult]


@dataclass(frozen=True)
class TestBuild:
    """A build to run the test on: its label, its interpreter, its commit of the target."""

    __test__ = False  # not a pytest class

    label: str
    python: str
    commit: str = ""


@dataclass(frozen=True)
class BuildResult:
    """Runs of the test on one build."""

    label: str
    commit: str
    runs: int
    passed: int


@dataclass(frozen=True)
class Proof:
    """What was run before a test was proposed.

    bad      on the build with the bug; None if the bug is open and the test is expected to fail
    good     on the newest build
    seconds  of the slowest run that passed
    """

    bad: BuildResult | None
    good: BuildResult
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The proof as JSON."""
        return asdict(self)


def proof_files(proposal: Proposal, tree: Tree, companions: Sequence[str]) -> dict[str, str]:
    """The files of a run, by path: the one with the test, and the companions that the tree has."""
    files = {path: text for path in companions if (text := tree.read(path)) is not None}
    return files | {proposal.path: proposal.after}


def prove(
    proposal: Proposal,
    tree: Tree,
    companions: Sequence[str],
    bad: TestBuild | None,
    good: TestBuild,
    run: RunTest,
    timeout_s: float,
) -> Proof:
    """Runs the test on both builds, each time in a fresh process.

    companions  other files of the tree that the test needs
    Raises RefusalError if the test does not show the bug, does not pass, or is slow.
    """
    files = proof_files(proposal, tree, companions)

    def results(build: TestBuild) -> list[RunResult]:
        return [run(build.python, files, proposal.command, timeout_s) for _ in range(RUNS)]

    after = results(good)
    _require_ran(after, good)
    if not all(one.passed for one in after):
        raise RefusalError(_failed(proposal, good, after))
    slowest = max(one.seconds for one in after)
    if slowest > MAX_SECONDS:
        raise RefusalError(
            f"the test takes {slowest:.0f} s on {good.label}; at most {MAX_SECONDS:g} s are proposed"
        )
    before = _run_bad(bad, results)
    return Proof(before, BuildResult(good.label, good.commit, RUNS, RUNS), slowest)


def _run_bad(bad: TestBuild | None, results: Callable[[TestBuild], list[RunResult]]) -> BuildResult | None:
    if bad is None:
        return None
    before = results(bad)
    _require_ran(before, bad)
    passed = sum(one.passed for one in before)
    if passed == RUNS:
        raise RefusalError(
            f"the test passes on {bad.label}, where the bug was found: it does not show the bug. "
            "Reduce the bug again, or write the test by hand from the reproducer"
        )
    return BuildResult(bad.label, bad.commit, RUNS, passed)


def _require_ran(runs: Sequence[RunResult], build: TestBuild) -> None:
    for one in runs:
        if not one.ran:
            raise RefusalError(
                f"the test does not run on {build.label}: {one.output[-_SHOWN_OUTPUT:].strip()}. "
                "If a package is missing, name it in toolchain.extra"
            )


def _failed(proposal: Proposal, good: TestBuild, after: Sequence[RunResult]) -> str:
    passed = sum(one.passed for one in after)
    output = next(one.output for one in after if not one.passed).strip()
    return (
        f"{proposal.name} passes in {passed} of {RUNS} runs on {good.label}, the newest build: the bug is "
        "not fixed there, or the suite's reference cannot run the program; this suite takes no tests that "
        "are expected to fail. The output ends in: "
        f"{output[-_SHOWN_OUTPUT:]}"
    )
