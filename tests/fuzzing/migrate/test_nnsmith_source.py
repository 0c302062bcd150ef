"""NNSmith's models as cases."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import onnx
import pytest

from fuzzing.cases import OnnxModel, Recipe, TestCase
from fuzzing.errors import InfrastructureError
from fuzzing.generate.nnsmith import VARIABLE
from fuzzing.migrate import nnsmith, sources
from fuzzing.migrate.source_parts import Part
from fuzzing.migrate.sources import Skip

#: Answers every request with a model of an input of floats, one of whole numbers and one of bools; seeds
#: that are a multiple of three it cannot make.
STAND_IN = f"""#!{sys.executable}
import base64, json, sys
from onnx import TensorProto, helper
print(json.dumps({{"event": "ready", "operators": 1, "versions": {{"nnsmith": "0.1.0"}}}}), flush=True)
value = helper.make_tensor_value_info
for line in sys.stdin:
    seed = json.loads(line)["seed"]
    if seed % 3 == 0:
        print(json.dumps({{"event": "failed", "seed": seed, "reason": "cannot export"}}), flush=True)
        continue
    inputs = [value("c", TensorProto.BOOL, [2]), value("a", TensorProto.FLOAT, [2]),
              value("n", TensorProto.INT64, [2])]
    nodes = [helper.make_node("Cast", ["n"], ["b"], to=1), helper.make_node("Where", ["c", "a", "b"], ["y"])]
    graph = helper.make_graph(nodes, str(seed), inputs, [value("y", TensorProto.FLOAT, [2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    data = base64.b64encode(model.SerializeToString()).decode()
    told = {{"event": "model", "seed": seed, "onnx": data, "seconds": 0.5, "cpu": 0.25}}
    print(json.dumps(told), flush=True)
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TestCase | Skip]:
    path = tmp_path / "python"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(path))
    return list(nnsmith.generate_cases(f"nnsmith/0/{number}" for number in range(12)))


def test_each_model_becomes_a_case_or_a_skip(made: list[TestCase | Skip]) -> None:
    cases = [item for item in made if isinstance(item, TestCase)]
    skips = [item for item in made if isinstance(item, Skip)]
    assert len(made) == 12
    assert cases
    assert {(skip.reason, skip.detail) for skip in skips} == {
        ("NNSmith cannot export its own model", "cannot export")
    }


def test_a_case_holds_nnsmiths_bytes_and_says_where_they_came_from(made: list[TestCase | Skip]) -> None:
    for number, item in enumerate(made):
        if isinstance(item, TestCase):
            assert isinstance(item.program, OnnxModel)
            assert onnx.load_from_string(item.program.model).graph.name == str(item.provenance.seed)
            assert (item.provenance.source, item.provenance.test) == ("nnsmith", f"nnsmith/0/{number}")
            assert (item.provenance.library, item.provenance.version) == ("nnsmith", "0.1.0")


def test_inputs_are_drawn_as_nnsmith_does_in_the_models_order(made: list[TestCase | Skip]) -> None:
    cases = [item for item in made if isinstance(item, TestCase)]
    for case in cases:
        assert [name for name, _ in case.inputs] == ["c", "a", "n"]
        drawn = {name: given.draw().array() for name, given in case.inputs if isinstance(given, Recipe)}
        assert drawn["c"].dtype == np.bool_
        assert ((drawn["a"] >= 3) & (drawn["a"] < 7)).all()
        assert ((drawn["n"] >= 3) & (drawn["n"] <= 7)).all()
    seeds = {given.seed for case in cases for _, given in case.inputs if isinstance(given, Recipe)}
    assert len(seeds) == 3 * len(cases)


def test_parts_share_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[list[str]] = []

    def made(tests: Iterator[str]) -> Iterator[TestCase | Skip]:
        shares.append(list(tests))
        return iter(())

    monkeypatch.setattr(nnsmith, "generate_cases", made)
    for number in (1, 2, 3):
        assert list(nnsmith.migrate(Part(number, 3))) == []
    assert list(nnsmith.migrate()) == []
    *parts, whole = shares
    assert sorted(chain.from_iterable(parts)) == sorted(whole)
    assert len(whole) == nnsmith.MODELS


def test_it_is_registered_for_the_frontend_of_onnx() -> None:
    source = sources.get("nnsmith")
    assert source.library == "onnx"
    assert "nnsmith" in source.needs.split()


def test_without_nnsmith_it_is_the_machines_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "no-python"))
    with pytest.raises(InfrastructureError, match=VARIABLE):
        list(nnsmith.generate_cases(iter(["nnsmith/0/0"])))
