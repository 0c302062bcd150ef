"""Whether real fixes of TVM's frontends, run backwards as the commits that broke them, are flagged.

In a clone of apache/tvm, the commits between two tags that fix the ONNX or the torch frontend: base is the
fix, head its parent. `assay run --repo` tests each pair over the nearest wheel, with the sources that are the
default. For each it prints whether it was flagged, by which cases, and the seconds from the start to the
first confirmed regression and to the end, toolchains included. Of one that was not flagged it prints why:
what the cases of the touched operators gave at both ends, and what failed otherwise than at base.

`--repository` is the clone with its tags; cases and toolchains are kept in `--data` between calls.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks._common import machine

_FRONTENDS = {
    "onnx": "python/tvm/relax/frontend/onnx/",
    "torch": "python/tvm/relax/frontend/torch/",
}
#: Subjects of fixes, as the project words them; new operators and refactorings are left out.
_FIX = re.compile(r"\b(fix|preserve|recover|correct|cast|handle|accept)", re.IGNORECASE)
_CONFIRMED = re.compile(r"^\[ *([\d.]+) s\] regression: ", re.MULTILINE)
_SHOWN = 5  # operators and titles of a reason


@dataclass(frozen=True)
class Fix:
    """A commit that fixes a frontend."""

    sha: str
    subject: str


@dataclass(frozen=True)
class Result:
    """What was found when a fix was run backwards.

    cases   those that fail before the fix and pass with it
    first   seconds to the first that was confirmed, None if none was
    reason  why there are none
    error   why nothing was tested
    """

    seconds: float
    cases: tuple[str, ...] = ()
    first: float | None = None
    reason: str = ""
    error: str = ""


def list_fixes(repository: Path, frontend: str, since: str, until: str) -> list[Fix]:
    """The fixes of a frontend between two tags, oldest first."""
    span, path = f"refs/tags/{since}..refs/tags/{until}", _FRONTENDS[frontend]
    command = ["git", "-c", "safe.directory=*", "log", "--reverse", "--format=%H %s", span, "--", path]
    listing = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout
    found = (Fix(*line.split(" ", 1)) for line in listing.splitlines())
    return [one for one in found if _FIX.search(one.subject)]


def reverse(fix: Fix, options: argparse.Namespace) -> Result:
    """Tests the fix's parent against the fix."""
    command = [sys.executable, "-m", "bot.cli", "run", "--backend", "tvm", "--frontend", options.frontend]
    command += ["--budget", options.budget, "--json", "--repo", str(options.repository)]
    command += ["--head", f"{fix.sha}^", "--base", fix.sha]
    env = os.environ | {"ASSAY_DATA_DIR": str(options.data)}
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    seconds = time.monotonic() - begun
    if done.returncode not in (0, 1):
        return Result(
            seconds, error=done.stderr.strip().splitlines()[-1][:300] if done.stderr.strip() else "?"
        )
    result: dict[str, Any] = json.loads(done.stdout)
    cases = [one for one in result["groups"] if one["classification"] == "regression"]
    tests = tuple(one["example"]["test"] for one in cases)
    confirmed = _CONFIRMED.search(done.stderr)
    return Result(seconds, tests, float(confirmed[1]) if confirmed else None, _reason(result))


def _reason(result: dict[str, Any]) -> str:
    """Why a result has no regression, as far as the report shows."""
    if "operators" not in result:
        return str(result["headline"])
    touched = [one["operator"] for one in (result["ranking"] or {}).get("touched", ()) if "operator" in one]
    rows = {one["operator"]: one for one in result["operators"]}
    parts = [
        f"{name} at head {_counts(rows[name]['head'])}, at base {_counts(rows[name]['base'])}"
        for name in touched[:_SHOWN]
        if name in rows
    ] or [
        f"no case of the operators that the change touches ran: {', '.join(touched[:_SHOWN]) or 'none known'}"
    ]
    for classification in ("changed", "inconclusive"):
        titles = [one["title"] for one in result["groups"] if one["classification"] == classification]
        parts += [f"{classification}: {title}" for title in titles[:_SHOWN]]
    return "; ".join(parts)


def _counts(verdicts: dict[str, int]) -> str:
    return " ".join(f"{cases} {verdict}" for verdict, cases in verdicts.items()) or "none"


def main(argv: Sequence[str]) -> int:
    """Prints a line for each fix, and the counts."""
    parser = argparse.ArgumentParser(prog="reversed-fixes", description=__doc__)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="data folder of Assay, kept between calls")
    parser.add_argument("--frontend", choices=sorted(_FRONTENDS), default="onnx")
    parser.add_argument("--since", default="v0.25.0")
    parser.add_argument("--until", default="v0.26.0")
    parser.add_argument("--budget", default="2m", help="of each pair")
    parser.add_argument("--fix", action="append", help="only this fix; first digits of its id")
    parser.add_argument("--newest", action="store_true", help="begin with the newest fix")
    parser.add_argument("--minutes", type=float, default=60.0, help="no further fix is begun after this")
    options = parser.parse_args(argv)
    fixes = list_fixes(options.repository, options.frontend, options.since, options.until)
    fixes = fixes[::-1] if options.newest else fixes
    if options.fix:
        fixes = [one for one in fixes if one.sha.startswith(tuple(options.fix))]
    print(f"{machine()}; {len(fixes)} fixes of the {options.frontend} frontend", flush=True)
    begun, results = time.monotonic(), list[Result]()
    for fix in fixes:
        if time.monotonic() - begun > options.minutes * 60:
            print(f"stopped: {options.minutes:g} minutes are over; {len(fixes) - len(results)} fixes not run")
            break
        results.append(reverse(fix, options))
        print(_line(fix, results[-1]), flush=True)
    flagged = sum(bool(one.cases) for one in results)
    print(
        f"flagged {flagged} of {len(results)} that were run, {sum(bool(one.error) for one in results)} failed"
    )
    return 0


def _line(fix: Fix, result: Result) -> str:
    if result.error:
        what = f"failed: {result.error}"
    elif result.cases:
        after = f" after {result.first:.0f} s" if result.first is not None else ""
        what = f"FLAGGED{after} by {', '.join(result.cases)}"
    else:
        what = f"not flagged: {result.reason}"
    return f"{fix.sha[:10]} {result.seconds:5.0f} s  {fix.subject[:70]}\n    {what}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
