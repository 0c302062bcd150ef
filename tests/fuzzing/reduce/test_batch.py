"""Several cases reduced by one process: each as if it were alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fuzzing.cases import Corpus, TestCase
from fuzzing.errors import Exit
from fuzzing.execute.shard import Shard
from fuzzing.execute.worker_process import WorkerProcess
from fuzzing.reduce import __main__
from fuzzing.reduce.__main__ import main
from tests.fuzzing.reduce.faulty_backend import SEVERAL, STALE
from tests.fuzzing.reduce.test_graphs import BACKEND, onnx_case

pytestmark = pytest.mark.compiler_onnxruntime

Event = dict[str, Any]
TILE = onnx_case(
    "(float[2,3] x) => (float[2,3] y) <int64[2] r = {1, 1}> { a = Relu(x) y = Tile(a, r) }",
    x=(2, 3),
)
TILES = onnx_case(
    "(float[2,3] x) => (float[4,3] y) <int64[2] r = {2, 1}> { a = Tile(x, r) b = Abs(a) y = Relu(b) }",
    x=(2, 3),
)
KILLS = onnx_case("(float[2,3] x) => (float[2,3] y) { a = Relu(x) b = Neg(a) y = Abs(b) }", x=(2, 3))
SIN = onnx_case("(float[2,3] x) => (float[2,3] y) { y = Sin(x) }", x=(2, 3))
ELU = onnx_case("(float[2,3] x) => (float[2,3] y) { y = Elu(x) }", x=(2, 3))
ELUS = onnx_case("(float[2,3] x) => (float[2,3] y) { a = Elu(x) b = Relu(a) y = Elu(b) }", x=(2, 3))
BOTH = onnx_case(
    "(float[2,3] x) => (float[2,3] y) <int64[2] r = {1, 1}> { a = Tile(x, r) b = Neg(a) y = Tile(b, r) }",
    x=(2, 3),
)
#: ONNX's evaluator as a compiler that has no Tile.
FUSSY = """
from fuzzing.backends.base import register
from fuzzing.backends.onnx_reference import OnnxReference


@register
class Fussy(OnnxReference):
    name = "fussy"
    reference = False

    def convert(self, program, inputs):
        if b"Tile" in program.to_bytes():
            raise ValueError("cannot lower this operator")
        return super().convert(program, inputs)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def run(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    fault: str,
    cases: list[TestCase],
    *more: str,
    backend: str = BACKEND,
) -> list[Event]:
    """The events of one process, without what differs from run to run: times and addresses."""
    corpus = Corpus(folder / "corpus")
    for case in cases:
        corpus.add(case)
    ids = tuple(case.id for case in cases)
    options = {"fault": fault} if fault else {}
    shard = Shard(str(corpus.root), ids, backend, "digest", sys.executable, options=options)
    file = folder / "shard.json"
    file.write_text(json.dumps(shard.to_json()))
    capsys.readouterr()
    assert main([str(file), *more]) == Exit.OK
    return [_steady(json.loads(line)) for line in capsys.readouterr().out.splitlines()]


def _steady(event: Event) -> Event:
    if "outcome" not in event:
        return event
    changing = ("durations", "peak_bytes", "evidence")
    outcome = {name: value for name, value in event["outcome"].items() if name not in changing}
    evidence = {name: value for name, value in event["outcome"]["evidence"].items() if name != "native"}
    return event | {"seconds": 0.0, "outcome": outcome | {"evidence": evidence}}


def by_case(events: list[Event]) -> dict[str, list[Event]]:
    """Case → its events, the first of which is its begin."""
    found: dict[str, list[Event]] = {}
    for event in events:
        if event["event"] == "begin":
            mine = found.setdefault(event["case"], [])
        mine.append(event)
    return found


def kinds(events: list[Event]) -> Iterator[str]:
    return (event["event"] for event in events)


@pytest.mark.parametrize(
    ("fault", "cases"),
    [pytest.param(SEVERAL, [TILE, KILLS, SIN], marks=pytest.mark.slow), (STALE, [ELUS, ELU])],
)
def test_a_case_is_reduced_among_others_as_it_is_alone(
    fault: str, cases: list[TestCase], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In any order: nothing that an earlier case left in a process counts, such as what kills it there."""
    alone = {case.id: run(folder, capsys, fault, [case]) for case in cases}
    for order in (cases, cases[::-1]):
        assert by_case(run(folder, capsys, fault, order)) == alone


def test_of_three_cases_the_second_ends_the_compilers_process(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = by_case(run(folder, capsys, SEVERAL, [TILE, KILLS, TILES]))
    ends = [found[case.id][-1] for case in (TILE, KILLS, TILES)]
    assert [end["event"] for end in ends] == ["end"] * 3
    assert all(end["confirmed"] for end in ends)
    assert ends[1]["outcome"]["evidence"]["signal"] == "SIGSEGV"


def test_what_does_not_fail_costs_the_others_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = by_case(run(folder, capsys, SEVERAL, [SIN, TILE]))
    assert list(kinds(found[SIN.id])) == ["begin", "unreducible"]
    assert "nothing to reduce" in found[SIN.id][-1]["reason"]
    assert found[TILE.id][-1]["confirmed"]


def test_interpreters_are_started_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the compiler can be forked, which onnxruntime cannot."""
    started: list[str] = []
    start = WorkerProcess._start_interpreter

    def counted(self: WorkerProcess, *given: Any) -> Any:
        started.append(Path(self.command.backend).stem)
        return start(self, *given)

    monkeypatch.setattr(WorkerProcess, "_start_interpreter", counted)
    (backend := folder / "fussy.py").write_text(FUSSY)
    run(folder, capsys, "", [TILE], backend=str(backend))
    alone = sorted(started)
    assert alone.count("fussy") == 2, "one searches, another confirms"
    started.clear()
    found = by_case(run(folder, capsys, "", [TILE, TILES, BOTH], backend=str(backend)))
    assert all(events[-1]["confirmed"] for events in found.values())
    assert sorted(started) == alone


def test_a_journal_belongs_to_each_case(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journals = [folder / "one", folder / "two"]
    given = [text for journal in journals for text in ("--journal", str(journal))]
    run(folder, capsys, SEVERAL, [TILE, TILES], *given)
    written = [journal.read_text() for journal in journals]
    again = by_case(run(folder, capsys, SEVERAL, [TILE, TILES], *given))
    assert all(events[-1]["runs"] == 0 and events[-1]["replayed"] for events in again.values())
    assert [journal.read_text() for journal in journals] == written


def test_cases_and_journals_must_be_as_many(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError):
        run(folder, capsys, SEVERAL, [TILE, TILES], "--journal", str(folder / "one"))
    assert "2 cases need as many journals, not 1" in capsys.readouterr().out


def test_no_case_begins_after_the_time(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own time is what is left of that of all."""
    clock = iter((0.0, 0.0, 0.0, 5.0, 5.0))  # the start; a case's begin, twice, and its end; the next begin
    monkeypatch.setattr(__main__, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    found = by_case(run(folder, capsys, SEVERAL, [TILE, TILES], "--within", "5"))
    assert list(found) == [TILE.id]
    assert found[TILE.id][-1]["confirmed"]
