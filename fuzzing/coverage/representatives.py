"""`python -m fuzzing.coverage.representatives CORPUS [--keep FILE]`: the cases that keep a corpus's coverage.

A case stays if its id is in the file (one a line), if it cannot be read, or if it shows a coverage class
(`case_classes`) that no case before it shows. Those of the file come first, then the others by id; so a
corpus without the rest gives the same cases again. Cases are read one at a time. Prints a line of JSON each:

    {"event": "progress", "note": TEXT}                             every few seconds
    {"event": "case", "id": ID, "keep": true, "why": REASON}        a kind of class, referred or unreadable
    {"event": "case", "id": ID, "keep": false}
    {"event": "end", "cases": N, "kept": {REASON: N}, "classes": {KIND: N}}
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from fuzzing.cases import Corpus
from fuzzing.coverage.case_classes import KINDS, CoveredClasses
from fuzzing.coverage.models import InvalidModelError
from fuzzing.entry_point import emit_event, emit_event_now, run_main
from fuzzing.errors import CaseFormatError, UsageError

#: Reasons that are no kind of class: it is in the file; its files are corrupt.
REFERRED, UNREADABLE = "referred", "unreadable"
_PROGRESS_S = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.coverage.representatives")
    parser.add_argument("corpus", type=Path, help="a folder of cases")
    parser.add_argument("--keep", type=Path, help="ids that stay, one a line")
    given = parser.parse_args(arguments)
    return run_main(parser.prog, lambda: run(Corpus(given.corpus), _ids(given.keep)))


def _ids(path: Path | None) -> frozenset[str]:
    try:
        return frozenset() if path is None else frozenset(path.read_text(encoding="ascii").split())
    except OSError as error:
        raise UsageError(f"--keep {path}: {error.strerror}") from None


def run(corpus: Corpus, referred: Collection[str]) -> None:
    """Prints a decision for each case of the corpus."""
    covered, kept, cases, reported = CoveredClasses(), Counter[str](), 0, time.monotonic()
    for cases, (case_id, why) in enumerate(choose(corpus, referred, covered), 1):
        if why:
            kept[why] += 1
            emit_event(event="case", id=case_id, keep=True, why=why)
        else:
            emit_event(event="case", id=case_id, keep=False)
        if time.monotonic() - reported >= _PROGRESS_S:
            reported = time.monotonic()
            emit_event_now(event="progress", note=f"{cases:,} cases looked at, {kept.total():,} of them stay")
    emit_event(event="end", cases=cases, kept=dict(kept), classes=dict(covered.counts))


def choose(corpus: Corpus, referred: Collection[str], covered: CoveredClasses) -> Iterator[tuple[str, str]]:
    """Each case with the reason why it stays, "" if it need not."""
    for case_id in corpus.ids():
        if case_id in referred:
            yield case_id, REFERRED if _reason(corpus, case_id, covered) != UNREADABLE else UNREADABLE
    for case_id in corpus.ids():
        if case_id not in referred:
            yield case_id, _reason(corpus, case_id, covered)


def _reason(corpus: Corpus, case_id: str, covered: CoveredClasses) -> str:
    try:
        new = covered.add(corpus.get(case_id))
    except (CaseFormatError, InvalidModelError):
        return UNREADABLE
    return next((kind for kind in KINDS if new[kind]), "")


if __name__ == "__main__":
    sys.exit(main())
