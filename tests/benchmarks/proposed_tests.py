"""Proposed tests: real old bugs of OpenVINO, each test run as the suite's own on both releases.

    python -m tests.benchmarks proposed-tests [--bad 2025.1.0] [--good 2026.4.1]

Cases of bisection_data/openvino.json that a release after BAD, up to GOOD, fixed are run on BAD. A test is
written for each failure into a tree with OpenVINO's layout and helpers and then proved: it fails on BAD and
passes on GOOD in three fresh processes each. Needs the package index and about 200 MB per release;
ASSAY_DATA_DIR keeps them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from bot.errors import RefusalError
from bot.proposals.proof import TestBuild, prove
from bot.proposals.proposal import propose
from bot.proposals.regression import Regression
from bot.proposals.tree import folder_tree
from bot.proposals.writer import get_writer
from bot.reports.campaign_view import ToolchainView
from bot.runners import LocalRunner
from bot.runners.repository_test import run_test
from bot.toolchains import ReadyToolchain, ToolchainSpec, provision
from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome
from fuzzing.triage.onnx_outline import onnx_outline
from fuzzing.triage.onnx_text import onnx_code
from tests.benchmarks._common import machine, verdict
from tests.benchmarks.bisection import DATA, _collected, _data_dir
from tests.bot.proposals.trees import make_tree

#: What OpenVINO's layer tests import.
_TEST_PACKAGES = ("onnx", "onnxruntime", "pytest")
BAR = (
    "tests of at least 5 real old bugs fail on the bad release and pass on the good one, in 3 of 3 runs each"
)


def main(argv: Sequence[str]) -> int:
    """Runs the benchmark; 1 if the bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks proposed-tests")
    parser.add_argument("--bad", default="2025.1.0", help="release with the bugs")
    parser.add_argument("--good", default="2026.4.1", help="release without them")
    given = parser.parse_args(argv)
    print(machine())
    with _data_dir() as data_dir:
        builds = [_provisioned(data_dir, one) for one in (given.bad, given.good)]
        proved = [
            name for name, case_id in _old_bugs(data_dir, given) if _show(data_dir, name, case_id, *builds)
        ]
    return verdict(len(proved) >= 5, BAR)


def _old_bugs(data_dir: Path, given: argparse.Namespace) -> list[tuple[str, str]]:
    """Name and case of each bug of the file that a release after `bad`, up to `good`, fixed."""
    ids = _collected(data_dir)
    known = [one for one in json.loads(DATA.read_bytes())["cases"] if one["asked"] == "fixed by"]
    between = [one["test"] for one in known if _key(given.bad) < _key(one["release"]) <= _key(given.good)]
    return [(name, ids[name]) for name in between]


def _key(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _provisioned(data_dir: Path, release: str) -> ReadyToolchain:
    requirements = (*backends.get("openvino").requirements(release), *_TEST_PACKAGES)
    return provision(
        ToolchainSpec("release", "openvino", requirements, f"openvino {release}"),
        data_dir,
        lambda _line: None,
    )


def _show(data_dir: Path, name: str, case_id: str, bad: ReadyToolchain, good: ReadyToolchain) -> bool:
    """Whether the test that is written for a case proves its bug; prints the proof."""
    try:
        regression = _regression(data_dir, case_id, bad)
        with tempfile.TemporaryDirectory(prefix="assay-tree-") as folder:
            tree = folder_tree(make_tree(Path(folder), "openvino"))
            proposal = propose(regression, tree)
            applied = _applies(Path(folder), proposal.patch())
            proof = prove(
                proposal,
                tree,
                get_writer(proposal.writer).companions,
                TestBuild(bad.spec.label, bad.python),
                TestBuild(good.spec.label, good.python),
                run_test,
                get_writer(proposal.writer).timeout_s,
            )
    except RefusalError as error:
        print(f"none    {name}: {error}", flush=True)
        return False
    assert proof.bad is not None
    failed = proof.bad.runs - proof.bad.passed
    lines = sum(line.startswith("+") for line in proposal.patch().splitlines()) - 1
    print(
        f"proved  {name}: {proposal.name} fails {failed}/{proof.bad.runs} on {bad.spec.label}, passes "
        f"{proof.good.passed}/{proof.good.runs} on {good.spec.label}, {proof.seconds:.1f} s at most, "
        f"{lines} lines, git apply {'clean' if applied else 'FAILS'}",
        flush=True,
    )
    return applied and failed == proof.bad.runs


def _applies(folder: Path, patch: str) -> bool:
    command = ["git", "apply", "--check", "--whitespace=error-all", "-"]
    done = subprocess.run(command, cwd=folder, input=patch, text=True, check=False, stderr=sys.stderr)
    return done.returncode == 0


def _regression(data_dir: Path, case_id: str, bad: ReadyToolchain) -> Regression:
    """The failure of a case on a release. Raises RefusalError if it passes there."""
    case = Corpus(data_dir / "corpus").get(case_id)
    outcome = _outcome(data_dir, case_id, bad)
    if not outcome.verdict.is_failure:
        raise RefusalError(f"it is {outcome.verdict.value} on {bad.spec.label}")
    model = case.program.to_bytes()
    toolchain = ToolchainView(bad.spec.label, bad.versions, ())
    return Regression(case, outcome, toolchain, onnx_outline(model), onnx_code(model))


def _outcome(data_dir: Path, case_id: str, build: ReadyToolchain) -> Outcome:
    found: list[Outcome] = []
    shard = Shard(
        corpus=str(data_dir / "corpus"),
        cases=(case_id,),
        backend="openvino",
        toolchain=build.digest,
        python=build.python,
        fresh=True,
    )

    def take(event: dict[str, object]) -> None:
        if event["event"] == "outcome":
            found.append(Outcome.from_json(event["outcome"]))  # type: ignore[arg-type]

    LocalRunner(1).run(shard, take, threading.Event())
    return found[0]
