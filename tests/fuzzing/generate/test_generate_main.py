"""`python -m fuzzing.generate`: corpora that depend on the seed alone, errors that say what to do."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuzzing.cases import Corpus, OnnxModel
from fuzzing.coverage import Tally, metrics_of
from fuzzing.coverage import operators as sets
from fuzzing.coverage.models import extract_scopes, read
from fuzzing.generate import case_builder, graph_coverage, supported_ops
from fuzzing.generate.__main__ import main
from fuzzing.generate.isra import GeneratorSettings, Solver
from fuzzing.graph import operators
from fuzzing.rng import derive_seed

Events = list[dict[str, Any]]
Run = Callable[..., tuple[int, Events]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def start(*words: str | Path) -> tuple[int, Events]:
        code = main([str(word) for word in words])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return start


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_run_is_the_same_whatever_the_jobs(run: Run, tmp_path: Path) -> None:
    requested = ("--count", "70", "--nodes", "1:6", "--seed", "5", "--dtypes", "float32,int64")
    code, events = run(*requested, "--out", tmp_path / "one")
    assert code == 0
    code, shared = run(*requested, "--jobs", "2", "--out", tmp_path / "two")
    assert code == 0
    assert events[:-1] == shared[:-1]
    assert events[-1]["measured"] == shared[-1]["measured"]
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert len(files(tmp_path / "one")) == 2 * events[-1]["new"]
    assert run(*requested, "--out", tmp_path / "one")[1][-1]["new"] == 0


def test_a_model_is_that_of_its_index(run: Run, tmp_path: Path) -> None:
    _, events = run("--count", "5", "--seed", "8", "--out", tmp_path)
    for index, event in enumerate(events[:-1]):
        assert event["seed"] == derive_seed(8, index)
        case = Corpus(tmp_path).get(event["id"])
        assert (case.provenance.test, case.provenance.seed) == (f"isra/8/{index}", event["seed"])
        assert len(Solver(GeneratorSettings()).generate(event["seed"]).graph.nodes) == event["nodes"]
    assert events[-1]["models"] == 5
    assert events[-1]["nodes"] == sum(event["nodes"] for event in events[:-1])


#: A run that is killed when its sixth model is about to appear in the corpus.
KILLED = """
import os, signal, sys
from fuzzing.generate.__main__ import main

rename, renamed = os.rename, []

def at_last(*given):
    renamed.append(given)
    if len(renamed) == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*given)

os.rename = at_last
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_run_is_completed_by_another(run: Run, tmp_path: Path) -> None:
    requested = ("--count", "200", "--nodes", "20", "--seed", "2", "--no-metrics")
    command = [sys.executable, "-c", KILLED, *requested, "--out", str(tmp_path / "killed")]
    ended = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    kept = {case.id for case in Corpus(tmp_path / "killed")}
    assert len(kept) == 5
    _, events = run(*requested, "--out", tmp_path / "killed")
    assert events[-1]["new"] == 200 - len(kept)
    Corpus(tmp_path / "killed").sweep()
    run(*requested, "--out", tmp_path / "whole")
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_what_is_measured_is_what_the_written_models_show(run: Run, tmp_path: Path) -> None:
    # But for Compress, whose lengths onnx cannot tell from a condition that we know.
    names = [name for name in sets.get("isra").in_degrees if name != "Compress"]
    _, events = run("--count", "40", "--nodes", "1:30", "--operators", ",".join(names), "--out", tmp_path)
    measured = events[-1]["measured"]
    assert measured["operators"] == "as requested"
    tally = Tally(graph_coverage.select_operator_set(GeneratorSettings(operators=tuple(names))))
    for event in events[:-1]:
        tally.add(extract_scopes(read(Corpus(tmp_path).folder(event["id"]) / "model.onnx")))
    assert measured["metrics"] == metrics_of(tally)


def test_bodies_are_measured_too(tmp_path: Path) -> None:
    """If, Loop and Scan hold graphs of their own: coverage counts their nodes, and so must we."""
    requested = GeneratorSettings(nodes=(6, 6), operators=("If", "Loop", "Scan", "Add"))
    chosen = graph_coverage.select_operator_set(requested)
    mine, theirs = Tally(chosen), Tally(chosen)
    for number in range(15):
        generated = Solver(requested).generate(derive_seed(number))
        graph_coverage.add_to_tally(generated, mine)
        case = case_builder.build_case(generated, 1, case_builder.CaseOrigin("isra", ""), "")
        assert isinstance(case.program, OnnxModel)
        (tmp_path / "model.onnx").write_bytes(case.program.model)
        theirs.add(extract_scopes(read(tmp_path / "model.onnx")))
    found, read_ = metrics_of(mine), metrics_of(theirs)
    assert found["NOO"] == read_["NOO"]
    assert found["NOP"] == read_["NOP"]
    assert mine.observations.operators == theirs.observations.operators


def test_joining_nodes_are_not_counted(run: Run, tmp_path: Path) -> None:
    plain = run("--count", "20", "--operators", "isra", "--out", tmp_path / "a")[1][-1]
    concatenate_outputs = run(
        "--count", "20", "--operators", "isra", "--concatenate-outputs", "--out", tmp_path / "b"
    )[1][-1]
    assert concatenate_outputs["nodes"] == plain["nodes"]
    assert concatenate_outputs["measured"]["operators"] == "isra"
    for metric in ("OTC", "SEC", "DEC", "NOO", "NOP", "NTR"):
        assert concatenate_outputs["measured"]["metrics"][metric] == plain["measured"]["metrics"][metric]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--nodes", "0:3"), "--nodes 0:3: write the least and the most, such as 1:10"),
        (("--nodes", "5:3"), "--nodes 5:3"),
        (("--nodes", "many"), "--nodes many"),
        (("--opset", "12"), "--opset 12: specifications are there for 13 to"),
        (("--operators", "Foo,Add"), "no specification of Foo holds at opset 21"),
        (("--operators", ","), "--operators names none"),
        (("--operators", "Conv", "--dtypes", "bool"), "no operator takes bool"),
        (("--dtypes", "int3"), "--dtypes int3: there are float32"),
        (("--generator", "foo"), "no generator is called 'foo'; there are: "),
        (("--count", "0"), "--count 0: must be at least 1"),
        (("--jobs", "0"), "--jobs 0: must be at least 1"),
        (("--picking-rate", "1.5"), "--picking-rate 1.5: a probability lies between 0 and 1"),
        (("--seed", "-1"), "--seed -1: a seed lies between 0 and 2**64 - 1"),
        (("--backend", "foo"), "no backend is called 'foo'"),
        (("--backend", "inductor"), "--backend inductor: takes no ONNX models"),
    ],
)
def test_bad_input_is_told(run: Run, tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    code, events = run("--count", "3", *words, "--out", tmp_path)
    assert code == 2
    [error] = events
    assert (error["event"], error["kind"]) == ("error", "usage")
    assert says in error["message"]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_the_machines_fault(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["--count", "2", "--out", str(tmp_path / "file" / "folder")]) == 3
    output = capsys.readouterr().err
    assert "cannot write to" in output
    assert "choose another folder with --out" in output


def test_what_a_compiler_refuses_is_asked_once_and_left_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supported_ops, "user_cache_path", lambda _name: tmp_path / "cache")
    requested = (
        "--count",
        "30",
        "--nodes",
        "10",
        "--operators",
        "Add,MaxUnpool,Det",
        "--backend",
        "openvino",
    )
    monkeypatch.setattr(
        operators, "specifications", _only(operators.specifications(21), ("Add", "MaxUnpool", "Det"))
    )
    _, events = run(*requested, "--out", tmp_path / "out")
    assert events[-1]["left_out"] == {"Det": ["float32"], "MaxUnpool": ["float32"]}
    assert {case.provenance.operator for case in Corpus(tmp_path / "out")} == {"Add"}
    [kept] = (tmp_path / "cache" / "support").iterdir()
    assert json.loads(kept.read_text())["float32"].keys() == {"Det", "MaxUnpool"}

    def fail(*_: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(supported_ops, "_query_backend", fail)
    assert run(*requested, "--out", tmp_path / "out")[1][-1]["new"] == 0
    kept.write_text("{half")
    with pytest.raises(AssertionError, match="asked again"):
        run(*requested, "--out", tmp_path / "out")


def _only(known: dict[str, Any], names: tuple[str, ...]) -> Callable[[int], dict[str, Any]]:
    """The specifications of a few operators, so that a slow compiler is asked little."""
    return lambda _opset: {name: known[name] for name in names}
