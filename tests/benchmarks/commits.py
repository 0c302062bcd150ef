"""How early the change-aware order finds what real commits of OpenVINO changed, against OPERA's order.

The verdicts of ONNX's node tests on OpenVINO's releases and the pull requests with their files are real.
Which cases a pull request affects is an assumption: those of the operators in its title that pass in only one
of the releases before and after it. A commit that fixed a case is run backwards, as the commit that broke it.

The ranking gets paths only, less than in a campaign. `right` ranks with the commit's own paths, `wrong` with
those of all other commits that name other operators. The bar: right beats OPERA on average, and wrong loses
less than right gains.

`--measure RELEASE --python PYTHON` runs the cases on a release (minutes) and stores the verdicts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzing.prioritize.change import Change, FileChange
from fuzzing.prioritize.change_aware import reorder
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.metrics import apfd
from fuzzing.prioritize.strategies import Context, Ranked, get
from fuzzing.prioritize.suites import load
from tests.benchmarks._common import machine, verdict

FOLDER = Path(__file__).parent / "commits_data"
_CASES = FOLDER / "onnx-node-tests.jsonl.gz"
_OP = "src/frontends/onnx/frontend/src/op/"
_BRIDGE = "src/frontends/onnx/frontend/src/ops_bridge.cpp"
_TESTS = "src/frontends/onnx/tests/onnx_import.in.cpp"


@dataclass(frozen=True)
class Commit:
    """A pull request of OpenVINO between two of its releases.

    paths      named in its thread or the issue it closes
    operators  named in its title
    """

    pull: int
    before: str
    after: str
    operators: tuple[str, ...]
    paths: tuple[str, ...]

    def change(self) -> Change:
        """The change for the ranking: paths only."""
        return Change(tuple(FileChange(path) for path in self.paths))


def _new(pull: int, before: str, after: str, operators: str, *stems: str, registered: bool = True) -> Commit:
    """A pull request that added converters: a file each, a test, and until 2024.2 their table."""
    reported = tuple(f"{_OP}{stem}.{suffix}" for stem in stems for suffix in ("cpp", "hpp"))
    return Commit(
        pull,
        before,
        after,
        tuple(operators.split()),
        reported + ((_BRIDGE, _TESTS) if registered else (_TESTS,)),
    )


COMMITS = (
    _new(19428, "2023.1.0", "2023.3.0", "BlackmanWindow HammingWindow HannWindow",
         "blackmanwindow", "hammingwindow", "hannwindow"),
    _new(21585, "2023.1.0", "2023.3.0", "BitwiseAnd", "bitwise_and"),
    _new(21816, "2023.3.0", "2024.0.0", "BitwiseXor", "bitwise_xor"),
    _new(22395, "2023.3.0", "2024.0.0", "Gelu", "gelu", "com.microsoft/gelu"),
    _new(22591, "2023.3.0", "2024.0.0", "BitwiseNot", "bitwise_not"),
    _new(22787, "2023.3.0", "2024.0.0", "LayerNormalization", "layer_normalization"),
    _new(22833, "2024.0.0", "2024.6.0", "Mish", "mish"),
    _new(23475, "2024.0.0", "2024.6.0", "ReduceMax", "reduce"),
    _new(23508, "2024.0.0", "2024.6.0", "ReduceLogSum", "reduce"),
    _new(23619, "2024.0.0", "2024.6.0", "ReduceMin", "reduce"),
    _new(25879, "2024.0.0", "2024.6.0", "ReduceLogSumExp", "reduce", registered=False),
    Commit(34184, "2026.0.0", "2026.4.1", ("Attention",), (
        f"{_OP}attention.cpp", "src/frontends/onnx/frontend/src/utils/attention.hpp", _TESTS)),
    Commit(35545, "2026.0.0", "2026.4.1", ("RMSNormalization", "RotaryEmbedding"), (
        "src/common/transformations/include/openvino/decompositions/rms_norm.hpp",)),
    Commit(36689, "2026.0.0", "2026.4.1", ("Attention",), (
        f"{_OP}attention.cpp", f"{_OP}com.microsoft/multi_head_attention.cpp")),
    Commit(37172, "2026.0.0", "2026.4.1", ("LpPool",), (
        "src/frontends/onnx/frontend/src/utils/pooling_factory.cpp",
        "src/frontends/onnx/tests/tests_python/test_backend.py")),
)  # fmt: skip


def releases() -> tuple[Commit, ...]:
    """Each pair of releases as one commit with all paths above, not matched by name."""
    pairs = sorted({(commit.before, commit.after) for commit in COMMITS})
    return tuple(
        Commit(
            0,
            *pair,
            (),
            tuple(
                dict.fromkeys(
                    path for one in COMMITS if (one.before, one.after) == pair for path in one.paths
                )
            ),
        )
        for pair in pairs
    )


def credited(commit: Commit, instances: dict[str, Instance]) -> set[str]:
    """The tests of the commit's operators, or of all, that pass in only one of its two releases."""
    before, after = _verdicts(commit.before), _verdicts(commit.after)
    return {
        test
        for test, one in instances.items()
        if (one.operator in commit.operators or not commit.operators)
        and test in before
        and test in after
        and (before[test] == "pass") != (after[test] == "pass")
    }


def _verdicts(release: str) -> dict[str, str]:
    with gzip.open(FOLDER / f"openvino-{release}.json.gz", "rt", encoding="utf-8") as file:
        found: dict[str, str] = json.load(file)
    return found


@dataclass
class _Scores:
    """APFD and the rank of the first finding: one commit, one order, a value for each repetition."""

    apfds: list[float] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)

    def add(self, order: Iterable[str], findings: set[str], cases: int) -> None:
        ranks = [rank for rank, test in enumerate(order, 1) if test in findings]
        self.apfds.append(apfd(ranks, cases))
        self.firsts.append(ranks[0])

    def __str__(self) -> str:
        if not self.apfds:
            return ""
        return f"{statistics.mean(self.apfds):.3f} ({statistics.mean(self.firsts):4.0f})"


Table = dict[Commit, dict[str, _Scores]]
_ORDERS = ("random", "opera", "right", "wrong")


def compare(instances: dict[str, Instance], repetitions: int) -> bool:
    """Prints the table; whether the bar was met."""
    findings = {commit: found for commit in (*COMMITS, *releases()) if (found := credited(commit, instances))}
    table: Table = {commit: {order: _Scores() for order in _ORDERS} for commit in findings}
    suites = {"onnx": load("openvino.onnx")}
    for seed in range(1, repetitions + 1):
        tests = sorted(instances)
        random.Random(seed).shuffle(tests)
        drawn = [instances[test] for test in tests]
        opera = list(get("opera")(drawn, Context(seed=seed, suites=suites)))
        changed = {
            commit: _tests(reorder(opera, drawn, Context(seed=seed, change=commit.change())), tests)
            for commit in findings
        }
        for commit, found in findings.items():
            scores = table[commit]
            scores["random"].add(tests, found, len(tests))
            scores["opera"].add(_tests(opera, tests), found, len(tests))
            scores["right"].add(changed[commit], found, len(tests))
            for other in findings:
                if other.pull and commit.pull and not set(other.operators) & set(commit.operators):
                    scores["wrong"].add(changed[other], found, len(tests))
        print(f"repetition {seed} of {repetitions}", file=sys.stderr)
    return _print(table, findings, len(instances))


def _tests(order: Iterable[Ranked], tests: Sequence[str]) -> list[str]:
    return [tests[one.instance_index] for one in order]


def _print(table: Table, findings: dict[Commit, set[str]], cases: int) -> bool:
    print(f"\n{cases} cases; APFD of all credited cases, and in brackets the mean rank of the first")
    print(f"{'pull':>6} {'cases':>5} " + "".join(f"{name:>15}" for name in _ORDERS) + "  operators")
    for commit, scores in table.items():
        row = "".join(f"{scores[name]!s:>15}" for name in _ORDERS)
        named = " ".join(commit.operators) or f"all, {commit.before} to {commit.after}"
        print(f"{commit.pull or '':>6} {len(findings[commit]):>5} {row}  {named}")
    single = [scores for commit, scores in table.items() if commit.pull]
    means = {name: [statistics.mean(scores[name].apfds) for scores in single] for name in _ORDERS}
    row = "".join(
        f"{statistics.mean(means[name]):.3f} ± {statistics.stdev(means[name]):.3f}".rjust(15)
        for name in _ORDERS
    )
    better = sum(right > opera for right, opera in zip(means["right"], means["opera"], strict=True))
    print(f"{'mean':>6} {'':>5} {row}  of {len(single)} pulls ± their spread; right above opera in {better}")
    opera, right, wrong = (statistics.mean(means[name]) for name in _ORDERS[1:])
    return right > opera and right - opera > opera - wrong


def _instances() -> dict[str, Instance]:
    """The instance of each test; the first of tests that share a case."""
    with gzip.open(_CASES, "rt", encoding="utf-8") as file:
        reported = [json.loads(line) for line in file]
    return {one["test"]: Instance.from_json(one["instance"]) for one in reported}


# Measuring -------------------------------------------------------------------------------------------


def _measure(release: str, python: str, work: Path) -> None:
    """Runs every case once on a release and stores the verdicts."""
    work.mkdir(parents=True, exist_ok=True)
    catalog = work / "onnx-node-tests.jsonl"
    if not catalog.exists():
        _lines([*_MIGRATE, "--corpus", str(work / "corpus")], catalog)
    reported = {one["id"]: one for one in _events(catalog, "case")}
    shard = work / f"{release}.shard.json"
    shard.write_text(
        json.dumps(
            _SHARD | {"corpus": str(work.absolute() / "corpus"), "python": python, "cases": list(reported)}
        )
    )
    outcomes = work / f"{release}.jsonl"
    _lines([sys.executable, "-m", "fuzzing.execute", str(shard)], outcomes)
    found = [one["outcome"] for one in _events(outcomes, "outcome")]
    verdicts = {reported[one["case"]]["test"]: one["verdict"] for one in found}
    FOLDER.mkdir(exist_ok=True)
    cases = [{"test": one["test"], "instance": one["instance"]} for one in reported.values()]
    _keep(_CASES, "".join(json.dumps(one, sort_keys=True) + "\n" for one in cases))
    _keep(FOLDER / f"openvino-{release}.json.gz", json.dumps(verdicts, sort_keys=True))


_MIGRATE = [sys.executable, "-m", "fuzzing.migrate", "onnx-node-tests"]
_SHARD = {"backend": "openvino", "toolchain": "old", "options": {}, "limits": {}}


def _lines(command: Sequence[str], path: Path) -> None:
    partial = path.with_suffix(".partial")
    with open(partial, "w", encoding="utf-8") as file:
        subprocess.run(command, check=True, stdout=file)
    partial.rename(path)


def _events(path: Path, kind: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [event for event in events if event["event"] == kind]


def _keep(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def main(argv: Sequence[str]) -> int:
    """Prints the table, or measures a release."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks commits")
    parser.add_argument("--repetitions", type=int, default=5, help="OPERA's paper takes 5")
    parser.add_argument("--measure", metavar="RELEASE", help="run the cases on this release of OpenVINO")
    parser.add_argument("--python", default="", help="for --measure: an interpreter that has it")
    parser.add_argument("--work", type=Path, default=Path("commits-work"), help="the corpus is kept there")
    given = parser.parse_args(argv)
    if given.measure:
        _measure(given.measure, given.python, given.work)
        return 0
    print(machine())
    kept = compare(_instances(), given.repetitions)
    return verdict(kept, "with the change APFD is above OPERA's, by more than a wrong change costs")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
