"""How short the reproducers of real bugs are, and how many of them show their bug.

Makes the short script of every failure of an onnxruntime run and of an OpenVINO run (two releases, as `make
demo` compares them), counts its lines, and runs it in a fresh interpreter of the toolchain. `--report DIR`
takes the folder of an earlier `assay run --report` instead; its corpus is that of `--data`.

`--clean FOLDER` runs each script in an environment made in that folder from the script's own `pip install`
line, and a regression's in one of the base's release, too, where it must not show. A bug without a short
script has its guarded one run. `--findings COMPILER` takes the ONNX models of `docs/findings.md` instead of a
run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from bot.reports.campaign_view import ToolchainView
from bot.reports.reference_outputs import add_reference_outputs
from bot.reports.reproducer import has_guarded_script, render
from bot.reports.reproducer_short import ending, render_short
from bot.runners.reproducer_run import BUG_SHOWN, Ending, try_script
from bot.store.models import Classification
from fuzzing import backends
from fuzzing.cases import Corpus, OnnxModel
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome
from fuzzing.triage.onnx_text import onnx_code
from tests.benchmarks._clean_environments import Environments
from tests.benchmarks._common import machine, verdict
from tests.benchmarks._findings_corpus import TITLES, write_cases

MEDIAN_LINES = 25
HEAD, BASE = "2026.4.1", "2024.0.0"
#: Name of the run → what `assay run` gets.
RUNS = {
    "onnxruntime": ("--backend", "onnxruntime"),
    "openvino": ("--backend", "openvino", "--release", HEAD, "--base", BASE),
}


@dataclass(frozen=True)
class Measured:
    """One bug: lines of its short script (0: none), and whether it shows the bug; None where it was not run.

    at_base  whether it shows the bug on the base's release; None where base is not known to be without it
    why      why it was not run
    """

    title: str
    lines: int
    shows: bool | None
    at_base: bool | None = None
    why: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """The benchmark; 0 where the bar is kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks reproducers", description=__doc__)
    parser.add_argument("--budget", default="2m", help="time for running cases, of each run")
    parser.add_argument("--reduce", default="40", help="failing cases to reduce, of each run")
    parser.add_argument("--data", type=Path, help="data folder of Assay [default: a new one]")
    parser.add_argument("--report", type=Path, action="append", help="report of an earlier run")
    parser.add_argument("--verbose", action="store_true", help="print every bug")
    parser.add_argument("--clean", type=Path, help="folder for environments of the scripts' own lines")
    parser.add_argument(
        "--findings", action="append", choices=TITLES, help="compiler whose known bugs are taken"
    )
    given = parser.parse_args(argv)
    print(machine())
    environments = Environments(given.clean) if given.clean else None
    with tempfile.TemporaryDirectory(prefix="assay-reproducers-") as scratch:
        data = given.data or Path(scratch) / "data"
        found = [
            one
            for compiler in given.findings or ()
            for one in measure_findings(compiler, data, environments, given.verbose)
        ]
        reports = given.report or [
            _run(name, data, Path(scratch) / name, given.budget, given.reduce)
            for name in (() if given.findings else RUNS)
        ]
        found += [one for report in reports for one in measure(report, data, environments, given.verbose)]
    return _summarize(found)


def _run(name: str, data: Path, report: Path, budget: str, reduce: str) -> Path:
    command = [str(Path(sys.executable).with_name("assay")), "run", *RUNS[name], "--report", str(report)]
    command += ["--budget", budget, "--reduce", reduce]
    done = subprocess.run(command, env=os.environ | {"ASSAY_DATA_DIR": str(data)}, check=False)
    if not (report / "report.json").is_file():
        raise SystemExit(f"`assay run` on {name} wrote no report: exit code {done.returncode}")
    return report


@dataclass(frozen=True)
class Toolchains:
    """Where the scripts of a report run: its toolchain, or clean environments.

    base  the package and release of the base; None if there is none
    """

    head: ToolchainView
    python: str
    clean: Environments | None
    base: dict[str, str] | None


def measure(report: Path, data: Path, environments: Environments | None, verbose: bool) -> Iterator[Measured]:
    """Each bug of a report that fails at head."""
    reported: dict[str, Any] = json.loads((report / "report.json").read_bytes())
    head, base = reported["toolchains"]["head"], reported["toolchains"]["base"]
    toolchain = ToolchainView(head["label"], head["versions"], head["requirements"])
    pin = dict([base["label"].split(" ")[:2]]) if base else None
    toolchains = Toolchains(toolchain, _interpreter(data, head["label"]), environments, pin)
    for group in reported["groups"]:
        outcome = group["example"]["head"] and Outcome.from_json(group["example"]["head"])
        if outcome and outcome.verdict.is_failure:
            one = _measure(group, outcome, data, toolchains)
            if verbose:
                print(f"{one.lines:4} lines, {_shown(one)}: {one.title}", flush=True)
            yield one


def measure_findings(
    compiler: str, data: Path, environments: Environments | None, verbose: bool
) -> Iterator[Measured]:
    """Each known bug that the installed compiler shows."""
    own = Corpus(data / "findings" / compiler)
    write_cases(compiler, own.root)
    cases = [own.get(case_id) for case_id in own.ids()]
    versions = {}
    for package in backends.get(compiler).packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    wanted = [f"{name}=={version.partition('+')[0]}" for name, version in versions.items()]
    toolchain = ToolchainView(compiler, versions, wanted)
    toolchains = Toolchains(toolchain, sys.executable, environments, None)
    # In a process of its own each: some bugs write out of bounds, and change what later cases show.
    with Evaluator(Shard("", (), compiler, "findings", sys.executable, fresh=True)) as evaluator:
        outcomes = evaluator.evaluate(cases)
        expected = [evaluator.reference(case) for case in cases]
    for case, outcome, outputs in zip(cases, outcomes, expected, strict=True):
        if outcome.verdict.is_failure:
            Corpus(data / "corpus").add(replace(case, expected=outputs))
            group = {
                "title": case.provenance.test,
                "classification": "",
                "example": {"case": replace(case, expected=outputs).id},
            }
            one = _measure(group, outcome, data, toolchains)
            if verbose:
                print(f"{one.lines:4} lines, {_shown(one)}: {compiler}: {one.title}", flush=True)
            yield one


def _shown(one: Measured) -> str:
    if one.shows is None:
        return one.why or "hangs, not run"
    at_base = {None: "", True: ", AT BASE TOO", False: ", not at base"}[one.at_base]
    return ("shows" if one.shows else "DOES NOT SHOW") + at_base + ("" if one.lines else " (guarded)")


def _interpreter(data: Path, label: str) -> str:
    """The interpreter of a toolchain that was installed for a release; ours for what is installed here."""
    package, _, version = label.partition(" ")
    for folder in (data / "toolchains").glob("*"):
        if folder.is_dir() and list(folder.glob(f"lib/*/site-packages/{package}-{version}.dist-info")):
            return str(folder / "bin" / "python")
    return sys.executable


def _measure(group: dict[str, Any], outcome: Outcome, data: Path, toolchains: Toolchains) -> Measured:
    corpus, title = data / "corpus", group["title"]
    case = add_reference_outputs(Corpus(corpus).get(group["example"]["case"]), corpus)
    code = onnx_code(case.program.model) if isinstance(case.program, OnnxModel) else ""
    script = render_short(case, outcome, toolchains.head, code)
    lines, end = script.count("\n"), ending(outcome)
    if not script and (toolchains.clean is None or not has_guarded_script(outcome.backend, case)):
        return Measured(title, 0, None, why="no script")
    if script and end is None:
        return Measured(title, lines, None)
    if not script:
        script, end = render(case, outcome, toolchains.head), None
    if toolchains.clean is None:
        return Measured(title, lines, try_script(script, toolchains.python, end) == BUG_SHOWN)
    return _measure_cleanly(Measured(title, lines, None), group, script, end, toolchains)


def _measure_cleanly(
    one: Measured, group: dict[str, Any], script: str, end: Ending | None, toolchains: Toolchains
) -> Measured:
    """The same, run in an environment of the script's own line, and in one of the base's release."""
    assert toolchains.clean is not None
    python, why = toolchains.clean.python_for(script)
    if why:
        return replace(one, why=why)
    one = replace(one, shows=try_script(script, python, end, with_onnx=False) == BUG_SHOWN)
    if toolchains.base and group["classification"] == Classification.REGRESSION.value:
        python, why = toolchains.clean.python_for(script, pins=toolchains.base)
        at_base = None if why else try_script(script, python, end, with_onnx=False) == BUG_SHOWN
        one = replace(one, at_base=at_base, why=why)
    return one


def _summarize(found: Sequence[Measured]) -> int:
    written = [one for one in found if one.lines]
    tried = [one for one in found if one.shows is not None]
    shown = sum(bool(one.shows) for one in tried)
    if not written:
        print("no bug was found")
        return 1
    lines = [one.lines for one in written]
    print(
        f"{len(found)} bugs, {len(written)} with a short script: "
        f"median {median(lines):g} lines, maximum {max(lines)}"
    )
    print(f"{shown} of {len(tried)} that were run show their bug ({shown / max(len(tried), 1):.0%})")
    at_base = [one for one in found if one.at_base is not None]
    if at_base:
        wrongly = sum(bool(one.at_base) for one in at_base)
        print(f"{wrongly} of {len(at_base)} regressions that were run on the base's release show there")
    for one in found:
        if not one.shows or one.at_base:
            print(f"  {_shown(one)}: {one.title}")
    kept = median(lines) <= MEDIAN_LINES and shown == len(tried) and not any(one.at_base for one in found)
    return verdict(
        kept, f"median of at most {MEDIAN_LINES} lines, every script that is run shows its bug, none at base"
    )
