"""Cases per second of a migrated campaign on one core: migration, references, compilation, oracle.

All processes are bound to one core. Part of a source is migrated into a new corpus; then all its cases run in
a shard with one worker, including references and rechecks. Prints seconds of each stage, cases/s and CPU
seconds per case. The bars: 30 cases/s on OpenVINO (traced torch programs), 5 on TVM (exported), 100 on
onnxruntime (ONNX's node tests).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzzing.execute.shard import Shard
from tests.benchmarks._common import machine, verdict

#: Backend → source, options, the stride of its parts, minimum cases/s.
ROADS: dict[str, tuple[str, dict[str, str], int, float]] = {
    "onnxruntime": ("onnx-node-tests", {}, 1, 100.0),
    "openvino": ("torch-opinfo", {"capture": "traced"}, 8, 30.0),
    "tvm": ("torch-opinfo", {}, 32, 5.0),  # its torch frontend takes exported programs
}


def events(command: Sequence[str]) -> tuple[list[dict[str, Any]], float]:
    """The JSON lines that a program prints, and its seconds."""
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()], time.perf_counter() - begin


def migrate(source: str, parts: int, corpus: Path) -> tuple[list[str], float]:
    """Ids of the distinct cases in part of a source, and the seconds."""
    command = [sys.executable, "-m", "fuzzing.migrate", source, "--corpus", str(corpus)]
    reported, seconds = events([*command, "--part", f"1/{parts}"] if parts > 1 else command)
    return list(dict.fromkeys(event["id"] for event in reported if event["event"] == "case")), seconds


def run(
    backend: str, options: dict[str, str], corpus: Path, ids: Sequence[str]
) -> tuple[Counter[str], float]:
    """Cases by verdict, and the seconds."""
    shard = Shard(str(corpus), tuple(ids), backend, "bench", sys.executable, options=dict(options))
    path = corpus.parent / "shard.json"
    path.write_text(json.dumps(shard.to_json()))
    reported, seconds = events([sys.executable, "-m", "fuzzing.execute", str(path)])
    return Counter(event["outcome"]["verdict"] for event in reported if event["event"] == "outcome"), seconds


def main(argv: Sequence[str]) -> int:
    """Prints the figures; 1 if the bar is not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks throughput")
    parser.add_argument("--backend", default="onnxruntime", choices=sorted(ROADS))
    parser.add_argument("--parts", type=int, help="take the first of so many parts of the source")
    args = parser.parse_args(argv)
    source, options, parts, wanted = ROADS[args.backend]
    parts = args.parts or parts
    print(machine())
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        ids, migrated_s = migrate(source, parts, corpus)
        verdicts, run_s = run(args.backend, options, corpus, ids)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    total, count = migrated_s + run_s, verdicts.total()
    print(f"{args.backend} {options or ''}, {source}, part 1 of {parts}: {count} cases, {dict(verdicts)}")
    print(
        f"  migration {migrated_s:.1f} s ({1000 * migrated_s / count:.1f} ms a case), the rest {run_s:.1f} s"
    )
    print(
        f"  {count / total:.1f} cases/s; {1000 * (used.ru_utime + used.ru_stime) / count:.1f} ms of processor"
    )
    return verdict(
        count / total >= wanted, f"{args.backend}: at least {wanted:.0f} cases a second on one core"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
