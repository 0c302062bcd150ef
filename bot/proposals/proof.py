"""The proof of a proposed test: it fails on the build with the bug and passes on the newest one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bot.errors import RefusalError
from bot.proposals.proposal import Proposal
from bot.proposals.tree import Tree
from bot.proposals.writer import get_writer
from bot.runners.repository_test import RunResult

#: Runs on each build; syzbot, too, asks for three before it calls something reproducible.
RUNS = 3
#: Slowest test that a suite is asked to take, in seconds, its process included.
MAX_SECONDS = 10.0
#: Characters of a failing run's output in messages.
_SHOWN_OUTPUT = 500
_NOT_FIXED = (
    ": the bug is not fixed there, or the suite's reference cannot run the program; this suite takes no "
    "tests that are expected to fail"
)


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

    bad      on the build with the bug; None without one, or if it is open and the test is expected to fail
    good     on the newest build
    seconds  of the fastest run that passed: a busy machine makes a test slower, and nothing makes it faster
    """

    bad: BuildResult | None
    good: BuildResult
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The proof as JSON."""
        return asdict(self)


def proof_files(proposal: Proposal, tree: Tree) -> dict[str, str]:
    """The files of a run, by path: the one with the test, and those that its suite needs and the tree has."""
    companions = get_writer(proposal.writer).companions
    files = {path: text for path in companions if (text := tree.read(path)) is not None}
    return files | {proposal.path: proposal.after}


def prove(
    proposal: Proposal,
    tree: Tree,
    bad: TestBuild | None,
    good: TestBuild,
    run: RunTest,
    before: tuple[Proposal, Tree] | None = None,
) -> Proof:
    """Runs the test on both builds, each time in a fresh process.

    before  the test in the files of the bad build's commit, whose helpers work with that build; None for the
            same files: a newer helper may fail there for reasons of its own
    Raises RefusalError if the test does not show the bug, does not pass, or is slow.
    """
    proof = prove_passing(proposal, tree, good, run, _NOT_FIXED)
    if bad is None:
        return proof
    passed = sum(one.passed for one in _results(*(before or (proposal, tree)), bad, run))
    if passed == RUNS:
        raise RefusalError(
            f"the test passes on {bad.label}, where the bug was found: it does not show the bug. "
            "Reduce the bug again, or write the test by hand from the reproducer"
        )
    return replace(proof, bad=BuildResult(bad.label, bad.commit, RUNS, passed))


def prove_passing(proposal: Proposal, tree: Tree, build: TestBuild, run: RunTest, hint: str = "") -> Proof:
    """Runs the test on the newest build only; see `prove`.

    hint  what it may mean that the test does not pass
    """
    results = _results(proposal, tree, build, run)
    passed = [one for one in results if one.passed]
    if len(passed) < RUNS:
        runs = f"{len(passed)} of {RUNS} runs on {build.label}, the newest build{hint}"
        output = next(one.output for one in results if not one.passed).strip()[-_SHOWN_OUTPUT:]
        raise RefusalError(f"{proposal.name} passes in {runs}. The output ends in: {output}")
    fastest = min(one.seconds for one in passed)
    if fastest > MAX_SECONDS:
        raise RefusalError(
            f"the test takes {fastest:.0f} s on {build.label}; at most {MAX_SECONDS:g} s are proposed"
        )
    return Proof(None, BuildResult(build.label, build.commit, RUNS, RUNS), fastest)


def _results(proposal: Proposal, tree: Tree, build: TestBuild, run: RunTest) -> list[RunResult]:
    """All runs on a build. Raises RefusalError if the test does not run there."""
    files, timeout_s = proof_files(proposal, tree), get_writer(proposal.writer).timeout_s
    results = [run(build.python, files, proposal.command, timeout_s) for _ in range(RUNS)]
    for one in results:
        if not one.ran:
            raise RefusalError(
                f"the test does not run on {build.label}: {one.output[-_SHOWN_OUTPUT:].strip()}. "
                "If a package is missing, name it in toolchain.extra"
            )
    return results
