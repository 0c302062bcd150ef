"""Models as scopes of nodes: names, attributes, bodies, functions, and where shapes come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.checker
import onnx.inliner
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from fuzzing.coverage import InvalidModelError, OperatorSet, Tally, extract_scopes, models, read
from fuzzing.coverage.models import UNKNOWN, UNTYPED, TensorType
from tests.fuzzing.coverage.coverage_kit import build_tally, model_of

SET = OperatorSet(
    "few", {name: frozenset({1, 2, 3}) for name in ("Relu", "Abs", "Add", "If", "Resize", "Loop")}
)
CONDITIONAL = """g (float[3] x, bool c) => (float[N] z) {
    a = Relu(x)
    z = If(c) <
        then_branch = t () => (float[3] q) { w = Relu(a) q = Abs(w) },
        else_branch = e () => (float[M] q) { w = Abs(x) q = Add(w, a) }
    >
}"""


def shapes(model: ModelProto) -> list[list[models.Shape | None]]:
    """Of what each node of the outermost graph consumes."""
    return [[one.shape for one in node.types] for node in extract_scopes(model)[0]]


def test_shapes_come_from_what_the_model_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> ModelProto:
        raise AssertionError("shapes are inferred that are told")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", refuse)
    reported = "<float[3] w = {1,2,3}, float[3] a>"
    text = f"g (float[3] x, float[N] y) => (float[3] z) {reported} {{ a = Relu(x) z = Add(a, w) }}"
    assert shapes(model_of(text)) == [[(3,)], [(3,), (3,)]]


def test_shapes_that_are_not_told_are_inferred() -> None:
    text = "g (float[3,N] x, float[0] y) => (float[N,M] z) { a = Relu(x) z = Transpose(a) b = Abs(y) }"
    assert shapes(model_of(text)) == [[(3, UNKNOWN)], [(3, UNKNOWN)], [(0,)]]


def test_ranks_that_are_not_told_are_inferred() -> None:
    model = model_of("g (float[3,2] x) => (float[3,2] z) <float[3] a> { a = Relu(x) z = Abs(a) }")
    [reported] = model.graph.value_info
    reported.type.tensor_type.ClearField("shape")
    assert shapes(model) == [[(3, 2)], [(3, 2)]]


def test_what_onnx_cannot_infer_stays_unknown() -> None:
    model = model_of("g (float[3] x) => (float[N] z) { a = Mystery(x) b = Relu(a) z = Add(b, x) }")
    scope = extract_scopes(model)[0]
    assert scope[1].types == (UNTYPED,)
    tally, [figures] = build_tally(SET, model)
    assert figures.shapes == 1
    assert tally.observations.inputs == {("Add", (3,))}


def test_models_that_inference_refuses_count_all_the_same() -> None:
    model = model_of("g (float[3] x) => (float[3] z) { a = Relu(x) z = Abs(a) }")
    del model.opset_import[:]
    assert shapes(model) == [[(3,)], [None]]


def test_inference_does_not_see_what_it_would_die_of() -> None:
    """Onnx 1.23 looks for the type of an operator's input without asking whether there is one."""
    text = helper.make_tensor_value_info("", TensorProto.STRING, [2])
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern="a")
    graph = helper.make_graph(
        [node], "g", [text], [helper.make_tensor_value_info("y", TensorProto.BOOL, [2])]
    )
    assert shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])) == [[None]]


def test_an_unknown_rank_is_not_a_scalar() -> None:
    scalar = helper.make_tensor_value_info("x", TensorProto.FLOAT, ())
    ranked = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Relu", ["y"], ["b"])]
    model = helper.make_model(helper.make_graph(nodes, "g", [scalar, ranked], []))
    assert [node.types for node in extract_scopes(model)[0]] == [
        (TensorType(TensorProto.FLOAT, ()),),
        (TensorType(TensorProto.FLOAT, None),),
    ]


def test_inputs_that_are_left_out_do_not_count() -> None:
    model = model_of('g (float[1,1,2] x, float[3] s) => (float[1,1,N] z) { z = Resize(x, "", s) }')
    [[node]] = extract_scopes(model)
    assert node.inputs == ("x", "s")
    assert build_tally(SET, model)[0].observations.in_degrees == {("Resize", 2)}


def test_operators_of_other_domains_are_told_apart() -> None:
    nodes = [helper.make_node("Relu", ["x"], [name], domain=name) for name in ("", "ai.onnx", "com.example")]
    [scope] = extract_scopes(ModelProto(graph=helper.make_graph(nodes, "g", [], [])))
    assert [node.operator for node in scope] == ["Relu", "Relu", "com.example::Relu"]


def test_bodies_are_scopes_of_their_own() -> None:
    model = model_of(CONDITIONAL)
    onnx.checker.check_model(model, full_check=True)
    outer, then, other = extract_scopes(model)
    assert [[node.operator for node in scope] for scope in (outer, then, other)] == [
        ["Relu", "If"],
        ["Relu", "Abs"],
        ["Abs", "Add"],
    ]
    # What bodies consume of the graph around them has its shape, but no edge leads there.
    assert [node.types[0].shape for node in then] == [(3,), (3,)]
    tally, [figures] = build_tally(SET, model)
    assert (figures.nodes, figures.edges) == (6, 2)
    assert tally.observations.edges == {("Relu", "Abs"): 1, ("Abs", "Add"): 1}


def test_attributes_that_are_graphs_are_told_by_name_alone() -> None:
    first, second = model_of(CONDITIONAL), model_of(CONDITIONAL.replace("w", "other"))
    assert (
        build_tally(SET, first)[0].observations.attributes
        == build_tally(SET, second)[0].observations.attributes
    )
    node = extract_scopes(first)[0][1]
    assert node.attributes == (b"else_branch", b"then_branch")


def test_attributes_do_not_depend_on_their_order_nor_on_comments() -> None:
    made = [
        helper.make_node("Op", ["x"], ["y"], beta=2.0, alpha=1),
        helper.make_node("Op", ["x"], ["z"], alpha=1),
    ]
    made[1].attribute.append(helper.make_attribute("beta", 2.0, doc_string="from line 7"))
    [scope] = extract_scopes(ModelProto(graph=helper.make_graph(made, "g", [], [])))
    assert scope[0].attributes == scope[1].attributes
    assert len(scope[0].attributes) == 2
    assert made[1].attribute[1].doc_string == "from line 7"


def test_long_attributes_are_told_by_digest() -> None:
    def attributes(values: list[int]) -> models.Attributes:
        value = numpy_helper.from_array(np.array(values, np.int64), "value")
        node = helper.make_node("Constant", [], ["y"], value=value)
        return extract_scopes(ModelProto(graph=helper.make_graph([node], "g", [], [])))[0][0].attributes

    long = attributes(list(range(1000)))
    assert len(long[0]) == 16
    assert long == attributes(list(range(1000)))
    assert long != attributes([*range(999), 0])


def test_functions_are_inlined() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[3] x) => (float[3] z) { a = own.twice(x) z = Abs(a) }
        <domain: "own", opset_import: ["" : 17]> twice (x) => (y) { h = Relu(x) y = Add(h, h) }"""
    [scope] = extract_scopes(onnx.parser.parse_model(text))
    assert [node.operator for node in scope] == ["Relu", "Add", "Abs"]


def test_sparse_initializers_have_the_shape_of_the_whole() -> None:
    values = numpy_helper.from_array(np.array([1.0], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([2], np.int64)), [9])
    graph = helper.make_graph(
        [helper.make_node("Relu", ["w"], ["y"])], "g", [], [], sparse_initializer=[sparse]
    )
    assert shapes(ModelProto(graph=graph)) == [[(9,)]]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"not a model", "is no ONNX model"), (b"", "holds no graph"), (None, "cannot be read: No such file")],
)
def test_broken_files_say_why(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidModelError, match=reason):
        read(path)


def test_functions_that_call_themselves_are_broken() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[3] x) => (float[3] z) { z = own.turn(x) }
        <domain: "own", opset_import: ["" : 17, "own" : 1]> turn (x) => (y) { h = Relu(x) y = own.turn(h) }"""
    with pytest.raises(InvalidModelError, match="functions that cannot be inlined: Cycle detected"):
        extract_scopes(onnx.parser.parse_model(text))


@pytest.mark.parametrize("text", [b"node_1", b"Operator"])
def test_names_that_are_no_text_are_broken(text: bytes) -> None:
    node = helper.make_node("Operator", ["x"], ["y"], "node_1")
    data = ModelProto(graph=helper.make_graph([node], "g", [], [])).SerializeToString()
    with pytest.raises(InvalidModelError, match="something else than UTF-8"):
        extract_scopes(ModelProto.FromString(data.replace(text, b"\xff" * len(text))))


def test_a_graph_without_nodes_is_a_model() -> None:
    tally = Tally(SET)
    assert tally.add(extract_scopes(model_of("g (float[3] x) => (float[3] x) { }"))).nodes == 0
    assert tally.nodes_of == {0: 1}
