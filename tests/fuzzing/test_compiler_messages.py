from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.compiler_messages import (
    MAX_TEMPLATE,
    VARIABLE_PARTS,
    WRAPPERS,
    ParsedMessage,
    has_words,
    message_words,
    normalize_message,
    parse_message,
)

ORT = "[ONNXRuntimeError] : 1 : FAIL : "
OV26 = """Exception from src/inference/src/cpp/core.cpp:105:
Check 'false' failed at src/frontends/common_translators/src/unconverted_ops_report.cpp:151:
FrontEnd API failed with OpConversionFailure:
Model wasn't fully converted."""

#: What onnxruntime 1.31.1 and OpenVINO 2024.6 and 2026.4.1 say of ONNX's node tests.
REAL = {
    "kernel": (
        ORT + "Non-zero status code returned while running Attention node. Name:'' Status Message: "
        "/onnxruntime_src/onnxruntime/core/providers/cpu/llm/attention_helper.h:159 "
        "onnxruntime::common::Status "
        "onnxruntime::attention_helper::ComputeOutputShapeForAttention(const onnxruntime::Tensor*, "
        "bool, float, "
        "QKMatMulOutputMode, onnxruntime::TensorShape&) attn_mask == nullptr || "
        "attn_mask->Shape()[attn_mask->Shape().NumDimensions() - 1] == parameters.total_sequence_length "
        "was false. inconsistent total_sequence_length (between attn_mask and past_key and past_value)\n",
        "attn_mask == nullptr || attn_mask->Shape()[attn_mask->Shape().NumDimensions() - N] == "
        "parameters.total_sequence_length was false. inconsistent total_sequence_length (between "
        "attn_mask and "
        "past_key and past_value)",
        "attention_helper.h",
    ),
    "const method": (
        ORT + "Non-zero status code returned while running ConvInteger node. Name:'' Status Message: "
        "/onnxruntime_src/onnxruntime/core/providers/cpu/quantization/conv_integer.cc:52 virtual "
        "onnxruntime::common::Status onnxruntime::ConvInteger::Compute(onnxruntime::OpKernelContext*) const "
        "IsScalarOr1ElementVector(W_Zero_Point) was false. Non per-tensor quantization is not "
        "supported now.\n",
        "IsScalarOr1ElementVector(W_Zero_Point) was false. Non per-tensor quantization is not supported now.",
        "conv_integer.cc",
    ),
    "template": (
        ORT + "Exception during initialization: /onnxruntime_src/onnxruntime/core/providers/cpu/rnn/rnn.h:35 "
        "onnxruntime::RNN<T>::RNN(const onnxruntime::OpKernelInfo&) [with T = float] layout_ == 0 "
        "was false. ",
        "layout_ == N was false.",
        "rnn.h",
    ),
    "graph": (
        ORT.replace("1 : FAIL", "10 : INVALID_GRAPH")
        + 'This is an invalid model. In Node, ("", Attention, "", -1) : ("Q": tensor(float),"K": '
        'tensor(float),) '
        '-> ("Y": tensor(float),) , Error Unrecognized attribute: left_window_size for operator Attention',
        "Unrecognized attribute: left_window_size for operator Attention",
        "",
    ),
    "kernel without a place": (
        "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceMax "
        "node. Name:'r' Status Message: ReduceMax is not defined for empty set with bool type",
        "ReduceMax: ReduceMax is not defined for empty set with bool type",
        "",
    ),
    "no rule": (
        OV26 + "\nSummary:\n-- No conversion rule found for operations: ai.onnx.preview.training.Adagrad\n"
        "To facilitate the conversion of unsupported operations, refer to Frontend Extension documentation: "
        "https://docs.openvino.ai/latest/x.html \n\n\n",
        "No conversion rule found for operations: ai.onnx.preview.training.Adagrad",
        "unconverted_ops_report.cpp",
    ),
    "thrown without a check": (
        OV26 + " Failed operations detailed log:\n-- Split-20 with a message:\nWhile validating ONNX node "
        "'<Node(Split): AffineGrid_test_affine_grid_2d_expanded_function_N_else>': Check 'false' failed at "
        "src/frontends/onnx/frontend/src/utils/split.cpp:35:\nFrontEnd API failed with GeneralFailure:\n"
        "The split number is invalid\n\nSummary:\n-- Conversion is failed for: Split-20\n\n\n",
        "The split number is invalid",
        "split.cpp",
    ),
    "parentheses around nothing": (
        OV26 + " Failed operations detailed log:\n-- Resize-13 with a message:\nCheck '(false)' failed at "
        "src/frontends/onnx/frontend/src/op/resize.cpp:60:\nFrontEnd API failed with GeneralFailure:\n"
        "tf_crop_and_resize - this mode is not supported\n",
        "tf_crop_and_resize - this mode is not supported",
        "resize.cpp",
    ),
    "parentheses around a check": (
        "Check '(a.b(c) == (d))' failed at x/y.cpp:1:\n", "Check 'a.b(c) == (d)'", "y.cpp",
    ),
    "parentheses at both ends": (
        "Check '(a) == (b)' failed at x/y.cpp:1:\n", "Check '(a) == (b)'", "y.cpp",
    ),
    "types": (
        "Exception from src/inference/src/cpp/core.cpp:105:\nException from "
        "src/frontends/onnx/frontend/src/utils/"
        "common.cpp:81:\nUnsupported data type UINT2 expected: BOOL, BFLOAT16, UNDEFINED\n",
        "Unsupported data type UINT2 expected: …",
        "common.cpp",
    ),
    "cache": (
        "Exception from src/inference/src/cpp/core.cpp:94:\nException from "
        "src/frontends/onnx/frontend/src/core/"
        "graph_cache.cpp:27:\none_1d node not found in graph cache\n\n",
        "NAME node not found in graph cache",
        "graph_cache.cpp",
    ),
    "details": (
        "Exception from src/inference/src/dev/plugin.cpp:54:\nCheck 'newNode' failed at "
        "src/plugins/intel_cpu/src/"
        "node.cpp:1626:\nUnsupported operation of type: Convert name: q_t_f\nDetails:\nException "
        "from src/plugins/"
        "intel_cpu/src/nodes/reference.cpp:36:\nNot Implemented:\nCannot fallback. Not implemented for op: "
        "opset1::Convert q_t_f (opset1::Reshape Squeeze_4765840[0]:dynamic[2,4,8]) -> (f32[2,4,8])\n",
        "Cannot fallback. Not implemented for op: opset1::Convert NAME (opset1::Reshape NAME[…]:dynamic[…]) "
        "-> (f32[…])",
        "reference.cpp",
    ),
    "plugin's shapes": (
        "Exception from src/plugins/intel_cpu/src/nodes/reshape.cpp:90:\n[cpu]reshape: the shape of "
        "input data "
        "(0.3.4) conflicts with the reshape pattern (3.4.0)\n",
        "[cpu]reshape: the shape of input data (…) conflicts with the reshape pattern (…)",
        "reshape.cpp",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("message", "template", "frame"), REAL.values(), ids=REAL.keys())
def test_real_messages(message: str, template: str, frame: str) -> None:
    found = parse_message(message)
    assert (found.template, found.frame) == (template, frame)
    assert found.headline


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("input 'x' has shape [1,2]", "input 'data_0' has shape [3, 4, ?]"),
        ("at 0x7ffd1234", "at 0xdeadbeef"),
        ("seed 12345", "seed 7"),
        ("epsilon 1e-05", "epsilon 0.001"),
        ("cannot open /tmp/a1/model.onnx", "cannot open /home/me/x/model.onnx"),
        ("node with name 'Add_1' fails", "node with name `Sub` fails"),
        ("in node (a.b).", "in node ()."),
        ("Parameter_12 vs Constant_7", "Parameter_1 vs Constant_99"),
        ("AffineGrid_test_a_function_N", "AffineGrid_test_b_expanded_function_C"),
        ('File "/a/b.py", line 7', 'File "/c/b.py", line 8'),
        ("{1,2} vs {3}", "{4} vs {5,6,7}"),
        ("'tensor<?x1xi1>' and 'tensor<1xi1>'", "'tensor<?x1xi1>' and 'tensor<2x?xi1>'"),
        (
            "(arg0 element type: f16, arg1 element type: f32)",
            "(arg0 element type: f64, arg1 element type: f32)",
        ),
        (
            "Multiple dispatch failed for 'torch._ops.aten.abs.default'; all handlers",
            "Multiple dispatch failed for 'torch._ops.assay_mutant.operator1.default'; all handlers",
        ),
        ('R.subtract(R.const(1.0, "float32"), lv7) uses', 'R.subtract(R.const(1.0, "float32"), lv3) uses'),
        ('R.multiply(lv6, R.const(9.9e-05, "float32"))', 'R.multiply(v0, R.const(0.5, "float32"))'),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-0000-0000-0000-000000000000"),
    ],
)
def test_particulars_are_gone(one: str, other: str) -> None:
    assert normalize_message(one) == normalize_message(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("float16 is unsupported", "float32 is unsupported"),
        ("opset1::Split fails", "opset1::Concat fails"),
        ("Check 'a > b'", "Check 'a < b'"),
        ("wrong rank", "wrong shape"),
        ("tensor(float16)", "tensor(double)"),
        ("'tensor<?xi1>'", "'tensor<?xf32>'"),
        ("Unsupported element type: f16 in Add", "Unsupported element type: f16 in Sub"),
        ("read a.cpp", "read b.cpp"),
        ('R.multiply(lv, R.const(0.5, "float32"))', "R.multiply(lv, v0)"),
        ('R.multiply(lv, R.const(0.5, "float32"))', 'R.subtract(lv, R.const(0.5, "float32"))'),
    ],
)
def test_what_tells_bugs_apart_stays(one: str, other: str) -> None:
    assert normalize_message(one) != normalize_message(other)


def test_no_text_is_no_blame() -> None:
    assert parse_message("") == parse_message(" \n ") == ParsedMessage("", "", "", "")


@given(st.text(max_size=300))
def test_any_text_gives_one_line(text: str) -> None:
    found = parse_message(text)
    for output in (found.template, found.headline):
        assert len(output) <= MAX_TEMPLATE
        assert output == " ".join(output.split())


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.sampled_from(sorted(REAL)))
def test_lines_do_not_matter(line: int, other: int, which: str) -> None:
    message, _, frame = REAL[which]
    if frame:
        at = message.index(frame + ":") + len(frame) + 1
        rest = message[at:].lstrip("0123456789")
        assert parse_message(message[:at] + str(line) + rest) == parse_message(
            message[:at] + str(other) + rest
        )


def test_every_rule_says_why() -> None:
    assert all(why for _, _, why in (*WRAPPERS, *VARIABLE_PARTS))


@pytest.mark.parametrize("which", sorted(REAL))
def test_the_words_of_a_message_are_in_it(which: str) -> None:
    message = REAL[which][0]
    words = message_words(message)
    assert words
    assert has_words(message, words)
    assert not has_words("No module named 'onnx'", words)


@given(st.text(max_size=300))
def test_any_text_has_its_own_words(text: str) -> None:
    assert has_words(text, message_words(text))


def test_words_are_compared_in_their_order() -> None:
    words = message_words("Concat: shape [3,4] of node 'a' and axis 7")
    assert has_words("Concat: shape [1] of node 'other' and axis 0", words)
    assert not has_words("axis 7 and shape of Concat", words)


MIXED = "Binary operators must have the same datatype.  However, R.power({}) uses datatype T.{} on the LHS."


def test_an_array_in_relax_is_an_operand_like_any() -> None:
    """TVM prints a comment of its own line behind the call that has one."""
    note = "# Metadata omitted. Use show_meta=True in script() method to show it."
    array = MIXED.format('x, metadata["ir.GenericConst"][0]', "float16").replace(" uses", f"\n{note} uses")
    assert parse_message(array).template == parse_message(MIXED.format("x, y", "float32")).template
    assert "R.power(…) uses datatype T.TYPE" in parse_message(array).template


def _failed(*operators: str) -> str:
    said = {
        "QLinearConv": "Check 'a == b' failed at src/op/dequantize_linear.cpp:139:\nFrontEnd API failed with "
        "GeneralFailure:\nThe number of zero point elements '5' must match\n",
        "Trilu": "Exception from src/core/element_visitor.hpp:150:\nElement not supported\n",
        "DepthToSpace": "Exception from src/core/element_visitor.hpp:150:\nElement not supported\n",
    }
    parts = [
        f"-- {op}-18 with a message:\nWhile validating ONNX node '<Node({op}): {name}>': {said[op]}"
        for op, name in (operator.split() for operator in operators)
    ]
    heading = "Model wasn't fully converted. Failed operations detailed log:\n"
    names = ", ".join(f"{operator.split()[0]}-18" for operator in operators)
    return f"{heading}{''.join(parts)}\nSummary:\n-- Conversion is failed for: {names}\n"


def test_of_several_operators_that_failed_the_first_in_the_model_counts() -> None:
    """OpenVINO sorts them by name, and what reads a failed operator may fail for that reason."""
    alone = parse_message(_failed("QLinearConv vn0_QLinearConv"))
    assert (alone.frame, alone.template) == ("dequantize_linear.cpp", "Check 'a == b'")
    first, last = "QLinearConv vn9_QLinearConv", "QLinearConv vn12_QLinearConv"
    assert parse_message(_failed(first, "Trilu vn10_Trilu")) == alone
    assert parse_message(_failed("DepthToSpace vn10_DepthToSpace", first)) == alone
    assert parse_message(_failed("DepthToSpace vn10_DepthToSpace", last)) != alone
    unnumbered = parse_message(_failed("QLinearConv a", "Trilu b"))
    assert unnumbered.frame == "element_visitor.hpp", "the last one, where the order is unknown"
