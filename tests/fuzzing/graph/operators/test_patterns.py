from __future__ import annotations

import pytest

from fuzzing.errors import UsageError
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph import operators
from fuzzing.graph.onnx_writer import to_bytes
from tests.support.boundary_values import use_boundary_values
from tests.support.operators import check, run, single

NAMES = tuple(operators.pattern_specifications(21))


@pytest.mark.parametrize("name", NAMES)
def test_patterns_are_what_onnx_and_onnxruntime_say(name: str) -> None:
    check(name, (13, 21), ("float32",), 8)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_at_the_borders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_boundary_values(monkeypatch)
    dtypes = [x for x in ("float32", "float16") if x in operators.pattern_specifications(21)[name].dtypes]
    check(name, (21,), dtypes, 8)


@pytest.mark.parametrize("name", NAMES)
def test_patterns_are_several_operators(name: str) -> None:
    assert all(len(single(name, seed, 21).graph.nodes) > 3 for seed in range(3))


def test_patterns_are_used_on_request_alone() -> None:
    with pytest.raises(UsageError, match=r"pattern\.Gelu"):
        Solver(GeneratorSettings(operators=("pattern.Gelu",)))
    names = {operator.name for operator in Solver(GeneratorSettings()).operators}
    more = {operator.name for operator in Solver(GeneratorSettings(patterns=True)).operators}
    assert more - names == set(NAMES)


def test_graphs_of_patterns_run_and_repeat() -> None:
    settings = GeneratorSettings(nodes=(5, 15), operators=(*NAMES, "Relu", "MatMul"), patterns=True)
    for seed in range(5):
        generated = Solver(settings).generate(seed)
        assert to_bytes(generated.graph) == to_bytes(Solver(settings).generate(seed).graph)
        assert run(generated, seed).outputs is not None


def test_patterns_have_names_of_their_own() -> None:
    assert all(name.startswith("pattern.") for name in NAMES)
    assert not set(NAMES) & set(operators.specifications(21))
