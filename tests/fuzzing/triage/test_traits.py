"""What a reduced case shows of its bug, whatever its tensors and nodes are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import KerasLayer, OnnxModel, Provenance, Tensor, TestCase, TorchCall
from fuzzing.cases.arguments import TensorArg
from fuzzing.triage.traits import Traits, dtype_class, read_traits, shape_needs

ORIGIN = Provenance("tests", "t", "Op", "onnx", "1")


def case_of(graph: str) -> TestCase:
    """A case of a graph, with ones as inputs."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {graph}')
    return case_of_model(model)


def case_of_model(model: onnx.ModelProto) -> TestCase:
    held = {item.name for item in model.graph.initializer}
    inputs = []
    for item in model.graph.input:
        kind = item.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if item.name not in held:
            inputs.append((item.name, Tensor.of(np.ones(shape, dtype))))
    return TestCase(OnnxModel(model.SerializeToString()), tuple(inputs), ORIGIN)


READ: dict[str, tuple[str, str, list[str]]] = {
    "alone": ("(float x) => (float y) { y = Elu(x) }", "Elu", []),
    "an attribute": ("(float x) => (float y) { y = Elu<alpha = 0.5>(x) }", "Elu", ["Elu.alpha"]),
    "a default": ("(float x) => (float y) { y = Elu<alpha = 1.0>(x) }", "Elu", []),
    "a default in words": (
        "(float[1,1,2] x) => (float[1,1,1] y) "
        "{ y = MaxPool<kernel_shape = [2], pads = [0, 0], strides = [1]>(x) }",
        "MaxPool",
        ["rank 1", "rank 2", "rank 3"],
    ),
    "heads that share keys": (
        "(float[1,2,1,1] q, float[1,1,1,1] k) => (float[1,2,1,1] y) { y = Attention(q, k, k) }",
        "Attention",
        ["Attention given one tensor twice", "Attention shares keys", "rank 1", "rank 2", "rank 3", "rank 4"],
    ),
    "heads of their own keys": (
        "(float[1,2,1,1] q, float[1,2,1,1] k) => (float[1,2,1,1] y) { y = Attention(q, k, k) }",
        "Attention",
        ["Attention given one tensor twice", "rank 1", "rank 2", "rank 3", "rank 4"],
    ),
    "heads by their number": (
        "(float[1,1,2] q, float[1,1,1] k) => (float[1,1,2] y) "
        "{ y = Attention<kv_num_heads = 1, q_num_heads = 2>(q, k, k) }",
        "Attention",
        [
            "Attention given one tensor twice",
            "Attention shares keys",
            "Attention.kv_num_heads",
            "Attention.q_num_heads",
            "rank 1",
            "rank 2",
            "rank 3",
        ],
    ),
    "a default mode": (
        '(float[1,1,2,2] x) => (float[1,1,2,2] y) { y = DepthToSpace<blocksize = 1, mode = "DCR">(x) }',
        "DepthToSpace",
        ["rank 1", "rank 2", "rank 3", "rank 4"],
    ),
    "one of two must be there": (
        "(float[2] x) => (float[1] y, float[1] z) { y, z = Split<num_outputs = 2>(x) }",
        "Split",
        ["rank 1"],
    ),
    "one that must be there is none": (
        "(float[1] x) => (float[2] y) { y = Concat<axis = 0>(x, x) }",
        "Concat",
        ["Concat given one tensor twice", "rank 1"],
    ),
    "a mode": (
        '(float[1,1,2,2] x) => (float[1,1,4,4] y) { y = DepthToSpace<blocksize = 1, mode = "CRD">(x) }',
        "DepthToSpace",
        ["DepthToSpace.mode=CRD", "rank 1", "rank 2", "rank 3", "rank 4"],
    ),
    "one behind another": (
        "(float[2] x) => (float[2] y) { a = Tanh(x) y = Mul(x, a) }",
        "Mul(Tanh)",
        ["rank 1"],
    ),
    "on either side": (
        "(float[2] x) => (float[2] y) { a = Tanh(x) y = Mul(a, x) }",
        "Mul(Tanh)",
        ["rank 1"],
    ),
    "two parts": (
        "(float x) => (float y, float z) { y = Tanh(x) z = Abs(x) }",
        "Abs; Tanh",
        [],
    ),
    "broadcasting": (
        "(float x, float[1] z) => (float[1] y) { y = Sub(x, z) }",
        "Sub",
        ["Sub broadcasts", "rank 1"],
    ),
    "an optional input": (
        "(float x) => (float y) <float low = {0.0}> { y = Clip(x, low) }",
        "Clip",
        ["Clip.min"],
    ),
    "nothing in it": ("(float[0] x) => (float[0] y) { y = Elu(x) }", "Elu", ["rank 1", "zero-size"]),
}  # fmt: skip


@pytest.mark.parametrize(("graph", "pattern", "needs"), READ.values(), ids=READ.keys())
def test_of_a_graph(graph: str, pattern: str, needs: Sequence[str]) -> None:
    read = read_traits(case_of(graph))
    assert (read.pattern, list(read.needs), read.dtypes) == (pattern, needs, ("float",))


GRAPH = """(float[2,3] x, float[3,2] w, float[2] b) => (float[2,2] y, float[2,3] z) {
    a = Tanh(x)  c = MatMul(a, w)  d = Add(c, b)  y = Relu(d)  z = Sigmoid(x)
}"""


@given(st.data())
def test_names_and_the_order_of_nodes_and_outputs_make_no_difference(data: st.DataObject) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {GRAPH}')
    old = sorted({name for node in model.graph.node for name in (*node.input, *node.output)})
    word = st.text("abcxyz_0123456789/:.", min_size=1, max_size=8)
    new = data.draw(st.lists(word, min_size=len(old), max_size=len(old), unique=True))
    called = dict(zip(old, new, strict=True))
    for node in model.graph.node:
        node.name = data.draw(word)
        node.input[:] = [called[name] for name in node.input]
        node.output[:] = [called[name] for name in node.output]
    for item in (*model.graph.input, *model.graph.output):
        item.name = called[item.name]
    place = data.draw(st.integers(0, 4))  # Sigmoid needs none of the others
    nodes = list(model.graph.node)
    nodes.insert(place, nodes.pop())
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    outputs = data.draw(st.permutations(list(model.graph.output)))
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    assert read_traits(case_of_model(model)) == read_traits(case_of(GRAPH))


def test_a_long_graph_has_a_pattern_of_bounded_length() -> None:
    chain = " ".join(f"v{n + 1} = Relu(v{n})" for n in range(200))
    one = read_traits(case_of(f"(float v0) => (float v200) {{ {chain} }}"))
    other = read_traits(case_of(f"(float v0) => (float v200) {{ {chain.replace('Relu(v7)', 'Tanh(v7)')} }}"))
    assert len(one.pattern) < 200
    assert one.pattern != other.pattern


def call(*args: TensorArg | float, **kwargs: float) -> TestCase:
    given = (("x", Tensor.of(np.ones((1, 2), np.float64))),)
    return TestCase(TorchCall("torch.cdist", args, tuple(kwargs.items())), given, ORIGIN)


def test_of_a_call_the_api_and_what_parameters_are_left() -> None:
    x = TensorArg("x")
    assert read_traits(call(x, x)) == Traits(
        "torch.cdist", ("float",), ("rank 1", "rank 2"), ("torch.cdist",)
    )
    left = set(read_traits(call(x, x, 2.0, compute_mode=1.0)).needs) - set(read_traits(call(x, x)).needs)
    assert left == {"p", "compute_mode"}


@pytest.mark.parametrize("api", ["torch.kthvalue", "torch.Tensor.kthvalue"])
def test_a_parameter_given_by_place_is_that_given_by_name(api: str) -> None:
    x = TensorArg("x")
    given = (("x", Tensor.of(np.ones(2, np.float32))),)
    by_place, by_name = (
        read_traits(TestCase(program, given, ORIGIN)).needs
        for program in (TorchCall(api, (x, 1)), TorchCall(api, (x,), (("k", 1),)))
    )
    assert by_place == by_name == ("k", "rank 1")


def test_a_parameter_that_a_list_takes_is_named_once() -> None:
    given = (("x", Tensor.of(np.ones(4, np.float32))),)
    x = TensorArg("x")
    spread, listed = (
        read_traits(TestCase(TorchCall("torch.Tensor.view", args), given, ORIGIN)).needs
        for args in ((x, 2, 2), (x, [2, 2]))
    )
    assert spread == listed


def test_a_place_of_an_api_that_is_not_there_keeps_its_number() -> None:
    case = TestCase(TorchCall("torch.no_such_api", (TensorArg("x"), 1)), call(TensorArg("x")).inputs, ORIGIN)
    assert "parameter 1" in read_traits(case).needs


def test_of_a_layer_the_class_and_its_parameters() -> None:
    argument = TensorArg("x", dtype="float32", shape=(1, 2))
    layer = KerasLayer("keras.layers.Dense", (("units", 1),), (argument,))
    given = (("x", Tensor.of(np.ones((1, 2), np.float32))),)
    read = read_traits(TestCase(layer, given, ORIGIN))
    assert (read.pattern, "units" in read.needs) == ("keras.layers.Dense", True)


def test_of_a_program_that_nobody_reads_what_it_was_made_to_test() -> None:
    case = replace(call(TensorArg("x")), program=OnnxModel(b"no model"), inputs=())
    assert read_traits(case) == Traits("Op", operators=("Op",))


@pytest.mark.parametrize(
    ("dtype", "class_"),
    [("float16", "float"), ("float64", "float"), ("int4", "int4"), ("uint8", "uint"), ("bool", "bool")],
)
def test_classes_of_types(dtype: str, class_: str) -> None:
    assert dtype_class(dtype) == class_


@given(st.lists(st.lists(st.integers(1, 4), max_size=5).map(tuple), max_size=3), st.data())
def test_fewer_dimensions_are_no_further_needs(shapes: list[tuple[int, ...]], data: st.DataObject) -> None:
    fewer = [shape[data.draw(st.integers(0, len(shape))) :] for shape in shapes]
    assert shape_needs(fewer) <= shape_needs(shapes)


def test_of_a_model_that_is_no_operator_graph_what_it_was_made_to_test() -> None:
    case = replace(case_of("(float x) => (float y) { y = Elu(x) }"), program=OnnxModel(b"\xff\xff"))
    assert read_traits(case) == Traits("Op", operators=("Op",))


def test_what_bodies_hold_is_part_of_the_pattern() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] x, int64 n) => (float[3] y) {
            a = Abs(x)
            y = Loop(n, , a)<body = round (int64 i, bool on, float[3] s) => (bool on, float[3] t) {
                p = Neg(s)  t = Elu(p)
            }>
        }""")
    given = (("x", Tensor.of(np.ones(3, np.float32))), ("n", Tensor.of(np.array(2))))
    found = read_traits(TestCase(OnnxModel(model.SerializeToString()), given, ORIGIN))
    assert found.pattern == "Loop[Elu(Neg)](Abs)"
    assert found.operators == ("Abs", "Elu", "Loop", "Neg")


def test_element_types_that_are_left_are_needs() -> None:
    usual = case_of("(float[2] x) => (int64[2] y) { y = Cast<to = 7>(x) }")
    half = case_of("(float[2] x) => (float16[2] y) { y = Cast<to = 10>(x) }")
    assert set(read_traits(half).needs) - set(read_traits(usual).needs) == {"float16"}
