"""Runs `assay run --repo` on two commits and reads its result."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CONFIRMED = re.compile(r"^\[ *([\d.]+) s\] regression: ", re.MULTILINE)
_ADVICE = re.compile(r"\s*next: ")  # the last line of an error
_SHOWN = 5  # operators and titles of a reason


@dataclass(frozen=True)
class PairOptions:
    """How all pairs of a benchmark are run.

    data    Assay's data folder, kept between calls
    budget  of each pair, such as 60s
    """

    repository: Path
    data: Path
    backend: str
    frontend: str
    budget: str


@dataclass(frozen=True)
class PairResult:
    """What one commit shows against another.

    cases     test names of the regressions
    titles    of the regressions
    first     seconds to the first regression that was confirmed, None if none was
    verdicts  cases that ran at head
    reason    why there are no regressions
    error     why nothing was tested
    """

    seconds: float
    cases: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    first: float | None = None
    verdicts: int = 0
    reason: str = ""
    error: str = ""


def run_pair(head: str, base: str, options: PairOptions) -> PairResult:
    """The regressions of `head` against `base`."""
    command = [sys.executable, "-P", "-m", "bot.cli", "run", "--backend", options.backend]
    command += ["--frontend", options.frontend, "--budget", options.budget, "--json"]
    command += ["--repo", str(options.repository), "--head", head, "--base", base]
    env = os.environ | {"ASSAY_DATA_DIR": str(options.data.absolute())}
    begun = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    seconds = time.monotonic() - begun
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):  # 1 is a crash of Python's, too
        said = [line for line in done.stderr.splitlines() if line.strip() and not _ADVICE.match(line)]
        return PairResult(seconds, error=said[-1].strip()[:300] if said else "?")
    result: dict[str, Any] = json.loads(done.stdout)
    found = [one for one in result["groups"] if one["classification"] == "regression"]
    confirmed = _CONFIRMED.search(done.stderr)
    return PairResult(
        seconds,
        tuple(one["example"]["test"] for one in found),
        tuple(one["title"] for one in found),
        float(confirmed[1]) if confirmed else None,
        sum(sum(one["head"].values()) for one in result.get("operators", ())),
        _reason(result),
    )


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
