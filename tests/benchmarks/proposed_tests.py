"""Proposed tests: old bugs of five compilers, each test run as the suite's own on a bad and a good build.

    python -m tests.benchmarks proposed-tests [--target onnxruntime]
    python -m tests.benchmarks proposed-tests --target tvm --checkout ~/tvm
    python -m tests.benchmarks proposed-tests --target openvino --planted

A test is written for each bug into the repository: a checkout at its HEAD, or a tree with the target's layout
and helpers. Its patch has to apply with `git apply`, the repository's formatter and linters have to leave it
as it is, and writing it again has to change nothing. It has to fail on the bad build and to pass on the good
one, in three fresh processes each; a test of a plain program has to pass on both: it is the bug that fails.

The bugs (proposed_tests_data/old_bugs.toml) are real: programs that fail on one release and pass on a later
one. Node tests of ONNX get the first opset that has their operators, because old releases refuse newer ones.
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
from bot.proposals.tree import folder_tree
from bot.proposals.writer import get_writer
from bot.runners.repository_test import run_test
from tests.benchmarks._common import machine, verdict
from tests.benchmarks._old_bugs import OldBug, OldBugs, read_data
from tests.benchmarks.bisection import _data_dir
from tests.bot.proposals.plants import (
    PLANTS,
    all_fail,
    all_pass,
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
    parser.add_argument("--planted", action="store_true", help="planted faults in place of old bugs")
    parser.add_argument("--bug", action="append", help="only this bug; may be repeated")
    parser.add_argument("--show", action="store_true", help="print the patches")
    for one in ("bad", "good"):
        parser.add_argument(f"--{one}", type=Path, help=f"an interpreter that has the {one} release")
    given = parser.parse_args(argv)
    print(machine())
    with tempfile.TemporaryDirectory(prefix="assay-tree-") as name:
        folder = _repository(Path(name), given.target, given.checkout)
        if given.planted:
            return verdict(_show_planted(given.target, folder) >= 5, BAR)
        with _data_dir() as data_dir:
            pythons = {"bad": given.bad, "good": given.good}
            old = OldBugs(given.target, data_dir, pythons)
            _require_control(folder, old)
            proved = [_show(folder, one, old.bad, old.good, show=given.show) for one in old.bugs(given.bug)]
    print(f"{sum(proved)} of {len(proved)} bugs are proved")
    return verdict(sum(proved) >= 5, BAR)


def _repository(folder: Path, target: str, checkout: Path | None) -> Path:
    """A git repository with the files of a checkout's HEAD, or with a tree like the target's."""
    if checkout is not None:
        _git(folder, "clone", "--quiet", "--shared", str(checkout.resolve()), ".")
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


def _require_control(folder: Path, old: OldBugs) -> None:
    """Exits unless a test of a plain program passes on both builds, in the same files."""
    tree = folder_tree(folder)
    control = propose(old.control(), tree)
    files, timeout_s = proof_files(control, tree), get_writer(control.writer).timeout_s
    for build in (old.bad, old.good):
        result = run_test(build.python, files, control.command, timeout_s)
        if not result.passed:
            sys.exit(f"{control.name} does not pass on {build.label}:\n{result.output}")
    print(f"control {control.name} of {control.path} passes on {old.bad.label} and {old.good.label}")


def _show(folder: Path, bug: OldBug, bad: TestBuild, good: TestBuild, *, show: bool) -> bool:
    """Whether the test that is written for a bug proves it; prints the proof and keeps the test."""
    if not bug.shows:
        seen = bug.regression.outcome
        print(f"none    {bug.name}: {seen.verdict.value} on {bad.label}: {seen.summary}", flush=True)
        return False
    tree = folder_tree(folder)
    try:
        proposal = propose(bug.regression, tree)
        proof = prove(proposal, tree, bad, good, run_test)
    except RefusalError as error:
        print(f"none    {bug.name}: {error}", flush=True)
        return False
    assert proof.bad is not None
    failed = proof.bad.runs - proof.bad.passed
    checks = check_proposal(proposal, tree)
    faults = [one for one in checks if " changes line " in one or " finds new" in one]
    faults += _apply(folder, proposal, bug.regression)
    print(
        f"proved  {bug.name}: {proposal.name} fails {failed}/{proof.bad.runs} on {bad.label}, passes "
        f"{proof.good.passed}/{proof.good.runs} on {good.label}, {proof.seconds:.1f} s, "
        f"{_added(proposal)} lines; {'; '.join(faults or ('git apply clean', *checks))}",
        flush=True,
    )
    if show:
        print(proposal.patch())
    return failed == proof.bad.runs and not faults


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
    paths = {*(one.path for one in proposals), *get_writer(proposals[0].writer).companions}
    files = {path: text for path in sorted(paths) if (text := tree.read(path)) is not None}
    planted = {**files, "sitecustomize.py": planted_start(plants)}
    command = joint_command(proposals)
    good, bad = (
        [run_test(sys.executable, given, command, _TIMEOUT_S) for _ in range(_RUNS)]
        for given in (files, planted)
    )
    passed = sum(one.passed and all_pass(one.output, len(plants)) for one in good)
    failed = sum(not one.passed and all_fail(one.output, len(plants)) for one in bad)
    print(
        f"planted {len(plants)} faults of {target}: all tests fail in {failed} of {_RUNS} processes with the "
        f"faults, all pass in {passed} of {_RUNS} without, {max(one.seconds for one in good):.0f} s at most"
    )
    if passed != _RUNS or failed != _RUNS:
        print(good[-1].output, bad[-1].output, sep="\n", file=sys.stderr)
        return 0
    return len(plants)
