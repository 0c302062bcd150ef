"""A pull request's life cycle against a GitHub double, with kills at random moments; and storms of pushes."""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.scenarios.deployment import Deployment
from tests.scenarios.pull_request_lifecycle import KillPoint, kill_points, run_lifecycle
from tests.scenarios.storm import storm


def main(argv: Sequence[str]) -> int:
    """Prints the result; 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="scenario", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="stories with one SIGKILL each")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--minutes", type=float, default=60.0, help="no new story is begun after this")
    parser.add_argument("--storm", action="store_true", help="pushes in a minute, in place of kills")
    parser.add_argument("--pushes", type=int, default=50, help="of a storm")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        if options.storm:
            return _storm(Path(folder), options.pushes)
        return _kills(Path(folder), options)


def _storm(folder: Path, pushes: int) -> int:
    with Deployment(folder) as deployment:
        storm_result = storm(deployment, "octo/compiler", pushes, 60.0)
    print(
        f"{storm_result.pushes} pushes in {storm_result.seconds:.0f} s: "
        f"{storm_result.campaigns} campaigns, at most "
        f"{storm_result.max_unfinished} live at a time, {len(storm_result.done_heads)} carried to its end, "
        f"{storm_result.comments} comments, {storm_result.unfinished_checks} unfinished checks"
    )
    kept = (
        storm_result.max_unfinished <= 1
        and storm_result.comments == 1
        and storm_result.done_heads[-1:] == [storm_result.last_head]
    )
    kept = kept and not storm_result.unfinished_checks
    print(f"{'kept' if kept else 'NOT KEPT'}: a storm ends with one comment and one live campaign")
    return 0 if kept else 1


def _kills(folder: Path, options: argparse.Namespace) -> int:
    undisturbed = run_lifecycle(folder / "0")
    told = _text(undisturbed.told)
    print(f"undisturbed: {undisturbed.seconds:.1f} s, {undisturbed.writes} writes on GitHub", flush=True)
    planned = kill_points(options.seed, options.kills, undisturbed.seconds, undisturbed.writes)
    same, other, begun = 0, 0, time.monotonic()
    for turn, kill_point in enumerate(planned, 1):
        if time.monotonic() - begun > options.minutes * 60:
            print(f"stopped after {turn - 1} stories: {options.minutes:g} minutes are over")
            break
        difference = _once(folder / str(turn), kill_point, told)
        same, other = same + (not difference), other + bool(difference)
        print(f"\r{turn}/{len(planned)}: {same} the same, {other} not", end="", file=sys.stderr, flush=True)
        if difference:
            print(f"\n{kill_point}: {difference}", flush=True)
    print(file=sys.stderr)
    seconds = time.monotonic() - begun
    print(f"killed {same + other} times in {seconds:.0f} s: GitHub ended the same {same} times, not {other}")
    return 1 if other else 0


def _once(folder: Path, kill_point: KillPoint, told: str) -> str:
    """The difference after a run with this kill, "" for none."""
    try:
        ending = run_lifecycle(folder, kill_point)
    except AssertionError as error:
        return str(error)[:2000]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lines = difflib.unified_diff(told.splitlines(), _text(ending.told).splitlines(), lineterm="", n=1)
    return "\n".join(line[:300] for line in list(lines)[:40])


def _text(told: Any) -> str:
    return json.dumps(told, indent=1, ensure_ascii=False).replace("\\n", "\n")
