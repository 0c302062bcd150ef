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
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks._commit_pairs import PairOptions, PairResult, run_pair
from tests.benchmarks._common import machine

_FRONTENDS = {
    "onnx": "python/tvm/relax/frontend/onnx/",
    "torch": "python/tvm/relax/frontend/torch/",
}
#: Subjects of fixes, as the project words them; new operators and refactorings are left out.
_FIX = re.compile(r"\b(fix|preserve|recover|correct|cast|handle|accept)", re.IGNORECASE)


@dataclass(frozen=True)
class Fix:
    """A commit that fixes a frontend."""

    sha: str
    subject: str


def list_fixes(repository: Path, frontend: str, since: str, until: str) -> list[Fix]:
    """The fixes of a frontend between two tags, oldest first."""
    span, path = f"refs/tags/{since}..refs/tags/{until}", _FRONTENDS[frontend]
    command = ["git", "-c", "safe.directory=*", "log", "--reverse", "--format=%H %s", span, "--", path]
    listing = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout
    found = (Fix(*line.split(" ", 1)) for line in listing.splitlines())
    return [one for one in found if _FIX.search(one.subject)]


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
    pairs = PairOptions(options.repository, options.data, "tvm", options.frontend, options.budget)
    begun, results = time.monotonic(), list[PairResult]()
    for fix in fixes:
        if time.monotonic() - begun > options.minutes * 60:
            print(f"stopped: {options.minutes:g} minutes are over; {len(fixes) - len(results)} fixes not run")
            break
        results.append(run_pair(f"{fix.sha}^", fix.sha, pairs))
        print(_line(fix, results[-1]), flush=True)
    flagged = sum(bool(one.cases) for one in results)
    print(
        f"flagged {flagged} of {len(results)} that were run, {sum(bool(one.error) for one in results)} failed"
    )
    return 0


def _line(fix: Fix, result: PairResult) -> str:
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
