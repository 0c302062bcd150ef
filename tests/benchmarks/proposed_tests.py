"""Proposed tests: old bugs of five compilers, each test run as the suite's own on a bad and a good build.

    python -m tests.benchmarks proposed-tests [--target onnxruntime]
    python -m tests.benchmarks proposed-tests --target tvm --checkout ~/tvm

A test is written for each bug into a tree with the target's layout and helpers. It has to fail on the bad
build and to pass on the good one, in three fresh processes each. The bugs of ONNX Runtime and OpenVINO
(proposed_tests_data/old_bugs.json) are real: node tests of ONNX that fail on one release and pass on a later
one, with the first opset that has their operators, because old releases refuse newer ones. The faults of the
others are planted (tests/bot/proposals/plants.py); with --checkout their tests go into the real repository,
at its HEAD, whose formatter and linters are run. A release takes about 200 MB; ASSAY_DATA_DIR keeps them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from bot.errors import RefusalError
from bot.proposals.linters import check_proposal
from bot.proposals.proof import TestBuild, prove
from bot.proposals.proposal import Proposal, propose
from bot.proposals.regression import Regression
from bot.proposals.tree import folder_tree
from bot.proposals.writer import get_writer
from bot.reports.campaign_view import ToolchainView
from bot.runners import LocalRunner
from bot.runners.repository_test import run_test
from bot.toolchains import ReadyToolchain, ToolchainSpec, provision
from fuzzing import backends
from fuzzing.cases import Corpus, OnnxModel, TestCase
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome
from fuzzing.triage.onnx_outline import onnx_outline
from fuzzing.triage.onnx_text import onnx_code
from tests.benchmarks._common import machine, verdict
from tests.benchmarks.bisection import _collected, _data_dir
from tests.bot.proposals.plants import (
    PLANTS,
    all_fail,
    all_pass,
    joint_command,
    planted_start,
    write_all,
)
from tests.bot.proposals.trees import make_tree

DATA = Path(__file__).parent / "proposed_tests_data" / "old_bugs.json"
BAR = "tests of at least 5 bugs fail on the bad build and pass on the good one, in 3 of 3 runs each"
#: Runs on each build, as in a proof, and seconds of a run of all planted tests.
_RUNS, _TIMEOUT_S = 3, 500.0


@dataclass(frozen=True)
class OldBug:
    """A bug, and the builds with and without it."""

    name: str
    regression: Regression
    bad: TestBuild
    good: TestBuild


def main(argv: Sequence[str]) -> int:
    """Runs the benchmark; 1 if the bar is not met for the target."""
    real = json.loads(DATA.read_bytes())
    targets = sorted({*real, *(one.repository for one in PLANTS)})
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks proposed-tests")
    parser.add_argument("--target", choices=targets, default="openvino", help="the compiler's repository")
    parser.add_argument("--checkout", type=Path, help="the repository of a target whose faults are planted")
    given = parser.parse_args(argv)
    target = given.target
    print(machine())
    with _data_dir() as data_dir:
        if target in real:
            proved = sum(_show(target, one) for one in _real_bugs(data_dir, target, real[target]))
        else:
            proved = _show_planted(target, given.checkout)
    return verdict(proved >= 5, BAR)


def _show_planted(target: str, checkout: Path | None) -> int:
    """The number of tests of planted faults, 0 unless all fail with the faults and pass without."""
    plants = [one for one in PLANTS if one.repository == target]
    with tempfile.TemporaryDirectory(prefix="assay-tree-") as name:
        folder = _clone(checkout, Path(name)) if checkout else make_tree(Path(name), target)
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


def _clone(checkout: Path, folder: Path) -> Path:
    """The files of a checkout's HEAD in a new repository."""
    command = ["git", "clone", "--quiet", "--shared", str(checkout.resolve()), str(folder)]
    subprocess.run(command, check=True, timeout=300)
    return folder


def _real_bugs(data_dir: Path, target: str, data: Mapping[str, Any]) -> Iterator[OldBug]:
    ids = _collected(data_dir)
    bad, good = (_provisioned(data_dir, target, data[one], data["packages"][one]) for one in ("bad", "good"))
    corpus = Corpus(data_dir / "corpus")
    for name in data["tests"]:
        case = _with_first_opset(corpus.get(ids[name]))
        corpus.add(case)
        outcome = _outcome(corpus, case, target, bad)
        if not outcome.verdict.is_failure:
            print(f"none    {name}: it is {outcome.verdict.value} on {bad.spec.label}", flush=True)
            continue
        model = case.program.to_bytes()
        toolchain = ToolchainView(bad.spec.label, bad.versions, ())
        bug = Regression(case, outcome, toolchain, onnx_outline(model), onnx_code(model))
        builds = (TestBuild(one.spec.label, one.python) for one in (bad, good))
        yield OldBug(name, bug, *builds)


def _provisioned(data_dir: Path, target: str, release: str, packages: Sequence[str]) -> ReadyToolchain:
    requirements = (*backends.get(target).requirements(release), *packages)
    spec = ToolchainSpec("release", target, requirements, f"{target} {release}")
    return provision(spec, data_dir, lambda _line: None)


def _with_first_opset(case: TestCase) -> TestCase:
    """The case with the first opset that has all its operators as they are."""
    model = onnx.load_from_string(case.program.to_bytes())
    newest = model.opset_import[0].version
    schemas = (onnx.defs.get_schema(node.op_type, newest, node.domain) for node in model.graph.node)
    opset = max(7, *(one.since_version for one in schemas))  # 7: the first that ONNX Runtime supports
    model.opset_import[0].version = opset
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import)
    onnx.checker.check_model(model, full_check=True)
    return replace(case, program=OnnxModel(model.SerializeToString()))


def _show(target: str, bug: OldBug) -> bool:
    """Whether the test that is written for a bug proves it; prints the proof."""
    try:
        with tempfile.TemporaryDirectory(prefix="assay-tree-") as folder:
            tree = folder_tree(make_tree(Path(folder), target))
            proposal = propose(bug.regression, tree)
            applied = _applies(Path(folder), proposal.patch())
            proof = prove(proposal, tree, bug.bad, bug.good, run_test)
    except RefusalError as error:
        print(f"none    {bug.name}: {error}", flush=True)
        return False
    assert proof.bad is not None
    failed = proof.bad.runs - proof.bad.passed
    print(
        f"proved  {bug.name}: {proposal.name} fails {failed}/{proof.bad.runs} on {bug.bad.label}, passes "
        f"{proof.good.passed}/{proof.good.runs} on {bug.good.label}, {proof.seconds:.1f} s at most, "
        f"{_added(proposal)} lines, git apply {'clean' if applied else 'FAILS'}",
        flush=True,
    )
    return applied and failed == proof.bad.runs


def _added(proposal: Proposal) -> int:
    return sum(line.startswith("+") for line in proposal.patch().splitlines()) - 1


def _applies(folder: Path, patch: str) -> bool:
    command = ["git", "apply", "--check", "--whitespace=error-all", "-"]
    done = subprocess.run(command, cwd=folder, input=patch, text=True, check=False, stderr=sys.stderr)
    return done.returncode == 0


def _outcome(corpus: Corpus, case: TestCase, target: str, build: ReadyToolchain) -> Outcome:
    found: list[Outcome] = []
    shard = Shard(
        corpus=str(corpus.root),
        cases=(case.id,),
        backend=target,
        toolchain=build.digest,
        python=build.python,
        fresh=True,
    )

    def take(event: dict[str, Any]) -> None:
        if event["event"] == "outcome":
            found.append(Outcome.from_json(event["outcome"]))

    LocalRunner(1).run(shard, take, threading.Event())
    return found[0]
