"""What a finished reduction tried to do without tells two bugs of one operator and symptom apart."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.triage.proven_needs import positive_values
from fuzzing.triage.signature import Signature, compute_key, compute_signature, explains
from fuzzing.triage.traits import Traits, read_traits

CRASH = Outcome(
    "0" * 64,
    "openvino",
    "t",
    "CPU",
    Verdict.CRASH,
    Phase.CONVERT,
    "s",
    evidence=Evidence(error="RuntimeError", message="Check 'a == b' failed at src/reshape.cpp:1:\nno"),
)
WRONG = Outcome(
    "0" * 64,
    "openvino",
    "t",
    "CPU",
    Verdict.WRONG_RESULT,
    Phase.RUN,
    "s",
    evidence=Evidence(mismatches=(Mismatch("y", "value", "", got="1", want="2"),)),
)


def traits_of(graph: str, opset: int = 18) -> Traits:
    """Of a model whose inputs are ones."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {graph}')
    inputs = []
    for item in model.graph.input:
        kind = item.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        inputs.append((item.name, Tensor.of(np.ones(shape, dtype))))
    return read_traits(
        TestCase(OnnxModel(model.SerializeToString()), tuple(inputs), Provenance("t", "t", "", "onnx", "1"))
    )


CUBIC = (
    "(float[{images},1,2,1] x) => (float[{images},1,1,1] y) <float[4] s = {{1, 1, 0.5, 1}}> "
    '{{ y = Resize<{more}mode = "cubic">(x, , s) }}'
)
SHORT_SCALE = "(float[2,3] x, float[3] s) => (float[2,3] y) { y = LayerNormalization<axis = 0>(x, s) }"
SHORT_BIAS = (
    "(float[1,1,2,1] x, float[1,1,1] s, float[1] b) => (float[1,1,2,1] y) "
    "{ y = LayerNormalization<axis = 1>(x, s, b) }"
)
SQUARE = "(float[3,3] x) => (float[3,3] y) { y = EyeLike<k = 1>(x) }"
BELOW = "(float[3,2] x) => (float[3,2] y) { y = EyeLike<k = -1>(x) }"
FOUND = (
    "(float[1,1,4] b, float[1,1,1] s{limit}) => (int64[N,3] y) <{constant}float[1] u = {{0.5}}> "
    "{{ y = NonMaxSuppression(b, s, n, u) }}"
)
AT_RUN_TIME, CONSTANT = (
    FOUND.format(limit=limit, constant=constant)
    for limit, constant in ((", int64[1] n", ""), ("", "int64[1] n = {3}, "))
)

PAIRS = {
    "an attribute": (
        WRONG,
        CUBIC.format(images=2, more=""),
        CUBIC.format(images=1, more="exclude_outside = 1, "),
    ),
    "an optional input of a crash": (CRASH, SHORT_SCALE, SHORT_BIAS),
    "a negative number": (WRONG, SQUARE, BELOW),
    "an operand at run time": (WRONG, CONSTANT, AT_RUN_TIME),
}  # fmt: skip


@pytest.mark.parametrize(("outcome", "less", "more"), PAIRS.values(), ids=PAIRS.keys())
def test_what_the_reduction_could_not_do_without_makes_another_bug(
    outcome: Outcome, less: str, more: str
) -> None:
    """Pairs of docs/findings.md, which had one signature each; a reduction that did not end has it still."""
    one, other = (traits_of(graph) for graph in (less, more))
    first, second = (compute_signature(outcome, "", reduced=each) for each in (one, other))
    assert not explains(first, second)
    assert explains(first, compute_signature(outcome, "", reduced=other.unproven()))


def test_a_bug_of_an_earlier_release_explains_what_it_did() -> None:
    first, second = (
        compute_signature(CRASH, "", reduced=traits_of(graph)) for graph in (SHORT_SCALE, SHORT_BIAS)
    )
    fields = {name: value for name, value in first.fields.items() if name != "proven"}
    assert compute_key(fields) == first.key
    assert explains(Signature(first.key, "", fields), second)


def test_what_is_illegal_alone_proves_nothing() -> None:
    conv = "(float[1,2,1] x, float[2,1,1] w) => (float[1,2,1] y) { y = Conv<group = 2>(x, w) }"
    found = traits_of(conv)
    assert "Conv.group" in found.needs
    assert "Conv.group" not in found.proven


def test_inputs_that_are_given_together_prove_nothing() -> None:
    attention = (
        "(float[1,1,1,1] q, float[1,1,1,1] p) => (float[1,1,1,1] y, float[1,1,2,1] k, float[1,1,2,1] v) "
        "{ y, k, v = Attention(q, q, q, , p, p) }"
    )
    found = traits_of(attention, 23)
    assert "Attention.past_key" in found.needs
    assert not found.proven_inputs


@pytest.mark.parametrize(("error", "same"), [("KeyError", True), ("IndexError", False)])
def test_a_key_that_a_converter_misses_is_one_bug_whatever_leads_there(error: str, same: bool) -> None:
    """TVM reads ONNX's Attention as that of com.microsoft, which has `num_heads`: three bugs for one."""
    seen = Evidence(
        error=error, message="'num_heads'", traceback=("tvm/a.py:from_onnx", "tvm/a.py:Attention.f")
    )
    outcome = Outcome("0" * 64, "tvm", "t", "CPU", Verdict.CRASH, Phase.CONVERT, "s", evidence=seen)
    one, other = (
        compute_signature(outcome, "", reduced=Traits("Attention", (), needs))
        for needs in (("Attention.past_key", "rank 1"), ("Attention.q_num_heads",))
    )
    assert explains(one, other) is explains(other, one) is same


def test_a_default_that_is_written_out_is_needed_as_any_other_value() -> None:
    """A converter that looks for an attribute, whatever its value, is one bug."""
    celu = "(float[1] x) => (float[1] y) {{ y = Celu<alpha = {alpha}>(x) }}"
    written, other = (
        compute_signature(CRASH, "", reduced=traits_of(celu.format(alpha=alpha))) for alpha in (1.0, 2.0)
    )
    assert explains(written, other)


def test_an_optional_input_of_a_wrong_result_proves_nothing() -> None:
    """Without a bias a Relu behind a Conv may be zero on either side."""
    conv = "(float[1,1,1] x, float[1,1,1] w{b}) => (float[1,1,1] y) {{ c = Conv(x, w{c})  y = Relu(c) }}"
    without, with_bias = (traits_of(conv.format(b=b, c=c)) for b, c in (("", ""), (", float[1] b", ", b")))
    for outcome, same in ((WRONG, True), (CRASH, False)):
        first, second = (compute_signature(outcome, "", reduced=each) for each in (without, with_bias))
        assert explains(first, second) is same


@pytest.mark.parametrize(
    ("value", "rank", "positive"),
    [
        (-1, 3, [2, 1]),
        (-1, None, [1]),
        (-5, 3, [5]),
        ((0, -1), 2, [(0, 1), (0, 1)]),
        (1, 3, []),
        (-0.5, 1, []),
    ],
)
def test_negative_numbers_lose_their_sign(value: object, rank: int | None, positive: list[object]) -> None:
    assert positive_values(value, rank) == positive  # type: ignore[arg-type]
