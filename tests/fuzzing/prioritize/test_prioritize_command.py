from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fuzzing.cases import Corpus, Provenance, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.prioritize.__main__ import main
from fuzzing.prioritize.instances import Instance
from tests.fuzzing.prioritize.prioritize_kit import instance


def _catalogue(path: Path, instances: list[Instance]) -> Path:
    lines = [{"id": one.id, "instance": one.to_json()} for one in instances]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"library": "x 1", "skipped": {}}]))
    return path


def _events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_catalogues_are_ranked_together_each_case_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, three = instance(1, "Add", a=1), instance(2, "Add", a=1), instance(3, "Sin", a=0)
    first = _catalogue(tmp_path / "one.jsonl", [one, two])
    second = _catalogue(tmp_path / "two.jsonl", [two, three])
    assert main(["--strategy", "opera", "--catalog", str(first), "--catalog", str(second)]) == 0
    *ranked, end = _events(capsys)
    assert ranked == [{"event": "ranked", "id": found.id} for found in (one, three, two)]
    assert end["event"] == "end"
    assert (end["cases"], end["strategy"]) == (3, "opera")


def test_why_is_told_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _catalogue(tmp_path / "one.jsonl", [instance(1, "Add", a=1, b=2)])
    assert main(["--strategy", "opera", "--catalog", str(path), "--explain"]) == 0
    assert _events(capsys)[0]["why"] == {
        "opera": 1.0, "operator": 1.0, "diversity": 1.0, "new": ["a", "b"], "new_pairs": 1
    }  # fmt: skip


def test_what_a_change_touches_is_told_first_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _catalogue(tmp_path / "one.jsonl", [instance(1, "Add", a=1), instance(2, "Resize", a=1)])
    source = "def resize(node):\n    return node\n"
    file = {"path": "frontend/onnx/resize.py", "old_path": None, "binary": False, "hunks": [[2, 1, 2, 1]]}
    file |= {"old": source, "new": source.replace("return node", "return None")}
    given = tmp_path / "change.json"
    given.write_text(json.dumps({"base": "a", "head": "b", "truncated": False, "files": [file]}))
    words = ["--strategy", "change", "--catalog", str(path), "--change", str(given)]
    assert main([*words, "--touched", "5"]) == 0
    touched, *others = _events(capsys)
    assert (touched["event"], touched["operator"]) == ("touched", "Resize")
    assert [(one["path"], one["line"]) for one in touched["places"]] == [("frontend/onnx/resize.py", 2)]
    assert main(words) == 0
    assert _events(capsys)[:2] == others[:2], "nobody is told who did not ask"


def test_a_corpus_is_ranked_without_a_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    provenance = Provenance("toy", "test", "", "torch", "1")
    call = TorchCall("torch.neg", (TensorArg("x"),))
    case = TestCase(call, (("x", Tensor("int8", (1,), b"a")),), provenance)
    Corpus(tmp_path).add(case)
    assert main(["--strategy", "source-order", "--corpus", str(tmp_path)]) == 0
    assert _events(capsys)[0] == {"event": "ranked", "id": case.id}


def test_a_suite_weighs_the_operators_of_its_frontend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    instances = [instance(n, name, frontend, a=1) for n, (name, frontend) in enumerate(KNOWN)]
    path = _catalogue(tmp_path / "one.jsonl", instances)
    suite = tmp_path / "mine.torch.json"
    suite.write_text(json.dumps({"origin": "here", "operators": {"torch.sin": 3}}))
    assert main(["--strategy", "opera", "--catalog", str(path), "--suite", str(suite), "--explain"]) == 0
    weights = {event["id"]: event["why"]["operator"] for event in _events(capsys)[:-1]}
    assert weights == {instances[0].id: 0.25, instances[1].id: 1.0, instances[2].id: 1.0}


KNOWN = [("torch.sin", "torch"), ("torch.cos", "torch"), ("Sin", "onnx")]


def test_coverage_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _catalogue(tmp_path / "one.jsonl", [instance(1), instance(2)])
    covered = tmp_path / "covered.jsonl"
    covered.write_text(
        json.dumps({"event": "covered", "id": instance(2).id, "files": {"a.py": [1, 2]}}) + "\n"
    )
    arguments = ["--strategy", "coverage-total", "--catalog", str(path), "--coverage"]
    assert main([*arguments, str(covered)]) == 0
    assert [event["id"] for event in _events(capsys)[:-1]] == [instance(2).id, instance(1).id]
    assert main([*arguments, str(path)]) == 2
    assert "was not printed by fuzzing.prioritize.coverage_measurement" in capsys.readouterr().err


def test_options_reach_the_strategy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _catalogue(tmp_path / "one.jsonl", [instance(1)])
    base = ["--strategy", "fast", "--catalog", str(path), "--option"]
    assert main([*base, "fast.shingles=tokens"]) == 0
    assert main([*base, "fast.shingles=0"]) == 2
    assert main([*base, "tokens"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["--strategy", "best"], "there are: "),
        (["--strategy", "opera", "--catalog", "nowhere.jsonl"], "cannot read the catalog"),
        (["--strategy", "coverage-total"], "coverage_measurement"),
    ],
)
def test_mistakes_are_told(arguments: list[str], output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert output in capsys.readouterr().err
