from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.generate.generators import GeneratedGraph
from fuzzing.graph import Builder, Constant, Node, Subgraph, TensorType
from fuzzing.graph.ir import to_single_precision
from tests.support.graph_validation import validate
from tests.support.graphs import generated

F = TensorType("float32", (2,))


def test_constants_are_the_same_by_type_shape_and_bits() -> None:
    def of(*values: float, dtype: str = "float32") -> Constant:
        return Constant(dtype, np.array(values, dtype))

    assert of(1.0, 2.0) == of(1.0, 2.0)
    assert hash(of(1.0, 2.0)) == hash(of(1.0, 2.0))
    assert of(0.0) != of(-0.0)
    assert of(float("nan")) == of(float("nan"))
    assert of(1.0) != of(1.0, dtype="float64")
    assert of(1.0, 2.0) != Constant("float32", np.array([[1.0, 2.0]], np.float32))
    assert of(1.0) != 1.0


def test_constants_of_texts_are_the_same_by_their_texts() -> None:
    one, other = (Constant("string", np.array(["a", "".join(("b", "c"))], object)) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Constant("string", np.array(["a", "b"], object))


@given(st.floats(width=32))
def test_single_tells_a_float32_and_is_its_own(number: float) -> None:
    found = to_single_precision(number)
    assert np.float32(found).tobytes() == np.float32(number).tobytes()
    assert str(to_single_precision(found)) == str(found)


def test_single_is_short() -> None:
    assert to_single_precision(float(np.float32(0.01))) == 0.01
    assert to_single_precision(0.1 + 0.2) == 0.3


def test_a_builder_keeps_attributes_as_a_model_does() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    builder.node(
        "LeakyRelu", (x,), (F,), {"alpha": 0.1 + 0.2, "scales": (1 / 3, 2.0), "axis": 3, "mode": "a"}
    )
    assert builder.nodes[0].attributes == {"alpha": 0.3, "scales": (0.33333334, 2.0), "axis": 3, "mode": "a"}


def test_uses_counts_what_bodies_capture() -> None:
    inner = Builder(21)
    outside = inner.capture(F)
    body = Subgraph(inner.finish(inner.node("Relu", (outside,), (F,))), captures=(5,))
    node = Node("If", (3, None, 3), (9,), {"then_branch": body, "else_branch": body})
    assert list(node.used_edges()) == [3, 3, 5, 5]
    assert list(node.replace_inputs({5: 7, 3: 4}).used_edges()) == [4, 4, 7, 7]
    assert node.replace_inputs({5: 7}).outputs == (9,)


def test_producers_and_consumers() -> None:
    builder = Builder(21)
    x = builder.placeholder(F)
    (y,) = builder.node("Relu", (x,), (F,))
    (z,) = builder.node("Add", (y, y), (F,))
    graph = builder.finish((z,))
    relu, add = graph.nodes
    assert graph.producers() == {y: relu, z: add}
    assert graph.consumers() == {x: [relu], y: [add, add]}


@settings(max_examples=20)
@given(generated())
def test_renumbering_back_gives_the_same_graph(made: GeneratedGraph) -> None:
    graph = made.graph
    count = len(graph.types)
    away = {edge: (edge * 7 + 3) % count if count % 7 else count - 1 - edge for edge in range(count)}
    back = {new: old for old, new in away.items()}
    there = graph.renumber(away)
    assert there.names == {away[edge]: f"v{edge}" for edge in range(count) if away[edge] != edge}
    assert there.renumber(back) == graph
    validate(there.renumber(back))


def test_types_tell_what_they_know() -> None:
    assert str(TensorType("int8", (2, None))) == "int8[2,?]"
    assert str(TensorType("int8", None)) == "int8[…]"
    assert TensorType("int8", (2, 3)).elements == 6
    assert TensorType("int8", ()).elements == 1
    assert TensorType("int8", None).rank == -1
    assert not TensorType("int8", (2, None)).static
    with pytest.raises(ValueError, match="no static shape"):
        _ = TensorType("int8", (2, None)).lengths
