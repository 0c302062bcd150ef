"""The cases of a corpus that keep its coverage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fuzzing.cases import (
    Corpus,
    EquivalentPair,
    OnnxModel,
    Program,
    Provenance,
    Tensor,
    TensorArg,
    TestCase,
    TorchCall,
    TorchProgram,
)
from fuzzing.coverage import representatives
from fuzzing.coverage.case_classes import KINDS, CoveredClasses
from tests.fuzzing.coverage.coverage_kit import model_of, random_model


def build_case(program: Program, number: float = 0.0, *, shape: tuple[int, ...] = (3,)) -> TestCase:
    """A case with one input; `number` makes its content another."""
    x = Tensor.of(np.full(shape, number, np.float32))
    return TestCase(program, (("x", x),), Provenance("toy", "test", "", "library", "1"))


def onnx_model(graph: str) -> OnnxModel:
    return OnnxModel(model_of(graph).SerializeToString())


def graph(body: str, shape: str = "3") -> OnnxModel:
    return onnx_model(f"g (float[{shape}] x) => (float[{shape}] y) {{ {body} }}")


def reasons(*cases: TestCase) -> list[str]:
    """The first kind of class that each case is the first to show, "" if none."""
    covered = CoveredClasses()
    return [next((kind for kind in KINDS if new[kind]), "") for new in map(covered.add, cases)]


def test_a_node_shows_its_operator_attributes_types_and_shape_class() -> None:
    leaky, steep = graph("y = LeakyRelu<alpha = 0.5> (x)"), graph("y = LeakyRelu<alpha = -0.5> (x)")
    row = graph("y = LeakyRelu<alpha = 0.5> (x)", "1")
    steep_row = graph("y = LeakyRelu<alpha = -0.5> (x)", "1")
    longer = graph("y = LeakyRelu<alpha = 0.25> (x)", "7")  # of the same classes as `leaky`
    assert reasons(
        build_case(leaky),
        build_case(leaky, 1.0),
        build_case(longer, shape=(7,)),
        build_case(steep),
        build_case(row, shape=(1,)),
        build_case(steep_row, shape=(1,)),
        build_case(steep_row, 1.0, shape=(1,)),
    ) == ["operator", "", "", "value", "value", "pair", ""]


def test_a_network_shows_its_edges_and_the_settings_of_each_node() -> None:
    first = graph("a = Abs(x) y = Relu(a)")
    other_way = graph("a = Relu(x) y = Abs(a)")
    more = graph("a = Abs(x) b = Relu(a) c = Abs(b) y = Relu(c)")
    third = graph("a = Abs(x) b = Relu(a) y = Neg(b)")
    found = reasons(*map(build_case, (first, other_way, more, third)))
    assert found == ["operator", "edge", "", "operator"]


def test_short_integer_inputs_count_by_their_values() -> None:
    text = "g (float[2,3] x, int64[1] axes) => (float[2,3] y) { y = ReduceSum<keepdims = 1> (x, axes) }"
    x = Tensor.of(np.zeros((2, 3), np.float32))

    def case(axis: int) -> TestCase:
        axes = Tensor.of(np.array([axis], np.int64))
        return replace(build_case(onnx_model(text)), inputs=(("x", x), ("axes", axes)))

    assert reasons(case(0), case(1), case(-1), case(1)) == ["operator", "value", "value", ""]


def test_calls_count_by_arguments_and_programs_by_their_text() -> None:
    def call(alpha: float) -> TestCase:
        return build_case(TorchCall("torch.add", (TensorArg("x"), TensorArg("x")), (("alpha", alpha),)))

    first = TorchProgram("import torch\n\ndef forward(x):\n    return torch.abs(x)\n")
    second = TorchProgram("import torch\n\ndef forward(x):\n    return abs(x)\n")
    pair, swapped = EquivalentPair(first, second, "abs"), EquivalentPair(second, first, "abs")
    assert reasons(call(2.0), call(2.5), call(-1.0)) == ["operator", "", "value"]
    programs = [build_case(one) for one in (first, second, pair, swapped)]
    assert reasons(*programs, build_case(first, 1.0)) == ["operator", "program", "program", "program", ""]


def decisions(corpus: Corpus, capsys: pytest.CaptureFixture[str], *keep: str) -> dict[str, str]:
    """Case → reason, "" if it may go; checks the sums."""
    file = corpus.root.parent / "keep"
    file.write_text("\n".join(keep))
    assert representatives.main([str(corpus.root), "--keep", str(file)]) == 0
    *events, end = map(json.loads, capsys.readouterr().out.splitlines())
    found = {one["id"]: one.get("why", "") for one in events if one["event"] == "case"}
    assert end["cases"] == len(found)
    assert sum(end["kept"].values()) == sum(map(bool, found.values()))
    return found


def test_what_stays_covers_the_same_and_loses_nothing_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, kept = Corpus(tmp_path / "all"), Corpus(tmp_path / "kept")
    for seed in range(120):
        model = random_model(seed % 60, 1 + seed % 7)
        corpus.add(build_case(OnnxModel(model.SerializeToString()), float(seed)))
    found = decisions(corpus, capsys)
    assert 10 < len([why for why in found.values() if why]) < 60
    whole, rest = CoveredClasses(), CoveredClasses()
    for case in corpus:
        whole.add(case)
        if found[case.id]:
            kept.add(case)
            rest.add(case)
    assert rest.counts == whole.counts
    assert decisions(kept, capsys) == {case: why for case, why in found.items() if why}


def test_cases_that_are_referred_to_and_those_that_cannot_be_read_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = Corpus(tmp_path / "cases")
    for number in range(5):
        corpus.add(build_case(graph("y = Relu(x)"), float(number)))
    first, second, third, fourth, fifth = corpus.ids()
    (corpus.folder(fifth) / "model.onnx").write_bytes(b"\xff")
    assert decisions(corpus, capsys, third, "f" * 64) == {
        first: "",
        second: "",
        third: "referred",  # it comes first, so the others add nothing
        fourth: "",
        fifth: "unreadable",
    }


def test_a_file_of_ids_that_is_not_there_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert representatives.main([str(tmp_path), "--keep", str(tmp_path / "missing")]) == 2
    assert json.loads(capsys.readouterr().out)["kind"] == "usage"
