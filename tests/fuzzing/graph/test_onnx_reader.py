from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from onnx import TensorProto, helper, numpy_helper

from fuzzing.errors import UnreadableError
from fuzzing.generate.generators import GeneratedGraph
from fuzzing.graph import Subgraph, TensorType
from fuzzing.graph.canonical_form import canonicalize
from fuzzing.graph.ir import TypeValue
from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.onnx_types import DTYPES, constant_of, fill_tensor
from fuzzing.graph.onnx_writer import to_bytes, to_onnx
from fuzzing.graph.types import ABSENT
from tests.support.graph_validation import validate
from tests.support.graphs import BRANCHES, LOOP, generated, model, repeats_captures
from tests.support.reference_evaluation import all_same, in_onnxruntime, in_reference

X = np.array([1.5, -2.0], np.float32)


@settings(max_examples=60)
@given(generated())
def test_reading_what_was_written_gives_the_same_graph(made: GeneratedGraph) -> None:
    graph = made.graph
    found = from_onnx(to_onnx(graph))
    validate(found)
    assert to_bytes(found) == to_bytes(graph)
    if repeats_captures(graph):
        assert canonicalize(found) == canonicalize(graph)
    else:
        assert found == graph
        assert found.names == {}


@pytest.mark.parametrize("text", [BRANCHES, LOOP])
def test_bodies_capture_from_any_level_around_them(text: str) -> None:
    given_model = model(text)
    graph = from_onnx(given_model)
    validate(graph)
    again = to_onnx(graph)
    onnx.checker.check_model(again, full_check=True)
    for condition in (True, False):
        feeds = (
            {"x": X, "c": np.array(condition)}
            if "c" in {item.name for item in again.graph.input}
            else {"x": X}
        )
        for run in (in_reference, in_onnxruntime):
            assert all_same(run(given_model, feeds), run(again, feeds))
    assert from_onnx(again) == graph


def test_a_deep_body_takes_what_it_needs_through_those_around_it() -> None:
    graph = from_onnx(model(BRANCHES))
    left = graph.nodes[1].attributes["then_branch"]
    assert isinstance(left, Subgraph)
    names = dict(graph.names)
    assert sorted(names[edge] for edge in left.captures) == ["c", "x", "y"]
    deep = left.graph.nodes[0].attributes["then_branch"]
    assert isinstance(deep, Subgraph)
    sources = dict(zip(left.graph.captured, left.captures, strict=True))
    assert [names[sources[edge]] for edge in deep.captures] == ["y", "x"]
    assert [deep.graph.types[edge] for edge in deep.graph.captured] == [TensorType("float32", (2,))] * 2


def test_a_loop_is_typed_in_its_body_and_outside() -> None:
    graph = from_onnx(model(LOOP))
    assert [str(graph.types[edge]) for edge in graph.outputs] == ["float32[2]", "float32[3,2]"]
    body = graph.nodes[0].attributes["body"]
    assert isinstance(body, Subgraph)
    assert [str(body.graph.types[edge]) for edge in body.graph.outputs] == [
        "bool[]",
        "float32[2]",
        "float32[2]",
    ]


def test_inputs_left_out_keep_their_places() -> None:
    graph = from_onnx(model("g (float[2] x, float m) => (float[2] y) { y = Clip(x, , m) }"))
    assert graph.nodes[0].inputs == (0, None, 1)
    assert list(to_onnx(graph).graph.node[0].input) == ["x", "", "m"]


def test_outputs_left_out_keep_their_places() -> None:
    given_model = model(
        "g (float[3,1,2] x, float[1,8,2] w, float[1,8,2] r) => (float[1,1,2] c) {"
        " , , c = LSTM<hidden_size = 2>(x, w, r) }"
    )
    graph = from_onnx(given_model)
    validate(graph)
    assert [graph.types[edge] for edge in graph.nodes[0].outputs][:2] == [ABSENT, ABSENT]
    again = to_onnx(graph)
    assert list(again.graph.node[0].output) == ["", "", "c"]
    assert from_onnx(again) == graph


def test_constant_nodes_stay_nodes_and_initializers_initializers() -> None:
    text = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        c = Constant<value = float {3}>()
        s = Add(x, w)
        y = Mul(s, c)
    }"""
    graph = from_onnx(model(text))
    assert [node.op for node in graph.nodes] == ["Constant", "Add", "Mul"]
    assert [graph.names[edge] for edge in graph.constants] == ["w"]


def test_an_initializer_that_is_an_input_stays_both() -> None:
    made = model("g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }")
    made.graph.initializer.append(numpy_helper.from_array(X, "w"))
    graph = from_onnx(made)
    validate(graph)
    assert graph.inputs == (0, 1)
    assert list(graph.constants) == [1]
    again = to_onnx(graph)
    assert all_same(in_onnxruntime(again, {"x": X}), [X + X])
    assert all_same(in_onnxruntime(again, {"x": X, "w": -X}), [X - X])


def test_functions_are_inlined() -> None:
    made = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "mine" : 1]>
        g (float[2] x) => (float[2] y) { y = mine.twice(x) }
        <domain: "mine", opset_import: ["" : 21]>
        twice (a) => (b) { b = Add(a, a) }
    """)
    graph = from_onnx(made)
    assert [node.op for node in graph.nodes] == ["Add"]
    assert all_same(in_onnxruntime(to_onnx(graph), {"x": X}), [X + X])


def test_operators_of_other_domains_are_kept_with_their_versions() -> None:
    made = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
        g (float[2] x) => (float[2] y) { y = ai.onnx.ml.Scaler<offset = [1.0, 1.0], scale = [2.0, 2.0]>(x) }
    """)
    graph = from_onnx(made)
    assert graph.nodes[0].domain == "ai.onnx.ml"
    assert graph.opsets == {"ai.onnx.ml": 3}
    assert all_same(in_reference(to_onnx(graph), {"x": X}), in_reference(made, {"x": X}))


def test_the_long_name_of_the_default_domain_is_the_short_one() -> None:
    made = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    made.opset_import[0].domain = "ai.onnx"
    made.graph.node[0].domain = "ai.onnx"
    graph = from_onnx(made)
    assert (graph.opset, graph.opsets, graph.nodes[0].domain) == (21, {}, "")


def test_sequences_and_optionals_have_their_types_as_text() -> None:
    text = """g (seq(float[2,?]) s, optional(float[2]) o, float[N] v) => (int64 n, bool h, float[N] w) {
        n = SequenceLength(s)
        h = OptionalHasElement(o)
        w = Relu(v)
    }"""
    graph = from_onnx(model(text))
    types = [graph.types[edge] for edge in graph.inputs]
    assert types == [
        TensorType("seq(float[2,?])", None),
        TensorType("optional(float[2])", None),
        TensorType("float32", (None,)),
    ]
    again = to_onnx(graph)
    onnx.checker.check_model(again, full_check=True)
    assert from_onnx(again) == graph


def test_a_type_may_be_an_attribute() -> None:
    proto = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    node = helper.make_node("Optional", [], ["o"], type=proto)
    output = helper.make_value_info("o", helper.make_optional_type_proto(proto))
    made = helper.make_model(
        helper.make_graph([node], "g", [], [output]), opset_imports=[helper.make_opsetid("", 21)]
    )
    graph = from_onnx(made)
    assert graph.nodes[0].attributes == {"type": TypeValue(TensorType("float32", (2,)))}
    assert to_onnx(graph).graph.node[0].attribute[0].tp == proto


@pytest.mark.parametrize(
    "name", ["float32", "float64", "float16", "int8", "uint16", "int64", "bool", "complex64"]
)
def test_tensors_are_read_whatever_their_encoding(name: str) -> None:
    array = np.array([[1, 0, 3], [0, 1, 2]], name)
    typed = helper.make_tensor("t", DTYPES[name], array.shape, array.ravel().tolist())
    raw = numpy_helper.from_array(array)
    assert not typed.raw_data
    assert raw.raw_data
    assert constant_of(typed) == constant_of(raw)
    assert constant_of(raw).array.tolist() == array.tolist()


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2fnuz", "int4", "uint4", "float4_e2m1fn", "int2"]
)
def test_types_that_numpy_lacks_come_as_raw_bits_and_go_back(name: str) -> None:
    array = np.array([1, 0, -1 if "uint" not in name else 3, 1, 0], getattr(ml_dtypes, name))
    tensor = numpy_helper.from_array(array)
    constant = constant_of(tensor)
    assert constant.dtype == name
    assert constant.array.dtype.kind == "u"
    again = TensorProto()
    fill_tensor(again, constant)
    assert numpy_helper.to_array(again).tolist() == array.tolist()
    assert again == tensor


def test_texts_come_as_objects_and_go_back_even_if_they_are_no_unicode() -> None:
    tensor = TensorProto(data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"\xff"])
    again = TensorProto()
    fill_tensor(again, constant_of(tensor))
    assert list(again.string_data) == [b"a", b"\xff"]


def test_external_data_are_refused() -> None:
    made = model("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    tensor = made.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "weights.bin"
    with pytest.raises(UnreadableError, match="'w' keeps its data in another file"):
        from_onnx(made)


def test_sparse_initializers_are_refused() -> None:
    made = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    sparse = made.graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "w"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.zeros(1, np.int64), "i"))
    sparse.dims.append(2)
    with pytest.raises(UnreadableError, match="'w' is sparse"):
        from_onnx(made)


@pytest.mark.parametrize("number", [-1, 0, 1])
def test_more_outputs_of_a_split_than_it_says_are_refused(number: int) -> None:
    """ONNX's inference reads beyond a vector's end there, which aborts the process."""
    made = model("g (float[4] x) => (float[2] y, float[2] z) { y, z = Split <num_outputs = 2> (x) }")
    from_onnx(made)
    made.graph.node[0].attribute[0].i = number
    with pytest.raises(UnreadableError, match="has 2 outputs"):
        from_onnx(made)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(UnreadableError, match="no ONNX model"):
        from_onnx(b"\xff\xff\xff")


def test_a_name_that_nothing_defines_is_told() -> None:
    made = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    made.graph.node[0].input[0] = "z"
    with pytest.raises(UnreadableError, match="nothing defines 'z'"):
        from_onnx(made)


def test_names_that_look_like_numbers_but_are_none_of_ours_are_kept() -> None:
    text = "g (float[2] v9) => (float[2] v0) { v1 = Relu(v9)\n v0 = Neg(v1) }"
    graph = from_onnx(model(text))
    validate(graph)
    assert [graph.names[edge] for edge in (*graph.inputs, *graph.outputs)] == ["v9", "v0"]
    assert [item.name for item in to_onnx(graph).graph.input] == ["v9"]
