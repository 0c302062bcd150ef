"""How short the reproducers of real bugs are, and how many of them show their bug.

Makes the short script of every failure of an onnxruntime run and of an OpenVINO run (two releases, as `make
demo` compares them), counts its lines, and runs it in a fresh interpreter of the toolchain. `--report DIR`
takes the folder of an earlier `assay run --report` instead; its corpus is that of `--data`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bot.reports.campaign_view import ToolchainView
from bot.reports.reference_outputs import add_reference_outputs
from bot.reports.reproducer_short import ending, render_short
from bot.runners.reproducer_run import BUG_SHOWN, try_script
from fuzzing.cases import Corpus, OnnxModel
from fuzzing.outcomes import Outcome
from fuzzing.triage.onnx_text import onnx_code
from tests.benchmarks._common import machine, verdict

MEDIAN_LINES = 25
HEAD, BASE = "2026.4.1", "2024.0.0"
#: Name of the run → what `assay run` gets.
RUNS = {
    "onnxruntime": ("--backend", "onnxruntime"),
    "openvino": ("--backend", "openvino", "--release", HEAD, "--base", BASE),
}


@dataclass(frozen=True)
class Measured:
    """One bug: lines of its short script (0: none), and whether it shows the bug; None for hangs."""

    title: str
    lines: int
    shows: bool | None


def main(argv: Sequence[str] | None = None) -> int:
    """The benchmark; 0 where the bar is kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks reproducers", description=__doc__)
    parser.add_argument("--budget", default="2m", help="time for running cases, of each run")
    parser.add_argument("--reduce", default="40", help="failing cases to reduce, of each run")
    parser.add_argument("--data", type=Path, help="data folder of Assay [default: a new one]")
    parser.add_argument("--report", type=Path, action="append", help="report of an earlier run")
    parser.add_argument("--verbose", action="store_true", help="print every bug")
    given = parser.parse_args(argv)
    print(machine())
    with tempfile.TemporaryDirectory(prefix="assay-reproducers-") as scratch:
        data = given.data or Path(scratch) / "data"
        reports = given.report or [
            _run(name, data, Path(scratch) / name, given.budget, given.reduce) for name in RUNS
        ]
        found = [one for report in reports for one in measure(report, data, given.verbose)]
    return _summarize(found)


def _run(name: str, data: Path, report: Path, budget: str, reduce: str) -> Path:
    command = [str(Path(sys.executable).with_name("assay")), "run", *RUNS[name], "--report", str(report)]
    command += ["--budget", budget, "--reduce", reduce]
    done = subprocess.run(command, env=os.environ | {"ASSAY_DATA_DIR": str(data)}, check=False)
    if not (report / "report.json").is_file():
        raise SystemExit(f"`assay run` on {name} wrote no report: exit code {done.returncode}")
    return report


def measure(report: Path, data: Path, verbose: bool) -> Iterator[Measured]:
    """Each bug of a report that fails at head."""
    reported: dict[str, Any] = json.loads((report / "report.json").read_bytes())
    head = reported["toolchains"]["head"]
    toolchain = ToolchainView(head["label"], head["versions"], head["requirements"])
    python = _interpreter(data, head["label"])
    for group in reported["groups"]:
        outcome = group["example"]["head"] and Outcome.from_json(group["example"]["head"])
        if outcome and outcome.verdict.is_failure:
            one = _measure(group["title"], outcome, group["example"]["case"], data, toolchain, python)
            if verbose:
                print(f"{one.lines:4} lines, {_shown(one)}: {one.title}", flush=True)
            yield one


def _shown(one: Measured) -> str:
    if not one.lines:
        return "no short script"
    return "shows" if one.shows else "hangs, not run" if one.shows is None else "DOES NOT SHOW"


def _interpreter(data: Path, label: str) -> str:
    """The interpreter of a toolchain that was installed for a release; ours for what is installed here."""
    package, _, version = label.partition(" ")
    for folder in (data / "toolchains").glob("*"):
        if folder.is_dir() and list(folder.glob(f"lib/*/site-packages/{package}-{version}.dist-info")):
            return str(folder / "bin" / "python")
    return sys.executable


def _measure(
    title: str, outcome: Outcome, case_id: str, data: Path, toolchain: ToolchainView, python: str
) -> Measured:
    corpus = data / "corpus"
    case = add_reference_outputs(Corpus(corpus).get(case_id), corpus)
    code = onnx_code(case.program.model) if isinstance(case.program, OnnxModel) else ""
    script = render_short(case, outcome, toolchain, code)
    if not script:
        return Measured(title, 0, False)
    end = ending(outcome)
    return Measured(title, script.count("\n"), try_script(script, python, end) == BUG_SHOWN if end else None)


def _summarize(found: Sequence[Measured]) -> int:
    written = [one for one in found if one.lines]
    tried = [one for one in written if one.shows is not None]
    shown = sum(bool(one.shows) for one in tried)
    if not written:
        print("no bug was found")
        return 1
    lines = [one.lines for one in written]
    print(
        f"{len(found)} bugs, {len(written)} with a short script: "
        f"median {median(lines):g} lines, maximum {max(lines)}"
    )
    print(f"{shown} of {len(tried)} that were run show their bug ({shown / len(tried):.0%})")
    for one in found:
        if not one.lines or one.shows is False:
            print(f"  {'no short script' if not one.lines else 'does not show'}: {one.title}")
    kept = median(lines) <= MEDIAN_LINES and shown == len(tried)
    return verdict(
        kept, f"median of at most {MEDIAN_LINES} lines, every script that is written shows its bug"
    )
