"""How early the change-aware order finds what real commits of OpenVINO changed, against OPERA's and a random one.

Real are the verdicts of ONNX's node tests on OpenVINO's releases, and the pull requests with the files that
their threads name. Which cases a pull request is to be credited with is our assumption: those of the operators
its title names whose verdict differs between the release before it and the one after it. A commit that mended
a case is run backwards, as the commit that broke it.

Only paths are given to the ranking, no texts: that is less than a campaign has. `right` ranks with the commit's
own paths, `wrong` with those of every other commit that names other operators: what is lost when a change
misleads. The bar: right beats OPERA in the mean, and wrong loses less than right gains.

`--measure RELEASE --python PYTHON` runs the cases on a release (some minutes) and keeps the verdicts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzzing.prioritize.base import Context, get
from fuzzing.prioritize.change import Change, FileChange
from fuzzing.prioritize.change_aware import reordered
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.metrics import apfd
from fuzzing.prioritize.suites import load
from tests.benchmarks import _subjects
from tests.benchmarks._common import machine, verdict

FOLDER = Path(__file__).parent / "commits_data"
_OP = "src/frontends/onnx/frontend/src/op/"
_BRIDGE = "src/frontends/onnx/frontend/src/ops_bridge.cpp"
_TESTS = "src/frontends/onnx/tests/onnx_import.in.cpp"


@dataclass(frozen=True)
class Commit:
    """A pull request of OpenVINO between two of its releases.

    paths      that its thread, or the issue it closes, names
    operators  that its title names
    """

    pull: int
    before: str
    after: str
    operators: tuple[str, ...]
    paths: tuple[str, ...]

    def change(self) -> Change:
        """It as the ranking takes it: paths alone."""
        return Change(tuple(FileChange(path) for path in self.paths))


def _new(pull: int, before: str, after: str, operators: str, *stems: str, registered: bool = True) -> Commit:
    """A pull request that added converters: a file each, until 2024.2 their table too, and a test."""
    told = tuple(f"{_OP}{stem}.{suffix}" for stem in stems for suffix in ("cpp", "hpp"))
    return Commit(
        pull, before, after, tuple(operators.split()), told + ((_BRIDGE, _TESTS) if registered else (_TESTS,))
    )


COMMITS = (
    _new(19428, "2023.1.0", "2023.3.0", "BlackmanWindow HammingWindow HannWindow", "blackmanwindow", "hammingwindow",
         "hannwindow"),
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


def credited(commit: Commit, instances: dict[str, Instance]) -> set[str]:
    """The tests of the commit's operators that passed in one of its two releases only."""
    before, after = _verdicts(commit.before), _verdicts(commit.after)
    return {
        test
        for test, one in instances.items()
        if one.operator in commit.operators
        and test in before
        and test in after
        and (before[test] == "pass") != (after[test] == "pass")
    }


def _verdicts(release: str) -> dict[str, str]:
    with gzip.open(FOLDER / f"openvino-{release}.json.gz", "rt", encoding="utf-8") as file:
        found: dict[str, str] = json.load(file)
    return found


def compare(instances: dict[str, Instance], repetitions: int) -> bool:
    """Prints the table; whether the bar was kept."""
    findings = {commit: credited(commit, instances) for commit in COMMITS}
    known = [commit for commit, found in findings.items() if found]
    suites = {"onnx": load("openvino.onnx")}
    scores: dict[tuple[Commit, str], list[float]] = {}
    firsts: dict[tuple[Commit, str], list[int]] = {}
    for seed in range(1, repetitions + 1):
        shuffled = sorted(instances)
        random.Random(seed).shuffle(shuffled)
        drawn = [instances[test] for test in shuffled]
        context = Context(seed=seed, suites=suites)
        opera = list(get("opera")(drawn, context))
        orders = {"random": range(len(drawn)), "opera": [one.instance_index for one in opera]}
        changed = {
            commit: [
                one.instance_index
                for one in reordered(opera, drawn, Context(seed=seed, change=commit.change()))
            ]
            for commit in known
        }
        for commit in known:
            own: list[tuple[str, Sequence[int]]] = [*orders.items(), ("right", changed[commit])]
            others = [one for one in known if not set(one.operators) & set(commit.operators)]
            own += [("wrong", changed[other]) for other in others]
            for name, order in own:
                ranks = [rank for rank, at in enumerate(order, 1) if shuffled[at] in findings[commit]]
                scores.setdefault((commit, name), []).append(apfd(ranks, len(drawn)))
                firsts.setdefault((commit, name), []).append(ranks[0])
        print(f"repetition {seed} of {repetitions}", file=sys.stderr)
    return _table(known, findings, scores, firsts, len(instances))


_NAMES = ("random", "opera", "right", "wrong")


def _table(
    known: Sequence[Commit],
    findings: dict[Commit, set[str]],
    scores: dict[tuple[Commit, str], list[float]],
    firsts: dict[tuple[Commit, str], list[int]],
    cases: int,
) -> bool:
    print(f"\n{cases} cases; APFD of all credited cases, and in brackets the mean rank of the first")
    print(f"{'pull':>6} {'cases':>5}  " + "".join(f"{name:>16}" for name in _NAMES) + "  operators")
    for commit in known:
        cells = [
            f"{statistics.mean(scores[commit, name]):.3f} ({statistics.mean(firsts[commit, name]):5.0f})"
            for name in _NAMES
        ]
        row = "".join(f"{cell:>16}" for cell in cells)
        print(f"{commit.pull:>6} {len(findings[commit]):>5}  {row}  {' '.join(commit.operators)}")
    means = {name: [statistics.mean(scores[commit, name]) for commit in known] for name in _NAMES}
    row = "".join(
        f"{statistics.mean(means[name]):.3f} ± {statistics.stdev(means[name]):.3f}".rjust(16)
        for name in _NAMES
    )
    print(f"{'mean':>6} {'':>5}  {row}  of {len(known)} commits ± their spread")
    silent = [str(commit.pull) for commit in COMMITS if commit not in known]
    if silent:
        print(f"no case is credited to {', '.join(silent)}")
    opera, right, wrong = (statistics.mean(means[name]) for name in ("opera", "right", "wrong"))
    return right > opera and right - opera > opera - wrong


def _instances(work: Path) -> dict[str, Instance]:
    """Each test's instance; of tests with one case in common, the first."""
    told = _subjects._migrated("onnx-node-tests", work / "corpus", work)
    return {event["test"]: Instance.from_json(event["instance"]) for event in told}


def _measure(release: str, python: str, work: Path) -> None:
    told = list(_told(work))
    subject = _subjects.Subject("openvino", release, "onnx-node-tests")
    outcomes = _subjects._outcomes(subject, work / "corpus", [case for case, _ in told], python, work)
    verdicts = {test: outcomes[case].verdict.value for case, test in told if case in outcomes}
    FOLDER.mkdir(exist_ok=True)
    data = json.dumps(verdicts, sort_keys=True).encode()
    (FOLDER / f"openvino-{release}.json.gz").write_bytes(gzip.compress(data, mtime=0))


def _told(work: Path) -> Iterator[tuple[str, str]]:
    for event in _subjects._migrated("onnx-node-tests", work / "corpus", work):
        yield event["id"], event["test"]


def main(argv: Sequence[str]) -> int:
    """Prints the table, or measures a release."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks commits")
    parser.add_argument("--repetitions", type=int, default=5, help="OPERA's paper takes 5")
    parser.add_argument("--measure", metavar="RELEASE", help="run the cases on this release of OpenVINO")
    parser.add_argument("--python", default="", help="for --measure: an interpreter that has it")
    parser.add_argument("--work", type=Path, default=Path("commits-work"), help="the corpus is kept there")
    given = parser.parse_args(argv)
    given.work.mkdir(parents=True, exist_ok=True)
    if given.measure:
        _measure(given.measure, given.python, given.work)
        return 0
    print(machine())
    kept = compare(_instances(given.work), given.repetitions)
    return verdict(kept, "with the change APFD is above OPERA's, by more than a wrong change costs")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
