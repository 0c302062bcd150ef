"""Whether `assay bisect --commits` names the commits that brought or mended real bugs of compilers.

    python -m tests.benchmarks commit-bisection --repository tinygrad=CLONE --data FOLDER

Each case of commit_bisection_data/cases.toml is a small model, a range of commits and the commit that was
found by hand, from its diff. Printed for each: the range and how many of its commits differ, the commit that
was named, the toolchains that were needed, and the seconds. `--data` keeps toolchains and verdicts between
calls: for the seconds of a first call, name an empty folder. `--config` names what makes the commits in place
of `overlay`; commit_bisection_data/tinygrad_source.yml builds tinygrad's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx.parser

from bot.bisection.search import max_probed
from tests.benchmarks._common import machine, verdict

DATA = Path(__file__).parent / "commit_bisection_data" / "cases.toml"
BAR = "10 changes named right, with at most ceil(log2 n) + 2 toolchains each where none had to be skipped"
_FOLDER = re.compile(r" with (\S+) of the commit")
_NEEDED = re.compile(r"of the commit, ([0-9a-f]{12}): ")
_UNUSABLE = re.compile(r"of the commit, ([0-9a-f]{12}): .*: trying another$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A change of a compiler that a model shows.

    model   in ONNX's text form
    asked   "since" for the commit that brought a bug, "fixed by" for the one that mended it
    commits GOOD..BAD of `assay bisect`
    commit  the one that must be named
    why     how it was found by hand
    """

    name: str
    compiler: str
    model: str
    asked: str
    commits: str
    commit: str
    why: str


def read_cases() -> list[Case]:
    """All cases, in the order of the file."""
    return [Case(**one) for one in tomllib.loads(DATA.read_text(encoding="utf-8"))["case"]]


def main(argv: Sequence[str]) -> int:
    """Prints a line for each case; 1 if the bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks commit-bisection")
    parser.add_argument("--repository", action="append", required=True, metavar="COMPILER=CLONE")
    parser.add_argument("--data", type=Path, required=True, help="data folder of Assay, kept between calls")
    parser.add_argument("--case", action="append", help="only the case of this name")
    parser.add_argument("--config", type=Path, help="a configuration that says how commits are made")
    options = parser.parse_args(argv)
    repositories = dict(one.split("=", 1) for one in options.repository)
    cases = [one for one in read_cases() if one.compiler in repositories]
    cases = [one for one in cases if one.name in (options.case or [one.name])]
    print(f"{machine()}; {len(cases)} cases", flush=True)
    right = beyond = 0
    for case in cases:
        begun = time.monotonic()
        answer, tried, unusable = _bisect(
            case, Path(repositories[case.compiler]), options.data.absolute(), options.config
        )
        named = str(answer["release"]).startswith(case.commit) and not answer["between"]
        skipped = sum(row["judgement"] == "skipped" for row in answer["probed"]) + unusable
        most = max_probed(answer["releases"])
        right += named
        beyond += tried > most and not skipped
        print(
            f"{'right' if named else 'WRONG'}  {case.name}: {case.asked} {str(answer['release'])[:12]}, "
            f"expected {case.commit}; {answer['releases']} commits of {case.commits}; "
            f"{tried} toolchains, at most {most}; {skipped} skipped; {time.monotonic() - begun:.0f} s",
            flush=True,
        )
    print(f"named right: {right} of {len(cases)}; beyond the bound without a skip: {beyond}")
    return verdict(right == len(cases) >= 10 and not beyond, BAR)


def _bisect(case: Case, repository: Path, data: Path, config: Path | None) -> tuple[dict[str, Any], int, int]:
    """The answer of `assay bisect`, and how many toolchains it needed and commits it tried that work with no
    wheel. Commits with equal sources share a toolchain.
    """
    models = data / "models" / case.name
    models.mkdir(parents=True, exist_ok=True)
    onnx.save(onnx.parser.parse_model(case.model), models / "model.onnx")
    command = [sys.executable, "-P", "-m", "bot.cli", "bisect", str(models / "model.onnx"), "--json"]
    command += ["--backend", case.compiler, "--repo", str(repository), "--commits", case.commits]
    command += ["--repeats", "3"]  # none of these bugs comes and goes
    command += ["--fixed-by"] if case.asked == "fixed by" else []
    command += ["--config", str(config.absolute())] if config else []
    environment = os.environ | {"ASSAY_DATA_DIR": str(data)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{case.name}: {done.stderr.strip()[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if "over" not in answer:
        return answer, len({row["toolchain"] for row in answer["probed"]}), 0
    needed = {row["release"][:12] for row in answer["probed"]} | set(_NEEDED.findall(done.stderr))
    unusable = set(_UNUSABLE.findall(done.stderr)) - {row["release"][:12] for row in answer["probed"]}
    folder = _FOLDER.search(answer["over"])
    assert folder, answer["over"]
    trees = (f"{sha}:{folder[1]}" for sha in needed)
    command = ["git", "-c", "safe.directory=*", "rev-parse", *trees]
    found = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout
    return answer, len(set(found.split())), len(unusable)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
