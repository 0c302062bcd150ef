"""Operators that share a helper of the compiler are one bug where both need what the helper is for."""

from __future__ import annotations

import pytest

from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from fuzzing.triage.signature import Signature, compute_signature, explains
from fuzzing.triage.traits import Traits, read_traits
from tests.fuzzing.triage.outcomes_kit import wrong_result
from tests.fuzzing.triage.test_traits import case_of


def signed(operator: str, kind: str, *needs: str, proven: tuple[str, ...] = ()) -> Signature:
    """Of a reduced model of one operator with a wrong output."""
    traits = Traits(operator, ("float",), tuple(sorted(needs)), (operator,), proven=proven)
    return compute_signature(wrong_result(kind), "", reduced=traits)


@pytest.mark.parametrize(
    ("kind", "first", "second", "need"),
    [
        ("value", "GRU", "LSTM", "{}.layout"),  # OpenVINO ignores it in all three
        ("shape", "RNN", "GRU", "{}.layout"),
        ("value", "ReduceMax", "ReduceProd", "zero-size"),  # TVM's memory of nothing
        ("shape", "ReduceL1", "ReduceLogSum", "{}.axes"),  # OpenVINO before opset 18
        ("value", "ArgMax", "ArgMin", "{}.keepdims"),
    ],
)
def test_what_a_family_shares_is_one_bug(kind: str, first: str, second: str, need: str) -> None:
    one, other = (signed(name, kind, need.format(name), "rank 1") for name in (first, second))
    assert explains(one, other)
    assert explains(other, one)
    assert one.key != other.key, "a key names its operator, as before"
    more = need.format(second), f"{second}.hidden_size", "rank 1"
    assert explains(one, signed(second, kind, *more))
    assert not explains(one, signed(second, kind, *more, proven=(f"{second}.hidden_size",)))


@pytest.mark.parametrize(
    ("kind", "first", "second", "need"),
    [
        ("value", "GRU", "LSTM", "rank 1"),
        ("value", "GRU", "LSTM", "{}.initial_h"),
        ("value", "ReduceL1", "ReduceLogSum", "{}.axes"),
        ("value", "ReduceL1", "ReduceLogSum", "{}.noop_with_empty_axes"),
        ("shape", "Conv", "ConvTranspose", "{}.pads"),
    ],
)
def test_what_an_operator_does_itself_is_a_bug_of_each(kind: str, first: str, second: str, need: str) -> None:
    one, other = (signed(name, kind, need.format(name)) for name in (first, second))
    assert not explains(one, other)
    assert not explains(other, one)


def test_another_need_of_the_family_is_another_bug() -> None:
    one = signed("ReduceL1", "shape", "ReduceL1.axes", "rank 1")
    assert not explains(one, signed("ReduceMax", "shape", "zero-size", "rank 1"))


def test_what_a_reduction_of_nothing_reads_is_one_bug_of_the_larger_too() -> None:
    """TVM's memory of nothing, which may be NaN."""
    traits = [
        Traits(name, ("float",), ("rank 1", "zero-size"), (name,)) for name in ("ReduceMin", "ReduceSum")
    ]
    one, other = (compute_signature(wrong_result(got="nan"), "", reduced=each) for each in traits)
    assert explains(one, other)


def test_an_order_of_dimensions_is_one_bug_whether_shapes_or_numbers_show_it() -> None:
    """OpenVINO's `layout`: where lengths are equal the numbers alone are wrong."""
    one, other = (
        signed("RNN", "shape", "RNN.layout"),
        signed("LSTM", "value", "LSTM.hidden_size", "LSTM.layout"),
    )
    assert explains(one, other)
    assert not explains(signed("RNN", "shape", "RNN.clip"), signed("RNN", "value", "RNN.clip"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["keep_aspect_ratio_policy=not_larger"], ["keep_aspect_ratio_policy=not_smaller"]),
        (["antialias", "mode=linear"], ["antialias", "mode=cubic"]),
        (["antialias"], ["antialias", "mode=linear"]),
    ],
)
def test_a_part_of_resize_is_one_bug_whatever_text_chooses_beside_it(
    first: list[str], second: list[str]
) -> None:
    one, other = (
        signed("Resize", "value", *needs, proven=tuple(needs))
        for needs in ([f"Resize.{need}" for need in each] for each in (first, second))
    )
    assert explains(one, other)


@pytest.mark.parametrize(
    "modes",
    [
        ("mode=linear", "mode=cubic"),
        ("nearest_mode=ceil", "nearest_mode=floor"),
        ("exclude_outside", "antialias"),
    ],
)
def test_other_texts_of_resize_choose_other_algorithms(modes: tuple[str, str]) -> None:
    one, other = (signed("Resize", "value", f"Resize.{mode}", proven=(f"Resize.{mode}",)) for mode in modes)
    assert not explains(one, other)
    assert not explains(other, one)


def torch_result(operator: str, root: str, want: str = "nan", needs: tuple[str, ...] = ()) -> Signature:
    """Of a call of torch with a wrong output, in which ATen's operator `root` is wrong by itself."""
    shown = {"phase": "run", "verdict": "wrong_result", "error": "", "frames": []}
    outcome = wrong_result(want=want)
    complaint = compute_signature(outcome, "").fields["complaint"]
    wrong = {**shown, "complaint": complaint, "operator": root, "dtypes": ["float"], "needs": list(needs)}
    return compute_signature(
        outcome, operator, "PyTorch", Traits(operator, ("float",), needs, (operator,), root=wrong)
    )


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [("amin", "max", "nan"), ("amax", "amin", "-inf"), ("argmax", "argmin", "2")],  # OpenVINO leaves out NaN
)
def test_the_larger_and_the_smaller_are_one_bug_of_torch_too(first: str, second: str, want: str) -> None:
    one, other = (
        torch_result(f"torch.{first}", first, want),
        torch_result(f"torch.Tensor.{second}", second, want),
    )
    assert explains(one, other)
    assert explains(other, one)


@pytest.mark.parametrize(
    ("first", "second", "same"), [("mm", "bmm", True), ("sub", "mul", True), ("mm", "mul", False)]
)
def test_the_type_of_a_result_is_one_bug_of_all_that_get_it_alike(
    first: str, second: str, same: bool
) -> None:
    """TVM's matrix products of integers are float32, and integers times a float are integers."""

    def signed_type(name: str) -> Signature:
        outcome = wrong_result("type", "float32 instead of int64")
        return compute_signature(outcome, "", "PyTorch", Traits(f"torch.{name}", ("int",), ("rank 1",)))

    assert explains(signed_type(first), signed_type(second)) is same


def test_wrong_numbers_of_the_larger_are_not_those_of_the_smaller() -> None:
    assert not explains(torch_result("torch.amax", "amax", "2"), torch_result("torch.amin", "amin", "2"))
    assert not explains(torch_result("torch.amax", "amax"), torch_result("torch.sum", "sum"))


def refused(
    part: str, file: str, *needs: str, sentence: str = "Input rank must be greater than 1"
) -> Signature:
    """Of a call that OpenVINO does not convert, for what a check in a file says of ATen's operator `part`."""
    message = (
        f"-- aten.{part}.default with a message:\nCheck 'rank > 0' failed at src/core/{file}:5:\n{sentence}\n"
    )
    seen = Evidence(error="OpConversionFailure", message=message)
    outcome = Outcome("0" * 64, "openvino", "t", "CPU", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)
    traits = Traits(f"torch.{part}", ("float",), needs, (f"torch.{part}",))
    return compute_signature(outcome, f"torch.{part}", "PyTorch", traits)


def test_which_number_a_matrix_product_loses_its_type_for_is_no_bug_of_its_own() -> None:
    """TVM's are float32, of integers as of float64."""

    def signed_type(name: str, dtype: str, detail: str) -> Signature:
        return compute_signature(
            wrong_result("type", detail), "", "PyTorch", Traits(f"torch.{name}", (dtype,))
        )

    one = signed_type("mm", "int", "float32 instead of int64")
    assert explains(one, signed_type("bmm", "float", "float32 instead of float64"))
    integers = signed_type("mul", "int", "int64 instead of float32")
    assert not explains(integers, signed_type("mul", "float", "float64 instead of float32"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("sort", "argmin"),
        ("topk", "argsort"),
        ("min", "amax"),
        ("native_batch_norm", "_native_batch_norm_legit"),
    ],
)
def test_what_is_refused_of_one_of_aten_is_refused_of_those_converted_alike(first: str, second: str) -> None:
    """OpenVINO converts all of them to its TopK, or to reductions of one file."""
    one, other = (
        refused(first, "topk_shape_inference.hpp"),
        refused(second, "topk_shape_inference.hpp", "dim"),
    )
    assert explains(one, other)
    assert not explains(one, refused(second, "slice_shape_inference.hpp", "dim"))


@pytest.mark.parametrize(
    ("first", "second", "file"),
    [
        ("sort", "sum", "topk_shape_inference.hpp"),
        ("logsumexp", "amax", "shape_util.cpp"),
        ("sort", "argmin", "utils.cpp"),  # a converter misses an input
    ],
)
def test_what_converters_do_wrong_themselves_is_a_bug_of_each(first: str, second: str, file: str) -> None:
    one, other = refused(first, file), refused(second, file)
    assert not explains(one, other)
    assert not explains(other, one)


def test_one_function_for_the_larger_and_one_for_the_smaller_are_one_bug() -> None:
    """TVM reduces no bools: `max_value` and `min_value` of a type."""

    def failed(word: str) -> Signature:
        message, frame = (
            f"Cannot decide {word}_value for typeT.bool",
            f"op.cc:tvm::PrimExpr tvm::{word}_value(T)",
        )
        seen = Evidence(error="InternalError", message=message, traceback=(frame,))
        outcome = Outcome("0" * 64, "tvm", "t", "cpu", Verdict.CRASH, Phase.COMPILE, "s", evidence=seen)
        return compute_signature(outcome, "", reduced=Traits("ReduceMax", ("bool",), (), ("ReduceMax",)))

    assert explains(failed("max"), failed("min"))
    assert not explains(failed("max"), failed("mean"))


def test_the_form_in_which_an_attention_has_heads_is_the_case_not_the_bug() -> None:
    """tinygrad gives grouped queries the wrong heads, in three dimensions and in four."""
    four = ("Attention shares keys", "rank 3", "rank 4")
    three = ("Attention shares keys", "Attention.kv_num_heads", "Attention.q_num_heads", "rank 3")
    one, other = (signed("Attention", "value", *needs) for needs in (four, three))
    assert explains(one, other)
    assert explains(other, one)
    assert not explains(signed("Attention", "value", "Attention.attn_mask", *four), other)


SCAN = """
(float[2] a, float[2, 2] x{head}) => (float[2] b, float[2, 2] y) {{
  b, y = Scan<num_scan_inputs = 1, body = g (float[2] s, float[2] r) => (float[2] t, float[2] z) {{
    t = {op}(s, {read})
    z = Identity(t)
  }}>(a, x)
}}
"""


def scanned(check: str, op: str, read: str = "r", *, file: str = "scan.cpp") -> Signature:
    """Of a Scan that OpenVINO does not convert, for what a check in a file says."""
    head = ", float[2] outer" if read == "outer" else ""
    seen = Evidence(
        error="RuntimeError", message=f"Check '{check}' failed at src/core/{file}:5:\nWrong number\n"
    )
    outcome = Outcome("0" * 64, "openvino", "t", "CPU", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)
    return compute_signature(
        outcome, "Scan", reduced=read_traits(case_of(SCAN.format(op=op, read=read, head=head)))
    )


def test_what_a_body_computes_is_not_what_the_operator_that_runs_it_refuses() -> None:
    assert explains(scanned("a >= b", "Add"), scanned("a >= b", "Mul"))
    assert not explains(scanned("a >= b", "Add"), scanned("c >= d", "Mul"))
    assert not explains(
        scanned("a >= b", "Add", file="eltwise.cpp"), scanned("a >= b", "Mul", file="eltwise.cpp")
    )


def test_a_body_that_reads_an_outer_value_is_one_bug_whichever_check_counts_it() -> None:
    """OpenVINO counts it among the inputs of the Scan."""
    one, other = scanned("a >= b", "Add", "outer"), scanned("c >= d", "Mul", "outer")
    assert explains(one, other)
    assert explains(other, one)
    assert not explains(one, scanned("a >= b", "Add"))


def test_a_converter_that_fails_is_one_bug_of_all_calls_of_its_operator() -> None:
    """TVM divides by the order 0 of `linalg.norm`, `masked.norm` and `pairwise_distance`."""

    def failed(api: str, converter: str, *needs: str) -> Signature:
        stack = ("tvm/e.py:Importer._translate_fx_graph", f"tvm/b.py:Importer.{converter}")
        seen = Evidence(error="ZeroDivisionError", message="float division by zero", traceback=stack)
        outcome = Outcome("0" * 64, "tvm", "t", "cpu", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)
        return compute_signature(outcome, "", "PyTorch", Traits(api, ("float",), needs, (api,)))

    one, other = (
        failed("torch.linalg.norm", "_norm", "ord"),
        failed("torch.masked.norm", "_norm", "dim", "rank 1"),
    )
    assert explains(one, other)
    assert not explains(one, failed("torch.masked.norm", "_mean", "ord"))
