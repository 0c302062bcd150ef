"""NNSmith as a generator: its process, what is said where there is none, its models where there is one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.nnsmith import VARIABLE, GenerationError, NNSmith
from fuzzing.graph.onnx_writer import to_onnx

needs_nnsmith = pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"name an interpreter that has NNSmith in {VARIABLE}"
)

#: Stands for an interpreter: it answers like the program, with a model of as many Relus as nodes are asked
#: for. Every seed that ends in a bit 0 it cannot make; of seed 7 it dies.
STAND_IN = f"""#!{sys.executable}
import base64, json, os, sys
import onnx
from onnx import TensorProto, helper
print(json.dumps({{"event": "ready", "operators": 1, "versions": {{"nnsmith": "0.1.0"}}}}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    seed = asked["seed"]
    if seed == 7:
        sys.exit("a wheel came off")
    if seed % 2 == 0:
        print(json.dumps({{"event": "failed", "seed": seed, "reason": "cannot export"}}), flush=True)
        continue
    nodes = [helper.make_node("Relu", [f"x{{n}}"], [f"x{{n + 1}}"]) for n in range(asked["nodes"])]
    ends = [helper.make_tensor_value_info(f"x{{n}}", TensorProto.FLOAT, [2, 3]) for n in (0, len(nodes))]
    model = helper.make_model(
        helper.make_graph(nodes, str(seed), ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 14)]
    )
    data = base64.b64encode(model.SerializeToString()).decode()
    told = {{"event": "model", "seed": seed, "onnx": data, "seconds": 0.5, "cpu": 0.25}}
    print(json.dumps(told), flush=True)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> str:
    path = tmp_path / "python"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def peer(stand_in: str) -> Iterator[NNSmith]:
    generator = NNSmith(GeneratorSettings(nodes=(2, 6)), stand_in)
    yield generator
    generator.close()


def test_a_model_is_read_into_a_graph_with_nnsmiths_ranges(peer: NNSmith) -> None:
    for seed in range(8):
        generated = peer.generate(seed)
        assert 2 <= len(generated.graph.nodes) <= 6
        assert {node.op for node in generated.graph.nodes} == {"Relu"}
        assert set(generated.ranges) == set(generated.graph.inputs)
        assert all((low, high) == (3.0, 7.0) for low, high in generated.ranges.values())


def test_one_seed_gives_one_model_in_any_order(peer: NNSmith) -> None:
    forward = [peer.generate(seed).graph for seed in range(8)]
    assert [peer.generate(seed).graph for seed in reversed(range(8))] == forward[::-1]


def test_a_model_that_cannot_be_made_is_told_with_the_reason(peer: NNSmith) -> None:
    with pytest.raises(GenerationError, match="cannot export"):
        peer.model(2)
    assert onnx.load_from_string(peer.model(3).onnx).graph.name == "3"


def test_a_process_that_dies_is_told_with_its_last_words(peer: NNSmith) -> None:
    with pytest.raises(InfrastructureError, match="code 1: a wheel came off"):
        peer.model(7)


def test_a_generator_that_was_closed_starts_a_new_process(peer: NNSmith) -> None:
    before = peer.model(5).onnx
    peer.close()
    assert peer.model(5).onnx == before


def test_without_nnsmith_it_says_how_to_install_it(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without site-packages there is none
    bare.chmod(0o755)
    with pytest.raises(InfrastructureError, match=r"pip install 'nnsmith==0\.1\.0' 'z3-solver<5\.4'"):
        NNSmith(GeneratorSettings(), str(bare)).generate(0)


def test_an_interpreter_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=f"No such file.*{VARIABLE}"):
        NNSmith(GeneratorSettings(), str(tmp_path / "no-python")).generate(0)


def test_a_choice_of_operators_is_refused() -> None:
    with pytest.raises(UsageError, match="leave out --operators"):
        NNSmith(GeneratorSettings(operators=("Relu",)))


@needs_nnsmith
def test_nnsmiths_own_models_are_valid_and_the_same_whatever_was_made_before() -> None:
    def some(seeds: list[int]) -> dict[int, bytes]:
        generator = NNSmith(GeneratorSettings(nodes=(4, 8)))
        try:
            return {seed: generator.model(seed).onnx for seed in seeds}
        finally:
            generator.close()

    forward = some([0, 1, 2, 3])
    assert some([3, 2, 1, 0]) == forward
    assert len(set(forward.values())) == 4
    for data in forward.values():
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)


@needs_nnsmith
def test_nnsmiths_models_become_graphs_that_are_valid() -> None:
    generator = NNSmith(GeneratorSettings(nodes=(3, 6)))
    try:
        for seed in range(4):
            onnx.checker.check_model(to_onnx(generator.generate(seed).graph), full_check=True)
    finally:
        generator.close()
