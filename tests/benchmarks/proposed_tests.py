"""Proposed tests: old bugs of five compilers, each test run as the suite's own on a bad and a good build.

    python -m tests.benchmarks proposed-tests [--target onnxruntime]
    python -m tests.benchmarks proposed-tests --target tvm --checkout ~/tvm --bad-commit v0.25.0
    python -m tests.benchmarks proposed-tests --target openvino --planted

A test is written for each bug into the repository: a checkout at its HEAD, or a tree with the target's layout
and helpers. Its patch has to apply with `git apply`, the repository's formatter and linters have to leave it
as it is, and writing it again has to change nothing. It has to fail on the bad build and to pass on the good
one, in three fresh processes each; a test of a plain program has to pass on both: it is the bug that fails.
The suite's own runner runs all tests in one process; with --each, each is proved as the service does it.

The bugs (proposed_tests_data/old_bugs.toml) are real: programs that fail on one release and pass on a later
one. Node tests of ONNX get the first opset that has their operators, because old releases refuse newer ones.
The files of the bad build are those of --bad-commit, because helpers of another time may not work with it.
With --planted the faults are edits of the installed package instead (tests/bot/proposals/plants.py), one
package in two processes. A release takes about 200 MB, the good one of torch 4 GB where the index has it with
CUDA only; ASSAY_DATA_DIR keeps them, and --good and --bad name interpreters that have them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bot.errors import RefusalError
from bot.proposals.linters import check_proposal
from bot.proposals.proof import TestBuild, proof_files, prove
from bot.proposals.proposal import Proposal, propose
from bot.proposals.regression import Regression
from bot.proposals.tree import Tree, folder_tree
from bot.proposals.writer import get_writer
from bot.runners.repository_test import RunResult, run_test
from tests.benchmarks._common import machine, verdict
from tests.benchmarks._old_bugs import OldBug, OldBugs, read_data
from tests.benchmarks.bisection import _data_dir
from tests.bot.proposals.plants import (
    PLANTS,
    all_fail,
    all_pass,
    failing,
    joint_command,
    planted_start,
    write_all,
)
from tests.bot.proposals.trees import make_tree

BAR = "tests of at least 5 bugs fail on the bad build and pass on the good one, in 3 of 3 runs each"
#: Runs on each build, as in a proof, and seconds of a run of all planted tests.
_RUNS, _TIMEOUT_S = 3, 500.0
_IDENTITY = ("-c", "user.name=Bo", "-c", "user.email=bo@example.org")


def main(argv: Sequence[str]) -> int:
    """Runs the benchmark; 1 if the bar is not met for the target."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks proposed-tests")
    parser.add_argument("--target", choices=sorted(read_data()), default="openvino", help="the compiler")
    parser.add_argument("--checkout", type=Path, help="a checkout of its repository")
    parser.add_argument("--bad-commit", default="HEAD", help="its commit for the bad build")
    parser.add_argument("--planted", action="store_true", help="planted faults in place of old bugs")
    parser.add_argument("--bug", action="append", help="only this bug; may be repeated")
    parser.add_argument("--each", action="store_true", help="prove each test as the service does it")
    parser.add_argument("--show", action="store_true", help="print the patches")
    for one in ("bad", "good"):
        parser.add_argument(f"--{one}", type=Path, help=f"an interpreter that has the {one} release")
    given = parser.parse_args(argv)
    print(machine())
    with tempfile.TemporaryDirectory(prefix="assay-tree-") as name:
        folder = _repository(Path(name) / "good", given.target, given.checkout)
        if given.planted:
            return verdict(_show_planted(given.target, folder) >= 5, BAR)
        before = _repository(Path(name) / "bad", given.target, given.checkout, given.bad_commit)
        with _data_dir() as data_dir:
            pythons = {"bad": given.bad, "good": given.good}
            old = OldBugs(given.target, data_dir, pythons)
            control = old.control()
            _require_control(before, control, old.bad)
            _require_control(folder, control, old.good)
            bugs = old.bugs(given.bug)
            written = _written(folder, bugs, show=given.show)
            older = {bug.name: one for bug, one in _written(before, bugs)}
            both = [(bug, one, older[bug.name]) for bug, one in written if bug.name in older]
            proved = (_prove_each if given.each else _prove_together)(folder, before, both, old)
    print(f"{proved} of {len(bugs)} bugs are proved")
    return verdict(proved >= 5, BAR)


def _repository(folder: Path, target: str, checkout: Path | None, commit: str = "HEAD") -> Path:
    """A git repository with the files of a checkout's commit, or with a tree like the target's."""
    folder.mkdir()
    if checkout is not None:
        _git(folder, "clone", "--quiet", "--shared", "--no-checkout", str(checkout.resolve()), ".")
        _git(folder, "checkout", "--quiet", commit)
        return folder
    make_tree(folder, target)
    _git(folder, "init", "--quiet")
    _commit(folder)
    return folder


def _git(folder: Path, *arguments: str, stdin: str = "") -> None:
    command = ["git", *_IDENTITY, *arguments]
    subprocess.run(command, cwd=folder, input=stdin, text=True, check=True, timeout=600)


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--no-verify", "-m", "tests")


def _require_control(folder: Path, regression: Regression, build: TestBuild) -> None:
    """Exits unless a test of a plain program passes on a build, in the files of the bugs' tests."""
    tree = folder_tree(folder)
    control = propose(regression, tree)
    files, timeout_s = proof_files(control, tree), get_writer(control.writer).timeout_s
    result = run_test(build.python, files, control.command, timeout_s)
    if not result.passed:
        sys.exit(f"{control.name} does not pass on {build.label}:\n{result.output}")
    print(f"control {control.name} of {control.path} passes on {build.label}", flush=True)


#: A bug, its test in the files of the good build, and in those of the bad one.
Written = tuple[OldBug, Proposal, Proposal]


def _written(folder: Path, bugs: Sequence[OldBug], *, show: bool = False) -> list[tuple[OldBug, Proposal]]:
    """Writes a test for each bug into a repository; prints what is wrong with those left out."""
    found = []
    for bug in bugs:
        seen, tree = bug.regression.outcome, folder_tree(folder)
        try:
            proposal = propose(bug.regression, tree)
        except RefusalError as error:
            print(f"none    {bug.name}: {error}", flush=True)
            continue
        checks = check_proposal(proposal, tree)
        faults = [one for one in checks if " changes line " in one or " finds new" in one]
        faults += _apply(folder, proposal, bug.regression)
        if not bug.shows:
            faults.append(f"it is {seen.verdict.value} there: {seen.summary}")
        state = "none   " if faults else "written"
        text = "; ".join(faults or ("git apply clean, twice is once", *checks))
        print(f"{state} {bug.name}: {proposal.name}, {_added(proposal)} lines; {text}", flush=True)
        if show:
            print(proposal.patch())
        if not faults:
            found.append((bug, proposal))
    return found


def _prove_each(folder: Path, before: Path, written: Sequence[Written], old: OldBugs) -> int:
    """The number of tests whose proof succeeds as in the service: six processes each."""
    proved = 0
    for bug, proposal, older in written:
        tree, side = folder_tree(folder), (older, folder_tree(before))
        try:
            proof = prove(proposal, tree, old.bad, old.good, run_test, side)
        except RefusalError as error:
            print(f"none    {bug.name}: {error}", flush=True)
            continue
        assert proof.bad is not None
        failed = proof.bad.runs - proof.bad.passed
        proved += failed == proof.bad.runs
        print(
            f"proved  {bug.name}: fails {failed}/{proof.bad.runs} on {old.bad.label}, passes "
            f"{proof.good.passed}/{proof.good.runs} on {old.good.label}, {proof.seconds:.1f} s",
            flush=True,
        )
    return proved


def _prove_together(folder: Path, before: Path, written: Sequence[Written], old: OldBugs) -> int:
    """The number of tests that fail in each process on the bad build and in none on the good one."""
    if not written:
        return 0
    failed = []
    for build, root, proposals in (
        (old.good, folder, [one for _, one, _ in written]),
        (old.bad, before, [one for _, _, one in written]),
    ):
        files, command = _files(proposals, folder_tree(root)), joint_command(proposals)
        results = [run_test(build.python, files, command, _TIMEOUT_S) for _ in range(_RUNS)]
        seen = [failing(one.output, proposals) for one in results]
        for one, names in zip(results, seen, strict=True):
            if not any(names) and not all_pass(one.output, len(proposals)):
                sys.exit(f"no result on {build.label}:\n{one.output}")
        failed.append([sum(names) for names in zip(*seen, strict=True)])
        if build is old.good:
            print(f"{min(one.seconds for one in results):.1f} s of processor time for all on {build.label}")
    proved = 0
    for (bug, one, _), good, bad in zip(written, *failed, strict=True):
        shown = good == 0 and bad == _RUNS
        proved += shown
        does = f"fails {bad}/{_RUNS} on {old.bad.label}, passes {_RUNS - good}/{_RUNS} on {old.good.label}"
        print(f"{'proved' if shown else 'none  '}  {bug.name}: {one.name} {does}")
    return proved


def _files(proposals: Sequence[Proposal], tree: Tree) -> dict[str, str]:
    """The files with the tests, and those that they need."""
    paths = {*(one.path for one in proposals), *get_writer(proposals[0].writer).companions}
    return {path: text for path in sorted(paths) if (text := tree.read(path)) is not None}


def _shown(good: tuple[str, list[RunResult]], bad: tuple[str, list[RunResult]], *, count: int) -> int:
    """The number of tests, 0 unless all do as they should in each process; prints what they did."""
    passed = sum(one.passed and all_pass(one.output, count) for one in good[1])
    failed = sum(not one.passed and all_fail(one.output, count) for one in bad[1])
    fastest = min(one.seconds for one in good[1])
    print(
        f"{count} tests: all fail in {failed} of {_RUNS} processes on {bad[0]}, all pass in {passed} of "
        f"{_RUNS} on {good[0]}, {fastest:.1f} s of processor time"
    )
    if passed == failed == _RUNS:
        return count
    print(good[1][-1].output, bad[1][-1].output, sep="\n", file=sys.stderr)
    return 0


def _apply(folder: Path, proposal: Proposal, regression: Regression) -> list[str]:
    """Applies the patch with git and commits it; returns what is wrong with the result."""
    _git(folder, "apply", "--whitespace=error-all", "-", stdin=proposal.patch())
    _commit(folder)
    if (folder / proposal.path).read_text(encoding="utf-8") != proposal.after:
        return ["git apply gives ANOTHER FILE"]
    return ["writing it twice ADDS IT AGAIN"] if propose(regression, folder_tree(folder)).is_new else []


def _added(proposal: Proposal) -> int:
    return sum(line.startswith("+") for line in proposal.patch().splitlines()) - 1


def _show_planted(target: str, folder: Path) -> int:
    """The number of tests of planted faults, 0 unless all fail with the faults and pass without."""
    plants = [one for one in PLANTS if one.repository == target]
    proposals = write_all(folder, plants)
    tree = folder_tree(folder)
    for one in proposals:
        print(f"        {one.name}: git apply clean, {one.path}; {'; '.join(check_proposal(one, tree))}")
    files = _files(proposals, tree)
    planted = {**files, "sitecustomize.py": planted_start(plants)}
    command = joint_command(proposals)
    good, bad = (
        [run_test(sys.executable, given, command, _TIMEOUT_S) for _ in range(_RUNS)]
        for given in (files, planted)
    )
    name = f"the installed {target}"
    return _shown((name, good), (f"{name} with planted faults", bad), count=len(plants))
