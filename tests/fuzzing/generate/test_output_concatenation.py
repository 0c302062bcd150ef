from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from fuzzing.coverage.models import extract_scopes
from fuzzing.coverage.observations import is_appended
from fuzzing.generate.isra import GeneratorSettings, Solver
from fuzzing.generate.output_concatenation import concatenate_outputs, count_concatenation_nodes
from fuzzing.graph import Builder, TensorType
from fuzzing.graph.onnx_writer import to_onnx


@pytest.mark.parametrize("dtypes", [("float32",), ("float32", "int64")])
def test_coverage_tells_closing_nodes_of_a_written_model(dtypes: tuple[str, ...]) -> None:
    solver = Solver(
        GeneratorSettings(nodes=(5, 20), opset=18, dtypes=dtypes, mixed=True, concatenate_outputs=True)
    )
    for seed in range(20):
        graph = solver.generate(seed).graph
        model = to_onnx(graph)
        onnx.checker.check_model(model, full_check=True)
        [scope] = extract_scopes(model)[:1]
        reported = [node for node in scope if is_appended(node)]
        assert len(reported) == count_concatenation_nodes(graph) >= 2
        assert {node.operator for node in reported} == {"Flatten", "Concat"}


def test_a_graph_that_was_not_joined_has_none() -> None:
    graph = (
        Solver(GeneratorSettings(nodes=(9, 9), operators=("Flatten", "Concat"), opset=18)).generate(1).graph
    )
    assert count_concatenation_nodes(graph) == 0


def test_lengths_that_only_the_data_tell_stay_open() -> None:
    builder = Builder(18)
    x = builder.placeholder(TensorType("float32", (2, 3)))
    places = builder.node("NonZero", (x,), (TensorType("int64", (2, None)),))
    graph = concatenate_outputs(builder.finish((*places, x)))
    assert [graph.types[edge] for edge in graph.outputs] == [
        TensorType("int64", (1, None)),
        TensorType("float32", (1, 6)),
    ]


def test_joining_twice_gives_no_name_twice(tmp_path: Path) -> None:
    graph = concatenate_outputs(
        concatenate_outputs(Solver(GeneratorSettings(nodes=(3, 3), opset=18)).generate(2).graph)
    )
    onnx.save(to_onnx(graph), tmp_path / "model.onnx")
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
