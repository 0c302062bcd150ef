"""Mutations of ONNX models: each changes what it says, and mutants are valid and run in the reference."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import onnx
import pytest

from fuzzing.backends.onnx_reference import OnnxReference
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.graph.ir import Constant, Graph, Node
from fuzzing.graph.onnx_writer import to_bytes
from fuzzing.graph.types import TensorType
from fuzzing.migrate.onnx_mutants import mutate_case
from fuzzing.mutate.graphs.models import base
from fuzzing.mutate.graphs.models.base import ModelMutant, validated
from fuzzing.mutate.graphs.models.drawing import draw_mutant, read_model
from fuzzing.rng import Rng

FLOATS = TensorType("float32", (1, 2, 5, 5))


def convolution() -> ModelMutant:
    """A Conv with a step and padding, then LeakyRelu."""
    weights = Constant("float32", np.linspace(-1, 1, 3 * 2 * 3 * 3, dtype=np.float32).reshape(3, 2, 3, 3))
    made = TensorType("float32", (1, 3, 3, 3))
    nodes = (
        Node("Conv", (0, 1), (2,), {"pads": (1, 1, 1, 1), "strides": (2, 2)}),
        Node("LeakyRelu", (2,), (3,), {"alpha": 0.25}),
    )
    graph = Graph(18, (FLOATS, weights.type, made, made), (0,), {1: weights}, nodes, (3,))
    data = np.arange(50, dtype=np.float32).reshape(FLOATS.lengths)
    return ModelMutant(graph, {0: Tensor.of(data)})


def case() -> TestCase:
    graph, data = convolution().graph, convolution().values[0]
    return TestCase(
        OnnxModel(to_bytes(graph)),
        (("v0", data),),
        Provenance("test", "conv", "Conv", "onnx", "1"),
    )


def drawn(name: str, count: int = 60) -> list[ModelMutant]:
    found = [base.get(name)(convolution(), Rng(seed)) for seed in range(count)]
    return [mutant for one in found if one is not None and (mutant := validated(one)) is not None]


def test_every_kind_of_mutation_gives_valid_mutants() -> None:
    assert base.names() == ("groups", "initializers", "opsets", "parameters", "ranks", "shapes", "types")
    assert {name for name in base.names() if drawn(name)} == set(base.names()) - {"ranks"}


def test_parameters_change_one_attribute() -> None:
    original = convolution().graph
    seen = Counter[str]()
    for mutant in drawn("parameters"):
        pairs = zip(original.nodes, mutant.graph.nodes, strict=True)
        changed = [
            name
            for one, other in pairs
            for name in one.attributes.keys() | other.attributes.keys()
            if one.attributes.get(name) != other.attributes.get(name)
        ]
        assert len(changed) == 1
        seen.update(changed)
    assert {"alpha", "strides", "pads"} <= seen.keys()


def test_groups_change_with_channels_and_filters() -> None:
    for mutant in drawn("groups", 12):
        group = mutant.graph.nodes[0].attributes["group"]
        assert isinstance(group, int)
        assert mutant.values[0].shape == (1, 2 * group, 5, 5)
        assert mutant.graph.constants[1].array.shape == (3 * group, 2, 3, 3)
        halves = mutant.values[0].array()[:, :4]
        assert np.array_equal(halves[:, 2:], halves[:, :2] / 2)


def test_types_change_together() -> None:
    for mutant in drawn("types"):
        assert len({type_.dtype for type_ in mutant.graph.types}) == 1
        assert mutant.graph.types[0].dtype == mutant.values[0].dtype != "float32"


def test_shapes_keep_what_must_agree() -> None:
    for mutant in drawn("shapes"):
        assert mutant.graph.types[0].lengths[1] == mutant.graph.types[1].lengths[1]
        assert mutant.values[0].shape == mutant.graph.types[0].shape


def test_initializers_become_inputs_and_inputs_initializers() -> None:
    found = {(frozenset(one.values), frozenset(one.graph.constants)) for one in drawn("initializers")}
    assert (frozenset({0, 1}), frozenset()) in found
    assert (frozenset(), frozenset({0, 1})) in found


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": (0, 1)},
        {"strides": (-1, 1)},
        {"dilations": (9, 9)},
        {"group": 2},
        {"kernel_shape": (2, 2)},
    ],
)
def test_what_the_specification_forbids_is_refused(attributes: dict[str, object]) -> None:
    model = convolution()
    node = model.graph.nodes[0]._replace(attributes=attributes)  # type: ignore[arg-type]
    graph = replace(model.graph, nodes=(node, *model.graph.nodes[1:]))
    assert validated(replace(model, graph=graph)) is None


def test_mutants_are_reproducible_and_run_in_the_reference() -> None:
    reference = OnnxReference()
    reference.load("CPU", {})
    first, second = (list(mutate_case(case(), 7, 12)) for _ in range(2))
    assert first == second
    mutants = [item for item in first if isinstance(item, TestCase)]
    assert len({item.id for item in mutants}) == len(mutants) > 6
    for item in mutants:
        assert isinstance(item.program, OnnxModel)
        onnx.checker.check_model(item.program.model, full_check=True)
        model = reference.convert(item.program, item.inputs)  # type: ignore[arg-type]
        reference.run(reference.compile(model), item.inputs)  # type: ignore[arg-type]


def test_a_mutant_is_unlike_its_original() -> None:
    model = read_model(case())
    assert model is not None
    for seed in range(10):
        found = draw_mutant(model, Rng(seed))
        assert found is not None
        assert to_bytes(replace(found[0].graph, names={})) != to_bytes(model.graph)
