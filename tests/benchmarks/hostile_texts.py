"""CPU time of readers on hostile texts: how it grows when the text doubles.

Prints for each reader the slowest text of 16,000 characters, its milliseconds, and the ratio to half the
length. A linear reader has a ratio of about 2, a quadratic one of 4. Exit code 1 if a ratio is above 3 and
the time above 50 ms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from bot.reports import text as report_text
from fuzzing.compiler_messages import normalize_message, parse_message
from fuzzing.outcomes import MAX_TEXT
from fuzzing.triage.native_stack import native_frames, runtime_message
from tests.hostile_texts import UNITS, repeat

READERS: dict[str, Callable[[str], object]] = {
    "parse_message": parse_message.__wrapped__,
    "normalize_message": normalize_message,
    "runtime_message": runtime_message,
    "native_frames": native_frames,
    "clean": report_text.clean,
    "plain": report_text.plain,
    "redact_paths": report_text.redact_paths,
}
MAX_RATIO, MIN_SECONDS = 3.0, 0.05


def main(argv: Sequence[str]) -> int:
    """Runs the benchmark; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks hostile-texts", description=__doc__)
    parser.add_argument("--length", type=int, default=MAX_TEXT, help="characters of the longer text")
    length = parser.parse_args(argv).length
    failed = False
    print(f"{'reader':<20} {'slowest text':<50} {'ms':>8} {'ratio':>6}")
    for name, read in READERS.items():
        unit = max(UNITS, key=lambda unit: _seconds(read, repeat(unit, length)))
        half, whole = (min(_seconds(read, repeat(unit, n)) for _ in range(5)) for n in (length // 2, length))
        failed = failed or (whole > MIN_SECONDS and whole > MAX_RATIO * half)
        print(f"{name:<20} {unit!r:<50} {whole * 1e3:>8.1f} {whole / half:>6.1f}")
    return int(failed)


def _seconds(read: Callable[[str], object], text: str) -> float:
    begin = time.process_time()
    read(text)
    return time.process_time() - begin
