"""Shards through their own command line, as a runner starts them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase, TorchProgram
from fuzzing.errors import UsageError
from fuzzing.execute import shard_run as running
from fuzzing.execute import supervisor as supervising
from fuzzing.execute.limits import Limits
from fuzzing.execute.reference_outputs import ReferenceOutputs
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execute.shard import Shard
from fuzzing.execute.worker_process import WorkerProcess
from fuzzing.outcomes import Outcome, Verdict

MISBEHAVING = str(Path(__file__).parent / "misbehaving_backend.py")
ADD = "(float[2] x, float[2] y) => (float[2] z) { z = Add(x, y) }"


@dataclass(frozen=True)
class Ended:
    """What a shard's process printed and how it ended."""

    code: int
    events: list[dict[str, Any]]

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes, in the order in which they came."""
        return [Outcome.from_json(event["outcome"]) for event in self.events if event["event"] == "outcome"]


def run(arguments: list[str]) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "fuzzing.execute", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, [json.loads(line) for line in done.stdout.splitlines()])


def execute(folder: Path, cases: Iterable[TestCase | str], **given: Any) -> Ended:
    """Runs a shard of these cases; a text stands for the id of a case that nobody stored."""
    corpus = Corpus(folder / "corpus")
    ids = []
    for case in cases:
        if isinstance(case, TestCase):
            corpus.add(case)
        ids.append(case.id if isinstance(case, TestCase) else case)
    fields = {"backend": MISBEHAVING, "toolchain": "digest", "python": sys.executable} | given
    shard = Shard(corpus=str(corpus.root), cases=tuple(ids), **fields)
    path = folder / "shard.json"
    path.write_text(json.dumps(shard.to_json()))
    return run([str(path)])


def bad(program: str, expected: bool = True) -> TestCase:
    """A case of the misbehaving backend."""
    given = () if expected else None
    return TestCase(OnnxModel(program.encode()), (), Provenance("tests", program, "", "", ""), expected=given)


def onnx_case(graph: str = ADD, expected: tuple[tuple[str, Tensor], ...] | None = None) -> TestCase:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}')
    inputs = (
        ("x", Tensor.of(np.array([1, 2], np.float32))),
        ("y", Tensor.of(np.array([10, 20], np.float32))),
    )
    origin = Provenance("tests", graph, "", "", "")
    return TestCase(OnnxModel(model.SerializeToString()), inputs, origin, expected=expected)


def test_events_come_in_order(tmp_path: Path) -> None:
    cases = [bad(f"none:{n}") for n in range(5)]
    ended = execute(tmp_path, cases)
    assert ended.code == 0
    first, *middle, last = ended.events
    assert first == {"event": "start", "cases": 5}
    assert [event["event"] for event in middle] == ["outcome"] * 5
    assert [outcome.case for outcome in ended.outcomes] == [case.id for case in cases]
    assert {outcome.verdict for outcome in ended.outcomes} == {Verdict.PASS}
    assert {(one.toolchain, one.device, one.backend) for one in ended.outcomes} == {
        ("digest", "CPU", "misbehaving")
    }
    assert (last["event"], last["outcomes"], last["respawns"], last["stopped"]) == ("end", 5, 0, "")
    assert last["versions"]["numpy"] == np.__version__
    assert 0 <= last["busy"] <= last["seconds"]


def test_no_cases_are_no_trouble(tmp_path: Path) -> None:
    ended = execute(tmp_path, [])
    assert (ended.code, [event["event"] for event in ended.events]) == (0, ["start", "end"])


def test_a_second_shard_says_of_prepared_cases_what_the_first_said(tmp_path: Path) -> None:
    cases = [
        bad("none:"),
        bad("compile:raise odd shape"),
        replace(bad("none:"), expected=(("z", Tensor.of(np.ones(2))),)),
        replace(
            bad("none:"), inputs=(("x", Tensor.of(np.ones(3))),), expected=(("x", Tensor.of(np.ones(3))),)
        ),
    ]
    first = execute(tmp_path, cases)
    for case in cases:
        (Corpus(tmp_path / "corpus").folder(case.id) / "case.json").write_text("spoiled")
    second = run([str(tmp_path / "shard.json")])
    reported = [[(one.case, one.verdict, one.summary) for one in ended.outcomes] for ended in (first, second)]
    assert reported[0] == reported[1]
    verdicts = [verdict for _, verdict, _ in reported[0]]
    assert verdicts == [Verdict.PASS, Verdict.CRASH, Verdict.WRONG_RESULT, Verdict.PASS]


def test_what_goes_wrong_has_its_verdict(tmp_path: Path) -> None:
    programs = {
        "none:": Verdict.PASS,
        "compile:raise odd shape": Verdict.CRASH,
        "run:segfault": Verdict.CRASH,
        "compile:abort": Verdict.CRASH,
        "run:exit 3": Verdict.CRASH,
        "compile:hang": Verdict.HANG,  # not where another eats, which takes its time on a busy machine
        "run:eat": Verdict.OUT_OF_MEMORY,
        "run:reserve": Verdict.OUT_OF_MEMORY,
        "none:last": Verdict.PASS,
    }
    cases = {bad(program).id: program for program in programs}
    limits = Limits(compile_s=4, memory_bytes=200 << 20)
    ended = execute(tmp_path, [bad(program) for program in programs], limits=limits)
    assert ended.code == 0
    assert {cases[outcome.case]: outcome.verdict for outcome in ended.outcomes} == programs
    assert len(ended.outcomes) == len(programs)
    assert ended.events[-1]["respawns"] in range(5, 8)  # five ends, of which two by a signal may be repeated
    by_program = {cases[outcome.case]: outcome for outcome in ended.outcomes}
    assert by_program["run:segfault"].evidence.signal == "SIGSEGV"
    assert by_program["run:eat"].peak_bytes > 200 << 20
    assert "about to hang" in by_program["compile:hang"].evidence.log


def test_repeats_and_fresh_processes(tmp_path: Path) -> None:
    cases = [bad("none:"), bad("run:segfault")]
    ended = execute(tmp_path, cases, repeats=3, fresh=True, workers=2)
    seen = Counter(
        (event["outcome"]["case"], event["repeat"]) for event in ended.events if event["event"] == "outcome"
    )
    assert seen == Counter({(case.id, repeat): 1 for case in cases for repeat in range(3)})
    assert {outcome.verdict for outcome in ended.outcomes if outcome.case == cases[1].id} == {Verdict.CRASH}
    assert ended.events[-1]["outcomes"] == 6


@pytest.mark.parametrize(
    ("forked", "unforked", "own", "shared"), [(False, 0, 3, 2), (True, 0, 0, 3), (True, 1, 1, 3)]
)
def test_repeats_and_ablation_import_the_compiler_once_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked: bool, unforked: int, own: int, shared: int
) -> None:
    """Of n repeats the first may have an interpreter of its own; the others share one each, the first of
    which forks the levels too: theirs are the options of the cases.
    """
    corpus, cases = Corpus(tmp_path / "corpus"), [bad("run:segfault"), bad("run:raise"), bad("run:exit 3")]
    for case in cases:
        corpus.add(case)
    started: list[bool] = []

    class Counted(WorkerProcess):
        def _start_interpreter(self, descriptors: Any, scratch: str, cache_folder: str) -> Any:
            started.append("forkserver" in descriptors)
            return super()._start_interpreter(descriptors, scratch, cache_folder)

    monkeypatch.setattr(supervising, "WorkerProcess", Counted)
    ids = tuple(case.id for case in cases)
    shard = Shard(
        str(corpus.root),
        ids,
        MISBEHAVING,
        "d",
        sys.executable,
        fresh=True,
        forked=forked,
        unforked=ids[1 : 1 + unforked],
        repeats=3,
        ablate=True,
    )
    outcomes = [outcome for _, outcome in running.ShardRun(shard).outcomes()]
    assert [outcome.verdict for outcome in outcomes] == [Verdict.CRASH] * 9
    assert [outcome.evidence.component for outcome in outcomes].count("everything") == 3
    assert (started.count(False), started.count(True)) == (own, shared)


def test_a_spent_budget_stops_the_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In fresh processes nothing is drawn ahead of the case at work."""
    present = [0.0]
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: present[0]))
    corpus, cases = Corpus(tmp_path / "corpus"), [bad(f"none:{n}") for n in range(6)]
    for case in cases:
        corpus.add(case)
    ids = tuple(case.id for case in cases)
    shard = Shard(str(corpus.root), ids, MISBEHAVING, "digest", sys.executable, budget_s=60.0, fresh=True)
    run = running.ShardRun(shard)
    found = []
    for _, outcome in run.outcomes():
        found.append(outcome.case)
        present[0] += 30.5  # two cases' worth of it spend the budget
    assert (found, run.stopped) == (list(ids[:2]), "budget")


def test_cases_that_were_sent_ahead_do_not_run_far_beyond_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = [0.0]
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: present[0]))
    corpus, cases = Corpus(tmp_path / "corpus"), [bad(f"none:{n}") for n in range(4)]
    for case in cases:
        corpus.add(case)
    ids = tuple(case.id for case in cases)
    shard = Shard(str(corpus.root), ids, MISBEHAVING, "digest", sys.executable, budget_s=60.0)
    run = running.ShardRun(shard)
    found = []
    for _, outcome in run.outcomes():
        found.append(outcome.case)
        present[0] += 63.0
    assert (found, run.stopped) == (list(ids[:1]), "budget")


def test_a_shard_whose_budget_was_spent_says_so(tmp_path: Path) -> None:
    ended = execute(tmp_path, [bad("none:")], budget_s=1e-9)
    assert (ended.code, ended.events[-1]["stopped"], ended.outcomes) == (0, "budget", [])


def test_a_budget_that_suffices_stops_nothing(tmp_path: Path) -> None:
    ended = execute(tmp_path, [bad("none:")], budget_s=600.0)
    assert (ended.events[-1]["stopped"], len(ended.outcomes)) == ("", 1)


@pytest.mark.compiler_onnxruntime
def test_cases_without_outputs_are_judged_by_the_evaluator_under_their_own_id(tmp_path: Path) -> None:
    """With its reference a case is another, with another id; the campaign planned this one."""
    bare = onnx_case()
    shipped = replace(bare, expected=(("z", Tensor.of(np.array([11, 22], np.float32))),))
    assert bare.id != shipped.id
    ended = execute(tmp_path, [bare, shipped], backend="onnxruntime", repeats=2)
    assert ended.code == 0
    seen = Counter((outcome.case, outcome.verdict) for outcome in ended.outcomes)
    assert seen == Counter({(bare.id, Verdict.PASS): 2, (shipped.id, Verdict.PASS): 2})


@pytest.mark.compiler_onnxruntime
def test_what_fails_in_its_own_library_is_invalid(tmp_path: Path) -> None:
    wrong = onnx_case(
        "(float[2] x, float[2] y) => (float[3] z) { s = Constant<value_ints = [3]>() z = Reshape(x, s) }"
    )
    good = onnx_case()
    ended = execute(tmp_path, [wrong, good], backend="onnxruntime", repeats=2)
    assert ended.code == 0
    seen = Counter((outcome.case, outcome.verdict) for outcome in ended.outcomes)
    assert seen == Counter({(wrong.id, Verdict.INVALID): 2, (good.id, Verdict.PASS): 2})
    [summary] = {outcome.summary for outcome in ended.outcomes if outcome.case == wrong.id}
    assert "onnx_reference fails" in summary


@pytest.mark.compiler_onnxruntime
def test_a_shard_of_nothing_but_invalid_cases_ends_well(tmp_path: Path) -> None:
    cases = [replace(bad(f"no model {n}"), expected=None) for n in range(3)]
    ended = execute(tmp_path, cases, backend="onnxruntime")
    assert ended.code == 0
    assert [outcome.verdict for outcome in ended.outcomes] == [Verdict.INVALID] * 3
    assert ended.events[-1]["outcomes"] == 3


@pytest.mark.compiler_onnxruntime
def test_references_are_kept_by_content(tmp_path: Path) -> None:
    """A second shard judges by what lies on the disk; planted there, it is at odds with the library."""
    case = onnx_case()
    first = execute(tmp_path, [case], backend="onnxruntime")
    assert [outcome.verdict for outcome in first.outcomes] == [Verdict.PASS]
    [kept] = (tmp_path / "corpus" / ".references").rglob(f"{case.id}.json")
    other = Tensor.of(np.array([11, 23], np.float32))
    record = json.loads(kept.read_text())
    kept.write_text(kept.read_text().replace(record["outputs"][0][1]["data"], _data(other)))
    second = execute(tmp_path, [case], backend="onnxruntime")
    assert [outcome.verdict for outcome in second.outcomes] == [Verdict.NONDETERMINISTIC]
    assert [event["cached"] for event in (first.events[-1], second.events[-1])] == [
        {"references": 0},
        {"references": 1},
    ]


def _data(tensor: Tensor) -> str:
    from fuzzing.cases.values import value_to_json

    text = value_to_json(tensor)["data"]
    assert isinstance(text, str)
    return text


BAD_SHARDS: dict[str, Any] = {
    "not JSON": "{",
    "a list": [],
    "empty": {},
    "unknown key": {"color": "red"},
    "no worker": {"workers": 0},
    "no repeat": {"repeats": 0},
    "workers in words": {"workers": "two"},
    "budget in words": {"budget_s": "soon"},
    "unknown backend": {"backend": "nope"},
    "no backend file": {"backend": "/nowhere/backend.py"},
    "unknown device": {"device": "NPU"},
    "unknown limit": {"limits": {"cpu_s": 1}},
    "limit below zero": {"limits": {"run_s": -1}},
    "no case id": {"cases": ["../../etc/passwd"]},
    "case that is not there": {"cases": ["0" * 64]},
    "cases that are none": {"cases": [3]},
    "unknown profile": {"profile": "nope"},
    "unknown option": {"options": {"color": "red"}},
    "option of no such value": {"options": {"load": "gently"}},
    "corpus that is none": {"corpus": 3},
}


@pytest.mark.parametrize("change", BAD_SHARDS.values(), ids=BAD_SHARDS.keys())
def test_bad_shards_are_exit_code_2(change: Any, tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "corpus")
    corpus.add(bad("none:"))
    good = Shard(str(corpus.root), (bad("none:").id,), MISBEHAVING, "digest", sys.executable).to_json()
    spec = good | change if isinstance(change, dict) and change else change
    path = tmp_path / "shard.json"
    path.write_text(spec if isinstance(spec, str) else json.dumps(spec))
    ended = run([str(path)])
    assert ended.code == 2
    assert (ended.events[-1]["event"], ended.events[-1]["kind"]) == ("error", "usage")
    assert ended.events[-1]["message"]
    assert not ended.outcomes


@pytest.mark.parametrize("arguments", [[], ["/nowhere/shard.json"], ["a", "b"]])
def test_bad_command_lines_are_exit_code_2(arguments: list[str]) -> None:
    ended = run(arguments)
    assert (ended.code, [event["kind"] for event in ended.events]) == (2, ["usage"])


@pytest.mark.parametrize(
    ("given", "helps"),
    [
        ({"python": "/nowhere/python"}, "cannot start /nowhere/python"),
        ({"options": {"load": "raise"}}, "no such compiler here"),
        ({"options": {"load": "segfault"}}, "SIGSEGV"),
        ({"options": {"load": "hang"}, "limits": Limits(import_s=0.5)}, "took more than 0.5 s"),
    ],
)
def test_a_broken_toolchain_is_exit_code_3_and_no_verdict(
    given: dict[str, Any], helps: str, tmp_path: Path
) -> None:
    ended = execute(tmp_path, [bad("none:")], **given)
    assert ended.code == 3
    assert ended.events[-1]["kind"] == "toolchain"
    assert helps in ended.events[-1]["message"]
    assert not ended.outcomes


def test_json_and_back() -> None:
    shard = Shard("c", ("a", "b"), "b", "t", "p", limits=Limits(run_s=1), repeats=2, budget_s=1.5)
    assert Shard.from_json(json.loads(json.dumps(shard.to_json()))) == shard
    with pytest.raises(UsageError):
        Shard.from_json({"cases": []})


def test_references_live_beside_the_cases(tmp_path: Path) -> None:
    """They are no cases: a corpus passes over them."""
    case = onnx_case()
    corpus = Corpus(tmp_path)
    corpus.add(case)
    [(completed, error)] = ReferenceOutputs(ReferenceRunners(tmp_path, sys.executable, Limits())).complete(
        [case]
    )
    assert error == ""
    assert completed.expected == (("z", Tensor.of(np.array([11, 22], np.float32))),)
    assert list(corpus.ids()) == [case.id]


def test_a_spoiled_case_is_invalid_and_the_others_are_run(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "corpus")
    cut, twisted, good = bad("none:cut"), bad("none:twisted"), bad("none:good")
    for case in (cut, twisted, good):
        corpus.add(case)
    (corpus.folder(cut.id) / "case.json").write_text("{")
    (corpus.folder(twisted.id) / "model.onnx").write_bytes(b"none:twistee")
    ended = execute(tmp_path, [cut.id, twisted.id, good.id], repeats=2)
    assert ended.code == 0
    seen = Counter((outcome.case, outcome.verdict) for outcome in ended.outcomes)
    assert seen == Counter(
        {(cut.id, Verdict.INVALID): 2, (twisted.id, Verdict.INVALID): 2, (good.id, Verdict.PASS): 2}
    )
    reasons = {outcome.case: outcome.evidence.message for outcome in ended.outcomes}
    assert "not JSON" in reasons[cut.id]
    assert "not what case.json describes" in reasons[twisted.id]


def test_programs_that_a_backend_does_not_take_are_unsupported(tmp_path: Path) -> None:
    call = TorchProgram("def forward(x):\n    return x\n")
    case = TestCase(call, (), Provenance("tests", "", "", "", ""))
    ended = execute(tmp_path, [case, bad("none:")])
    assert {outcome.case: outcome.verdict for outcome in ended.outcomes} == {
        case.id: Verdict.UNSUPPORTED,
        bad("none:").id: Verdict.PASS,
    }
    assert "misbehaving takes no TorchProgram programs" in {outcome.summary for outcome in ended.outcomes}


@pytest.mark.compiler_onnxruntime
def test_a_library_that_gives_two_results_judges_nobody(tmp_path: Path) -> None:
    """Said to be compared by value, a random operator differs between two runs of the library itself."""
    graph = "(float[2] x, float[2] y) => (float[2] z) { r = RandomNormalLike(x) z = Add(r, y) }"
    ended = execute(tmp_path, [onnx_case(graph)], backend="onnxruntime")
    [outcome] = ended.outcomes
    assert outcome.verdict is Verdict.NONDETERMINISTIC
    assert "the library itself gives two results" in outcome.summary


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("onnxruntime", marks=pytest.mark.compiler_onnxruntime),
        pytest.param("tvm", marks=pytest.mark.compiler_tvm),
    ],
)
def test_a_division_that_nobody_defines_accuses_no_compiler(tmp_path: Path, backend: str) -> None:
    """onnxruntime raises; TVM divides as C does, where this is undefined: some processors end the process."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (int32[2] x, int32[2] y) => (int32[2] z) { z = Div(x, y) }"
    )
    inputs = [("x", [7, np.iinfo(np.int32).min]), ("y", [0, -1])]
    case = TestCase(
        OnnxModel(model.SerializeToString()),
        tuple((name, Tensor.of(np.array(values, np.int32))) for name, values in inputs),
        Provenance("tests", "Div", "", "", ""),
    )
    [outcome] = execute(tmp_path, [case], backend=backend).outcomes
    assert outcome.verdict in (Verdict.PASS, Verdict.UNSUPPORTED), outcome.summary


@pytest.mark.compiler_onnxruntime
def test_an_appeal_is_kept_and_serves_again(tmp_path: Path) -> None:
    """An expected output that is off: the library gives another, too, and is not asked a second time."""
    case = onnx_case(expected=(("z", Tensor.of(np.array([11, 23], np.float32))),))
    first = execute(tmp_path, [case], backend="onnxruntime")
    [kept] = (tmp_path / "corpus" / ".references").rglob("*.recheck*.json")
    before = kept.stat().st_mtime_ns
    second = execute(tmp_path, [case], backend="onnxruntime", repeats=2)
    assert [outcome.verdict for outcome in first.outcomes + second.outcomes] == [Verdict.PASS] * 3
    assert kept.stat().st_mtime_ns == before


def test_what_fails_is_taken_apart_once(tmp_path: Path) -> None:
    """The misbehaving backend fails on every rung, so the first is to blame."""
    cases = [bad("compile:raise odd shape"), bad("none:")]
    ended = execute(tmp_path, cases, ablate=True, repeats=2)
    crashed = [outcome for outcome in ended.outcomes if outcome.verdict is Verdict.CRASH]
    assert sorted((one.evidence.ablation_runs, one.evidence.component) for one in crashed) == [
        ((), ""),
        ((("load=", "crash"),), "everything"),
    ]


def test_the_end_tells_what_was_cached_and_where_time_went(tmp_path: Path) -> None:
    ended = execute(tmp_path, [bad("none:")])
    assert ended.events[-1]["cached"] == {"references": 0}
    phases = ended.events[-1]["phases"]
    assert set(phases) == {"convert", "compile", "run"}
    assert sum(phases.values()) == pytest.approx(ended.events[-1]["busy"])


def test_a_configuration_is_told_by_the_outcome(tmp_path: Path) -> None:
    ended = execute(tmp_path, [bad("none:")], profile="isra")
    assert [outcome.configuration for outcome in ended.outcomes] == ["profile=isra"]
