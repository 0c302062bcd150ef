from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, TestCase
from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.migrate import sources
from fuzzing.migrate.__main__ import main, run
from fuzzing.migrate.source_parts import OperatorsOfChange, Part, Selection, migrate_source
from fuzzing.migrate.sources import Skip, Source
from fuzzing.prioritize.api_signatures import ApiSignatures
from fuzzing.prioritize.change import Change, FileChange
from fuzzing.prioritize.instances import extract_instance


def _case(number: int) -> TestCase:
    provenance = Provenance("toy", f"test_{number}", "Relu", "onnx", "1")
    return TestCase(OnnxModel(b"%d" % number), (), provenance)


def _toy() -> Iterator[TestCase | Skip]:
    yield _case(1)
    yield Skip("test_2", "too odd", "detail of 2")
    yield _case(3)
    yield Skip("test_4", "too odd", "detail of 4")
    yield Skip("test_5", "a map")


TOY = Source("toy", "onnx", _toy)


def test_skips_are_told_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(TOY, Corpus(tmp_path))
    out, err = capsys.readouterr()
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events] == ["case", "skip", "case", "skip", "skip", "end"]
    instance = extract_instance(_case(1), ApiSignatures()).to_json()
    assert events[0] == {
        "event": "case", "id": _case(1).id, "test": "test_1", "operator": "Relu", "instance": instance
    }  # fmt: skip
    assert events[1] == {"event": "skip", "test": "test_2", "reason": "too odd", "detail": "detail of 2"}
    assert events[-1]["skipped"] == {"a map": 1, "too odd": 2}
    assert (events[-1]["cases"], events[-1]["new"]) == (2, 2)
    assert "detail of 4" in err


def test_a_second_run_adds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Corpus(tmp_path).add(_case(3))
    run(TOY, Corpus(tmp_path))
    run(TOY, Corpus(tmp_path))
    ends = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"end"' in line]
    assert [(end["cases"], end["new"]) for end in ends] == [(2, 1), (2, 0)]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_parts_together_are_the_source(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reported: list[str] = []
    for number in range(1, count + 1):
        run(TOY, Corpus(tmp_path), Part(number, count))
        reported += [event["test"] for event in map(json.loads, capsys.readouterr().out.splitlines()[:-1])]
    assert sorted(reported) == [f"test_{number}" for number in range(1, 6)]


def test_a_source_that_knows_parts_is_told_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def migrate(part: Part | None = None) -> Iterator[TestCase | Skip]:
        assert part == Part(2, 3)
        yield _case(7)

    run(Source("toy", "onnx", migrate), Corpus(tmp_path), Part(2, 3))
    assert '"test_7"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("test", "line", "serves"),
    [
        ("nn.functional.hardswish", "@register_decomposition(aten.hardswish)", True),
        ("nn.Hardswish", "@register_decomposition(aten.hardswish)", True),
        ("torch.nn.functional.hardswish", "@register_lowering(aten.hardswish.default)", True),
        ("linalg.norm", "@register_decomposition(aten.linalg_norm)", True),
        ("keras/src/layers/activations/softmax_test.py", "@register_lowering(aten._softmax)", True),
        ("nn.functional.hardtanh", "@register_decomposition(aten.hardswish)", False),
        ("cumsum", "@register_decomposition(aten.sum)", False),
        ("add", "", False),
    ],
)
def test_a_change_selects_the_tests_of_what_it_names(test: str, line: str, serves: bool) -> None:
    old = f"{line}\ndef changed(self):\n    return self * 6\n" if line else "LIMIT = 1\n"
    change = Change((FileChange("torch/_decomp/decompositions.py", None, old, old.replace("6", "5")),))
    assert OperatorsOfChange.of(change).contains(test) is serves


def test_a_change_that_names_no_operator_imports_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library takes seconds to import."""

    def migrate(part: Selection | None = None) -> Iterator[TestCase | Skip]:
        raise AssertionError("the source was asked")

    monkeypatch.setattr(sources, "get", lambda _name: Source("toy", "onnx", migrate))
    path = tmp_path / "change.json"
    path.write_text(json.dumps({"files": [{"path": "docs/index.md", "old": "a", "new": "b"}]}))
    assert main(["toy", "--corpus", str(tmp_path), "--change", str(path)]) == 0
    assert [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()] == ["end"]


@pytest.mark.parametrize("text", ["0/4", "5/4", "4", "a/b", "1/0", "-1/4"])
def test_a_part_that_is_none_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["onnx-node-tests", "--corpus", str(tmp_path), f"--part={text}"]) == 2
    assert "1/4 to 4/4" in capsys.readouterr().err


def test_an_unwritable_corpus_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    monkeypatch.setattr(sources, "get", lambda _name: TOY)
    assert main(["toy", "--corpus", str(occupied)]) == 3
    assert "cannot write to the corpus" in capsys.readouterr().err


def test_trouble_of_the_machine_has_its_own_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Iterator[TestCase | Skip]:
        yield _case(1)
        raise InfrastructureError("the library is missing: install it")

    monkeypatch.setattr(sources, "get", lambda _name: Source("broken", "onnx", broken))
    assert main(["broken", "--corpus", str(tmp_path)]) == 3
    assert "install it" in capsys.readouterr().err


def test_names_are_found_by_looking_at_the_folder() -> None:
    assert "onnx-node-tests" in sources.names()
    assert sources.get("onnx-node-tests").library == "onnx"


def test_only_generated_sources_take_seed_and_count() -> None:
    found = list(migrate_source(sources.get("isra"), Part(1, 2), {"seed": 3, "count": 12}))
    assert 0 < len(found) < 12
    assert all(isinstance(item, TestCase) and item.provenance.test.startswith("3/") for item in found)
    with pytest.raises(UsageError, match="onnx-node-tests has no option seed"):
        migrate_source(sources.get("onnx-node-tests"), None, {"seed": 3})
