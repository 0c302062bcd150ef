"""Time of `assay --help`, compared with an empty interpreter."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence


def seconds(*arguments: str) -> float:
    """Wall time of an interpreter process with these arguments."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main(argv: Sequence[str]) -> int:
    """Prints the medians and their ratio; the bar is 0.3 s."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks help-startup")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args(argv)
    pairs = [(seconds("-m", "bot.cli", "--help"), seconds("-c", "pass")) for _ in range(args.rounds + 1)][1:]
    ours, floor = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"assay --help {ours:.3f} s  python {floor:.3f} s  ratio {ours / floor:.1f}  ({args.rounds} rounds)"
    )
    return 0
