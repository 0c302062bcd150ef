"""How long an overlay of a commit takes to be ready where the wheel is there, and the floor beside it.

The floor is the smoke test alone, which imports the compiler once; no overlay may accuse anyone without it.

`--repository` is a clone of a known compiler's repository; the wheel and what the benchmark makes are kept in
`--data`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bot import toolchains
from bot.commit_files import CommitFiles
from bot.config import resolve_config
from bot.github.local_repository import LocalRepository
from bot.toolchains import ToolchainSpec
from bot.toolchains.smoke import smoke_test
from fuzzing.file_trees import remove_tree
from tests.benchmarks._common import machine, verdict

_BAR_S = 5.0


def resolve(repository: Path, commit: str, wheel: str, data: Path) -> ToolchainSpec:
    """The overlay of a commit; raises ConfigError if there can be none."""
    source = LocalRepository(repository, data / "objects")
    read = CommitFiles(source, "", source.resolve(commit))
    config = resolve_config(read)
    assert config is not None, "this is no known compiler's repository"
    chosen = config.toolchain.model_copy(update={"provisioner": ["overlay"], "wheel": wheel})
    return toolchains.resolve(config.model_copy(update={"toolchain": chosen}), read, data)


def main(argv: Sequence[str]) -> int:
    """Prints the seconds of each round and their medians; 1 if an overlay takes longer than the bar."""
    parser = argparse.ArgumentParser(prog="overlay", description=__doc__)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="data folder of Assay, kept between calls")
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--wheel", default="", help="release under the sources [default: the nearest]")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    spec = resolve(options.repository, options.commit, options.wheel, options.data)
    ready = toolchains.provision(spec, options.data, print)
    overlays, floors = list[float](), list[float]()
    for _ in range(options.rounds):
        remove_tree(options.data / "toolchains" / ready.digest)
        before = _processor()
        overlays.append(_seconds(lambda: toolchains.provision(ready.spec, options.data, lambda _note: None)))
        between = _processor()
        floors.append(_seconds(lambda: smoke_test(ready.spec, Path(ready.python))))
        print(
            f"overlay {overlays[-1]:.2f} s, {between - before:.2f} s of processor time; "
            f"smoke test alone {floors[-1]:.2f} s, {_processor() - between:.2f} s",
            flush=True,
        )
    overlay, floor = statistics.median(overlays), statistics.median(floors)
    print(f"{ready.spec.label}: overlay / floor {overlay / floor:.2f}")
    return verdict(
        overlay <= _BAR_S, f"an overlay is ready in {_BAR_S:g} s with the wheel there: {overlay:.2f} s"
    )


def _seconds(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def _processor() -> float:
    """Processor seconds of this process and those it waited for: a busy machine adds few."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
