"""What a finished reduction tried to do without tells two bugs of one operator and symptom apart."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from bot.campaigns.classify.bug_matching import KnownBug, match_bug_keys
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.outcomes import Evidence, Outcome, Phase, Verdict
from fuzzing.triage.proven_needs import positive_values
from fuzzing.triage.signature import Signature, compute_key, compute_signature, explains
from fuzzing.triage.traits import Traits, read_traits
from tests.fuzzing.triage.outcomes_kit import wrong_result

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
WRONG = wrong_result()


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


LSTM = (
    "(float[1,1,1] x, float[{n},4,1] w, float[{n},4,1] r) => (float[1,{n},1,1] y) "
    '{{ y = LSTM<hidden_size = 1, input_forget = 1, direction = "{direction}">(x, w, r) }}'
)


@pytest.mark.parametrize(("direction", "entries"), [("reverse", 1), ("bidirectional", 2)])
def test_a_direction_is_another_bug_if_the_reduction_tried_one_alone(direction: str, entries: int) -> None:
    forward, other = (
        traits_of(LSTM.format(n=n, direction=name)) for n, name in ((1, "forward"), (entries, direction))
    )
    one = compute_signature(WRONG, "", reduced=forward)
    assert not explains(one, compute_signature(WRONG, "", reduced=other))
    earlier = compute_signature(WRONG, "", reduced=other.unproven())
    assert explains(one, earlier)
    assert match_bug_keys([one], [KnownBug(earlier.key, earlier.fields)]) == [earlier.key]


def test_a_direction_proves_nothing_where_another_node_gives_the_weights() -> None:
    found = traits_of(
        "(float[1,1,1] x, float[2,4,1] v, float[2,4,1] r) => (float[1,2,1,1] y) "
        '{ w = Abs(v)  y = LSTM<hidden_size = 1, direction = "bidirectional">(x, w, r) }'
    )
    assert "LSTM.direction=bidirectional" in found.needs
    assert "LSTM.direction=bidirectional" not in found.proven


@pytest.mark.parametrize(
    ("graph", "proven"),
    [
        ("(bfloat16[1] x) => (bfloat16[1] y) { y = Elu(x) }", {"bfloat16"}),
        ("(double[1] x) => (float16[1] y) { y = Cast<to = 10>(x) }", {"float16", "float64"}),
        ("(float[1] x) => (float8e5m2[1] y) { y = Cast<to = 19>(x) }", {"float8_e5m2"}),
        ("(int32[1] x) => (int32[1] y) { y = Abs(x) }", {"int", "int32"}),
        ("(float[2] x, int64[1] k) => (float[1] y) { y = Gather(x, k) }", {"int inputs"}),
        ("(int64[2] x, int64[1] k) => (int64[1] y) { y = Gather(x, k) }", {"int", "int inputs"}),
        ("(uint8[1] x) => (uint8[1] y) { y = BitwiseNot(x) }", {"uint", "uint8"}),
        ("(uint8[1] x) => (float[1] y) <float s = {1}> { y = DequantizeLinear(x, s) }", {"uint", "uint8"}),
    ],
)
def test_a_type_is_proven_where_a_plainer_one_is_legal(graph: str, proven: set[str]) -> None:
    assert set(traits_of(graph, 22).proven) == proven


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
