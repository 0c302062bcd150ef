"""Which consecutive commits of a compiler's own repository are accused; each must be looked into by hand.

Commits that change the compiler's Python sources, the newest first, each tested against the one before it, as
pushes are. Verdicts of the base are those that its own turn left. Commits with which no wheel works are named
with the reason. `--repository` is a clone; cases and toolchains are kept in `--data` between calls.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bot.config.layouts import layouts
from tests.benchmarks._commit_pairs import PairOptions, PairResult, run_pair
from tests.benchmarks._common import machine


def list_commits(repository: Path, paths: Sequence[str], until: str, count: int) -> list[tuple[str, str]]:
    """Commits of the first-parent line that change these paths, the newest first, with their subjects."""
    command = ["git", "-c", "safe.directory=*", "log", "--first-parent", f"--max-count={count}"]
    command += ["--format=%H %s", until, "--", *paths]
    listing = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout
    return [(line[:40], line[41:]) for line in listing.splitlines()]


def main(argv: Sequence[str]) -> int:
    """Prints a line for each commit, and the counts; 1 if a commit is accused."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks plain-history", description=__doc__)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="data folder of Assay, kept between calls")
    parser.add_argument("--compiler", default="tinygrad")
    parser.add_argument("--frontend", default="onnx")
    parser.add_argument("--path", action="append", help="commits that change this path [default: all laid]")
    parser.add_argument("--until", default="HEAD")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--budget", default="60s", help="of each pair")
    parser.add_argument("--minutes", type=float, default=60.0, help="no further commit is begun after this")
    options = parser.parse_args(argv)
    (layout,) = [one for one in layouts() if one.backend == options.compiler]
    commits = list_commits(
        options.repository, options.path or list(layout.paths), options.until, options.count
    )
    pairs = PairOptions(options.repository, options.data, options.compiler, options.frontend, options.budget)
    print(f"{machine()}; {len(commits)} commits", flush=True)
    begun, results = time.monotonic(), list[PairResult]()
    for sha, subject in commits:
        if time.monotonic() - begun > options.minutes * 60:
            print(f"stopped: {options.minutes:g} minutes are over; {len(commits) - len(results)} not run")
            break
        results.append(run_pair(sha, f"{sha}^", pairs))
        print(_line(sha, subject, results[-1]), flush=True)
    tested = [one for one in results if not one.error]
    accused = sum(bool(one.cases) for one in tested)
    cases = sum(one.verdicts for one in tested)
    print(f"{len(tested)} tested with {cases} verdicts, {len(results) - len(tested)} not, {accused} accused")
    return 1 if accused else 0


def _line(sha: str, subject: str, result: PairResult) -> str:
    if result.error:
        what = f"not tested: {result.error}"
    elif result.cases:
        named = (f"{case}: {title}" for case, title in zip(result.cases, result.titles, strict=True))
        what = "ACCUSED: " + "; ".join(named)
    else:
        what = f"no regression in {result.verdicts} verdicts"
    return f"{sha[:10]} {result.seconds:5.0f} s  {subject[:70]}\n    {what}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
