"""The source `isra`: the same thousand models in any process, in parts, and told to rankings."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import onnx
import pytest

from fuzzing.cases import Corpus, OnnxModel, TestCase
from fuzzing.graph import operators
from fuzzing.migrate import isra, sources
from fuzzing.migrate.__main__ import run
from fuzzing.migrate.source_parts import Part
from fuzzing.prioritize.api_signatures import ApiSignatures
from fuzzing.prioritize.instances import extract_instance


def test_it_is_a_source_like_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = sources.get("isra")
    assert source.library == "onnx"
    part = Part(3, 50)
    run(source, Corpus(tmp_path), part)
    reported = capsys.readouterr().out
    names = {case.provenance.test for case in Corpus(tmp_path)}
    assert names == {
        isra.test_name(n, isra.SEED)
        for n in range(isra.MODELS)
        if part.contains(isra.test_name(n, isra.SEED))
    }
    assert reported.count('"event": "case"') == len(names) > 0


def test_models_vary_in_opset_and_element_type_and_are_valid() -> None:
    opsets: Counter[int] = Counter()
    dtypes: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    for case in islice(isra.migrate(), 120):
        assert isinstance(case, TestCase)
        assert isinstance(case.program, OnnxModel)
        model = onnx.load_from_string(case.program.model)
        onnx.checker.check_model(model, full_check=True)
        assert isra.NODES[0] <= len(model.graph.node) <= isra.NODES[1]
        opsets[model.opset_import[0].version] += 1
        dtypes.update(item.type.tensor_type.elem_type for item in model.graph.input)
        kinds.update(node.op_type for node in model.graph.node)
    assert set(opsets) == set(range(isra.OPSETS[0], isra.OPSETS[1] + 1))
    assert len(dtypes) >= 6
    assert len(kinds) > len(operators.specifications(13)) / 2


def test_the_seed_alone_decides() -> None:
    assert isra.make_model(17).files() == isra.make_model(17).files()
    assert isra.make_model(17).id != isra.make_model(17, seed=1).id
    assert isra.make_model(17).provenance.seed != isra.make_model(18).provenance.seed


def test_rankings_are_told_of_models_of_several_nodes() -> None:
    signatures = ApiSignatures()
    for number in range(40):
        case = isra.make_model(number)
        assert isinstance(case.program, OnnxModel)
        instance = extract_instance(case, signatures)
        kinds = [node.op_type for node in onnx.load_from_string(case.program.model).graph.node]
        assert (instance.id, instance.frontend, instance.source) == (case.id, "onnx", "isra")
        assert instance.operator in kinds
        reported = dict(instance.parameters)
        if len(set(kinds) - {"Constant"}) > 1:
            body = reported["body"]
            assert isinstance(body, str)
            assert set(body.split()) == set(kinds) - {"Constant"}
            assert all(name in reported for name, _ in case.inputs)


def test_what_lies_on_an_edge_is_left_out() -> None:
    for case in islice(isra.migrate(), 150):
        assert isinstance(case, TestCase)
        assert isinstance(case.program, OnnxModel)
        model = onnx.load_from_string(case.program.model)
        assert not {node.op_type for node in model.graph.node} & set(isra.SPECIAL_DIMENSIONS)
    assert set(isra.SPECIAL_DIMENSIONS) <= set(operators.specifications(isra.OPSETS[1]))


def test_seed_and_count_choose_other_models() -> None:
    names = [item.provenance.test for item in isra.migrate(seed=7, count=3) if isinstance(item, TestCase)]
    assert names == ["7/0", "7/1", "7/2"]
    first, other = (next(iter(isra.migrate(seed=seed, count=1))) for seed in (0, 7))
    assert isinstance(first, TestCase)
    assert isinstance(other, TestCase)
    assert first.id != other.id
