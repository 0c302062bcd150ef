"""Candidates outside ONNX are never taken, unless the failing case breaks the same rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuzzing.cases import Tensor
from fuzzing.reduce.graph_state import GraphState
from fuzzing.reduce.graph_validity import declares, find_violations, is_valid
from tests.fuzzing.reduce.graph_states import state_of

#: Weights have scales and zero points for each of two filters.
CONVOLUTION = (
    "<float s = {1}, uint8 z = {0}, float[2] t = {1, 1}, uint8[2] u = {12, 13}> "
    "{ y = QLinearConv(x, s, z, w, t, u, s, z) }"
)

OUTSIDE = {
    "a Split of one element in five": state_of(
        "(float[1] x) => (float[1] a, float[1] b, float[1] c, float[1] d, float[N] e) "
        "{ a, b, c, d, e = Split<num_outputs = 5>(x) }"
    ),
    "a Split into fewer outputs than it has": state_of(
        "(float[4] x) => (float[2] a) { a = Split<num_outputs = 2>(x) }"
    ),
    "a Split whose parts are too long": state_of(
        "(float[3] x) => (float[2] a, float[2] b) <int64[2] s = {2, 2}> { a, b = Split(x, s) }"
    ),
    "a pool whose window is longer than the data": state_of(
        "(float[1,1,2] x) => (float[1,1,0] y) { y = AveragePool<kernel_shape = [3]>(x) }"
    ),
    "a pool of unknown length whose window is longer than the data": state_of(
        "(float[1,1,2] x) => (float[1,1,n] y) { y = MaxPool<kernel_shape = [3]>(x) }"
    ),
    "a pool with windows in its padding alone": state_of(
        "(float[1,1,1] x) => (float[1,1,5] y) { y = AveragePool<kernel_shape = [1], pads = [2, 2]>(x) }"
    ),
    "a pool of which one axis has pads as long as its window": state_of(
        "(float[1,1,5,5] x) => (float[1,1,9,8] y) "
        "{ y = MaxPool<kernel_shape = [1, 2], pads = [2, 2, 2, 2]>(x) }"
    ),
    "a dilated window around the data": state_of(
        "(float[1,1,1] x) => (float[1,1,1] y) "
        "{ y = MaxPool<dilations = [2], kernel_shape = [2], pads = [1, 1]>(x) }"
    ),
    "a norm of padding": state_of(
        "(float[1,1,1] x) => (float[1,1,3] y) { y = LpPool<kernel_shape = [1], pads = [1, 1]>(x) }"
    ),
    "a transposed convolution to lengths that it does not reach": state_of(
        "(float[1,1,1] x) => (float[1,1,5] y) <float[1,1,1] w = {1}> "
        "{ y = ConvTranspose<output_shape = [5]>(x, w) }"
    ),
    "a transposed convolution that is padded by its stride": state_of(
        "(float[1,1,1] x) => (float[1,1,2] y) <float[1,1,1] w = {1}> "
        "{ y = ConvTranspose<output_padding = [1]>(x, w) }"
    ),
    "a transposed convolution of two channels by filters of one": state_of(
        "(float[1,2,1] x) => (float[1,1,1] y) <float[1,1,1] w = {1}> { y = ConvTranspose(x, w) }"
    ),
    "a transposed convolution with two biases for one filter": state_of(
        "(float[1,1,1] x) => (float[1,1,1] y) <float[1,1,1] w = {1}, float[2] b = {1, 2}> "
        "{ y = ConvTranspose(x, w, b) }"
    ),
    "sequences along the axis of the batch": state_of(
        "(float[2,2] x) => (float[2,2] y) <int64[2] n = {1, 2}> "
        "{ y = ReverseSequence<batch_axis = 0, time_axis = 0>(x, n) }"
    ),
    "two sequences for a batch of four": state_of(
        "(float[4,2] x) => (float[4,2] y) <int64[2] n = {1, 1}> "
        "{ y = ReverseSequence<batch_axis = 0, time_axis = 1>(x, n) }"
    ),
    "a sequence longer than the time": state_of(
        "(float[2,2] x) => (float[2,2] y) <int64[2] n = {1, 3}> "
        "{ y = ReverseSequence<batch_axis = 0, time_axis = 1>(x, n) }"
    ),
    "sequences along the axis that the batch has by default": state_of(
        "(float[2,2] x) => (float[2,2] y) <int64[2] n = {1, 2}> { y = ReverseSequence<time_axis = 1>(x, n) }"
    ),
    "a Scan of opset 8 over a vector without a batch": state_of(
        "(float[1] s, float[5] x) => (float[1] y, float[1,5] z) { y, z = Scan<num_scan_inputs = 1, "
        "body = b (float p, float q) => (float t, float u) { t = Add(p, q) u = Identity(t) }>(, s, x) }",
        8,
    ),
    "a convolution by more than the data": state_of(
        "(float[1,1,2] x, float[1,1,3] w) => (float[1,1,0] y) { y = Conv(x, w) }"
    ),
    "a Resize by 0": state_of(
        "(float[1,1,2,2] x) => (float[a,b,c,d] y) <float[4] s = {1, 1, 0, 1}> { y = Resize(x, , s) }"
    ),
    "a Resize by 0 that is an input": state_of(
        "(float[2] x, float[1] s) => (float[n] y) { y = Resize(x, , s) }", s=np.zeros(1, np.float32)
    ),
    "a Tile by a scalar": state_of("(float[2] x, int64 r) => (float[n] y) { y = Tile(x, r) }", r=np.int64(2)),
    "an InstanceNormalization by a scalar": state_of(
        "(float[1,2,3] x, float s, float[2] b) => (float[1,2,3] y) { y = InstanceNormalization(x, s, b) }"
    ),
    "boxes of one number": state_of(
        "(float[1,1,1] b, float[1,1,1] s) => (int64[n,3] y) { y = NonMaxSuppression(b, s) }"
    ),
    "a frame longer than the signal": state_of(
        "(float[1,4,1] x, float[8] w) => (float[a,b,c,d] y) <int64 s = {1}> { y = STFT(x, s, w) }"
    ),
    "axes that are a scalar": state_of(
        "(float[2,2] x, int64 a) => (float[n,m] y) { y = ReduceSum(x, a) }", a=np.int64(1)
    ),
    "one axis twice": state_of(
        "(float[2,2] x) => (float[n,m] y) <int64[2] a = {1, -1}> { y = ReduceSum(x, a) }"
    ),
    "axes of Unsqueeze that are a scalar": state_of(
        "(float[2] x, int64 a) => (float[n,m] y) { y = Unsqueeze(x, a) }", a=np.int64(1)
    ),
    "an axis beyond the rank of the result": state_of(
        "(float[2] x, int64[1] a) => (float[n,m] y) { y = Unsqueeze(x, a) }", a=np.array([2])
    ),
    "an axis beyond the rank": state_of("(float[4] x) => (float[4] y) { y = Softmax<axis = 1>(x) }"),
    "a scale longer than what is normalized": state_of(
        "(float[2,1] x, float[5] s) => (float[2,1] y) { y = LayerNormalization(x, s) }"
    ),
    "an index out of bounds": state_of(
        "(float[2] x, int64[1] i) => (float[1] y) { y = Gather(x, i) }", i=np.array([2])
    ),
    "updates of another shape": state_of(
        "(float[4,1] x, int64[2,1] i, float[2,2] u) => (float[4,1] y) { y = ScatterND(x, i, u) }",
        i=np.zeros((2, 1), np.int64),
    ),
    "two scales of one filter": state_of(
        f"(uint8[1,1,1] x, uint8[1,1,1] w) => (uint8[1,1,1] y) {CONVOLUTION}"
    ),
    "a quantized filter of two channels for one": state_of(
        f"(uint8[1,1,1] x, uint8[2,2,1] w) => (uint8[1,2,1] y) {CONVOLUTION}"
    ),
    "two zero points of one filter": state_of(
        "(uint8[1,1,1] x, uint8[1,1,1] w) => (int32[1,1,1] y) <uint8[2] z = {1, 2}> "
        "{ y = ConvInteger(x, w, , z) }"
    ),
    "one zero point for the scales of two rows": state_of(
        "(uint8[2,1] x, float[2,1] s, uint8[1] z, float t) => (uint8[2,1] y) "
        "<uint8[1,1] w = {1}> { y = QLinearMatMul(x, s, z, w, t, z, t, z) }"
    ),
    "a step of 0": state_of(
        "(float[4] x, int64[1] a) => (float[n] y) <int64[1] b = {1}, int64[1] s = {0}> "
        "{ y = Slice(x, b, b, a, s) }",
        a=np.zeros(1, np.int64),
    ),
    "a Slice without axes by a start for one of two": state_of(
        "(float[2,2] x, int64[1] b) => (float[m,n] y) { y = Slice(x, b, b) }", b=np.zeros(1, np.int64)
    ),
    "a Slice of before opset 10 without axes by a start for one of two": state_of(
        "(float[2,2] x) => (float[m,n] y) { y = Slice<starts = [0], ends = [1]>(x) }", 9
    ),
    "a GRU without its hidden size": state_of(
        "(float[1,3,2] x, float[1,15,2] w, float[1,15,5] r) => (float[a,b,c,d] y) { y = GRU(x, w, r) }"
    ),
    "a remainder of floats without fmod": state_of(
        "(float[2] x, float[2] d) => (float[2] y) { y = Mod(x, d) }"
    ),
    "a scale for each index of another axis": state_of(
        "(uint8[1,3] x, float[2] s) => (float[1,3] y) { y = DequantizeLinear(x, s) }"
    ),
    "more blocks than there are numbers": state_of(
        "(float[1] x, float[2] s) => (uint8[1] y) { y = QuantizeLinear<axis = 0, block_size = 2>(x, s) }", 21
    ),
    "fewer blocks than there are numbers": state_of(
        "(uint8[5] x, float[2] s) => (float[5] y) { y = DequantizeLinear<axis = 0, block_size = 2>(x, s) }",
        21,
    ),
    "a block for all rows": state_of(
        "(uint8[2,4] x, float[1,2] s) => (float[2,4] y) "
        "{ y = DequantizeLinear<axis = 1, block_size = 2>(x, s) }",
        21,
    ),
    "an axis of a vector that it does not have, though its scale is for all": state_of(
        "(uint8[2] x) => (float[2] y) <float s = {2}> { y = DequantizeLinear<axis = 2>(x, s) }", 19
    ),
    "a scale of 0 that divides": state_of(
        "(float[2] x) => (uint8[2] y) <float s = {0}> { y = QuantizeLinear(x, s) }", 21
    ),
    "a scale of 0 that is an input": state_of(
        "(float[2] x, float[2] s) => (uint8[2] y) { y = QuantizeLinear<axis = 0>(x, s) }",
        s=np.array([1, 0], np.float32),
    ),
    "a quantized product whose scale is 0": state_of(
        "(uint8[2,2] x, float s, uint8 z) => (uint8[2,2] y) <float t = {0}> "
        "{ y = QLinearMatMul(x, s, z, x, s, z, t, z) }"
    ),
    "filters of which each has a zero point, and all one scale": state_of(
        "(uint8[1,1,1] x, uint8[2,1,1] w) => (uint8[1,2,1] y) "
        + CONVOLUTION.replace("float[2] t = {1, 1}", "float[1] t = {1}")
    ),
    "integers divided by 0": state_of(
        "(int64[2] x, int64[2] d) => (int64[2] y) { y = Div(x, d) }", d=np.array([1, 0])
    ),
    "more queries' heads than keys divide": state_of(
        "(float[1,3,2,4] q, float[1,2,2,4] k, float[1,2,2,4] v) => (float[1,3,2,4] y) "
        "{ y = Attention(q, k, v) }",
        23,
    ),
    "a mask shorter than the keys before opset 24": state_of(
        "(float[1,1,2,4] q, float[1,1,3,4] k, float[2,2] m) => (float[1,1,2,4] y) "
        "{ y = Attention(q, k, k, m) }",
        23,
    ),
    "a target that is no class": state_of(
        "(float[2,3] x, int64[2] t) => (float l) { l = NegativeLogLikelihoodLoss(x, t) }",
        t=np.array([0, 3]),
    ),
    "targets of another rank": state_of(
        "(float[2,3,1] x, int64[2] t) => (float l) { l = SoftmaxCrossEntropyLoss(x, t) }",
        t=np.zeros(2, np.int64),
    ),
    "a rotation by cosines of no batch": state_of(
        "(float[1,1,2,4] x, float[2,2] c) => (float[1,1,2,4] y) { y = RotaryEmbedding(x, c, c) }", 23
    ),
    "a rotation by cosines of other length": state_of(
        "(float[1,2,4] x, float[1,2,1] c) => (float[1,2,4] y) "
        "{ y = RotaryEmbedding<num_heads = 1>(x, c, c) }",
        23,
    ),
    "an Upsample that makes smaller": state_of(
        "(float[2] x, float[1] s) => (float[n] y) { y = Upsample(x, s) }", 9, s=np.array([0.5], np.float32)
    ),
    "no classes": state_of(
        "(int64[1] x, int64 d, float[2] v) => (float[1,n] y) { y = OneHot(x, d, v) }", d=np.int64(0)
    ),
    "an unpooling of fewer indices than values": state_of(
        "(float[1,1,2] x, int64[1,1,1] i) => (float[1,1,n] y) { y = MaxUnpool<kernel_shape = [2]>(x, i) }",
        i=np.zeros((1, 1, 1), np.int64),
    ),
    "a Split of 5 in 4 in a branch": state_of(
        "(int64[5] x, bool c) => (int64[n] y) { y = If(c) <then_branch = t () => (int64[m] a) "
        "{ a, b, d, e = Split<num_outputs = 4>(x) }, else_branch = f () => (int64[5] g) "
        "{ g = Identity(x) }> }"
    ),
    "a switch that is neither on nor off": state_of(
        "(int64[2] x, int64[2] d) => (int64[2] y) { y = Mod<fmod = -1>(x, d) }", d=np.ones(2, np.int64)
    ),
    "saturation of a type that does not saturate": state_of(
        "(float[2] x) => (float16[2] y) { y = Cast<saturate = 0, to = 10>(x) }", 21
    ),
    "a Range of vectors": state_of(
        "(int64 a, int64[1] b) => (int64[n] y) { y = Range(a, b, a) }", a=np.int64(1), b=np.ones(1, np.int64)
    ),
    "a permutation of other axes": state_of(
        "(float[2,1] x) => (float[n,m] y) { y = Transpose<perm = [0]>(x) }"
    ),
    "a region without an area": state_of(
        "(float[1,1,2,2] x) => (float[1,1,1,1] y) <float[1,4] r = {1, 1, 1, 2}, int64[1] b = {0}> "
        "{ y = RoiAlign(x, r, b) }"
    ),
    "a normalization of vectors": state_of("(float[1,1] x) => (float[1,1] y) { y = LRN<size = 1>(x) }"),
    "a declared length that is not the computed one": state_of("(float[2] x) => (float[3] y) { y = Abs(x) }"),
}

INSIDE = (
    "(float[1,1,3] x) => (float[1,1,1] y) "
    "{ y = MaxPool<ceil_mode = 1, kernel_shape = [4], strides = [4]>(x) }",
    "(float[1,1,4] x) => (float[1,1,2] y) "
    "{ y = MaxPool<ceil_mode = 1, kernel_shape = [3], pads = [2, 0], strides = [3]>(x) }",
    "(float[1,1,3] x) => (float[1,1,5] y) { y = AveragePool<kernel_shape = [3], pads = [2, 2]>(x) }",
    "(float[1,1,2] x) => (float[1,1,1] y) "
    "{ y = MaxPool<dilations = [2], kernel_shape = [2], pads = [1, 0]>(x) }",
    "(float[1,1,2] x) => (float[1,1,3] y) <float[1,1,1] w = {1}> "
    "{ y = ConvTranspose<output_shape = [3], strides = [2]>(x, w) }",
    "(float[1,1,1] x) => (float[1,1,3] y) <float[1,1,2] w = {1, 1}> "
    "{ y = ConvTranspose<dilations = [2], output_padding = [1], pads = [0, 1]>(x, w) }",
    "(float[1,2,1] x) => (float[1,2,1] y) <float[2,1,1] w = {1, 2}, float[2] b = {1, 2}> "
    "{ y = ConvTranspose<group = 2>(x, w, b) }",
    "(float[2,2] x) => (float[2,2] y) <int64[2] n = {1, 2}> "
    "{ y = ReverseSequence<batch_axis = 0, time_axis = 1>(x, n) }",
    "(float[1,1,2] x) => (float[1,1,4] y) <float[1,1,1] w = {1}> "
    "{ y = ConvTranspose<output_shape = [4], strides = [2]>(x, w) }",
    "(uint8[2,3] x, float[2,2] s) => (float[2,3] y) { y = DequantizeLinear<block_size = 2>(x, s) }",
    f"(uint8[1,1,1] x, uint8[2,1,1] w) => (uint8[1,2,1] y) {CONVOLUTION}",
    "(uint8[1,1,1] x, uint8[2,1,1] w) => (int32[1,2,1] y) <uint8[2] z = {1, 2}> "
    "{ y = ConvInteger(x, w, , z) }",
    "(float[5] x) => (float[3] a, float[2] b) { a, b = Split<num_outputs = 2>(x) }",
    "(float[3] x) => (float[2] a, float[1] b) <int64[2] s = {2, 1}> { a, b = Split(x, s) }",
    "(float[1,1,2,2] x) => (float[1,1,4,2] y) <float[4] s = {1, 1, 2, 1}> { y = Resize(x, , s) }",
    "(float[2,2] x) => (float[4,2] y) <int64[2] r = {2, 1}> { y = Tile(x, r) }",
    "(float[2,2] x, int64[2] b) => (float[m,n] y) { y = Slice(x, b, b) }",
    "(float[2,2] x, int64[1] b, int64[1] a) => (float[m,n] y) { y = Slice(x, b, b, a) }",
    "(float[1,2,3] x, float[2] s, float[2] b) => (float[1,2,3] y) { y = InstanceNormalization(x, s, b) }",
    "(float[1,1,4] b, float[1,1,1] s) => (int64[n,3] y) { y = NonMaxSuppression(b, s) }",
    "(float[1,4] x, int64[1] i) => (float[1,1] y) { y = Gather<axis = 1>(x, i) }",
    "(float[2,3] x) => (float[2,1] y) <int64[1] a = {-1}> { y = ReduceSum(x, a) }",
    "(float[2,3] x, float[3] s) => (float[2,3] y) { y = LayerNormalization(x, s) }",
    "(uint8[1,2] x, float[2] s) => (float[1,2] y) { y = DequantizeLinear(x, s) }",
    "(uint8[2] x) => (float[2] y) <float s = {0}> { y = DequantizeLinear(x, s) }",
    "(float[2] x) => (float[2] y) <float[2] d = {1, 0}> { y = Div(x, d) }",
    "(float[2] x) => (float8e4m3fn[2] y) { y = Cast<saturate = 0, to = 17>(x) }",
    "(int64 a) => (int64[n] y) { y = Range(a, a, a) }",
    "(uint8[2] x, float s, uint8[1] z) => (float[2] y) { y = DequantizeLinear(x, s, z) }",
    "(uint8[2,1] x, float[2] s, uint8[2] z, float[1] t, uint8 u) => (uint8[2,1] y) "
    "<uint8[1,1] w = {1}> { y = QLinearMatMul(x, s, z, w, t, u, t, u) }",
    "(float[2,1] x) => (float[1,2] y) { y = Transpose<perm = [1, 0]>(x) }",
    "(float[1,1,2,2] x) => (float[1,1,1,1] y) <float[1,4] r = {1, 1, 2, 2}, int64[1] b = {0}> "
    "{ y = RoiAlign(x, r, b) }",
    "(int64[4] x, bool c) => (int64[n] y) { y = If(c) <then_branch = t () => (int64[2] a) "
    "{ a, b = Split<num_outputs = 2>(x) }, else_branch = f () => (int64[4] g) { g = Identity(x) }> }",
    "(float[2,3] x, float[3] y) => (float[2,3] z) { a = Add(x, y)  z = Relu(a) }",
    "(float[2,3,1] x, int64[2,1] t) => (float l) { l = SoftmaxCrossEntropyLoss(x, t) }",
    "(float[1,1,2,4] x, float[1,2,2] c) => (float[1,1,2,4] y) { y = RotaryEmbedding(x, c, c) }",
    "(float[1,1,2,4] x, float[9,1] c, int64[1,2] p) => (float[1,1,2,4] y) "
    "{ y = RotaryEmbedding<rotary_embedding_dim = 2>(x, c, c, p) }",
    "(int64[1] x, int64 d, float[2] v) => (float[1,n] y) { y = OneHot(x, d, v) }",
    "(float[1,1,2] x, int64[1,1,2] i) => (float[1,1,n] y) { y = MaxUnpool<kernel_shape = [2]>(x, i) }",
)


@pytest.mark.parametrize("state", OUTSIDE.values(), ids=OUTSIDE)
def test_what_the_standard_forbids_is_invalid(state: GraphState) -> None:
    assert not is_valid(state)
    assert is_valid(replace(state, tolerated=find_violations(state)))


@pytest.mark.parametrize(("opset", "length"), [(23, 1), (23, 3), (24, 2)])
def test_masks_of_attention_broadcast_and_since_opset_24_are_padded(opset: int, length: int) -> None:
    text = (
        f"(float[1,1,2,4] q, float[1,1,3,4] k, float[2,{length}] m) => (float[1,1,2,4] y) "
        "{ y = Attention(q, k, k, m) }"
    )
    assert find_violations(state_of(text, opset)) == frozenset()


@pytest.mark.parametrize("text", INSIDE)
def test_legal_models_are_valid(text: str) -> None:
    opset = 23 if "Rotary" in text else 21
    assert find_violations(state_of(text, opset)) == frozenset()


@pytest.mark.parametrize(
    ("shape", "agrees"), [((2, 1), True), ((2, 3), True), ((1, 2), False), ((2,), False)]
)
def test_declared_shapes_are_compared_with_computed_ones(shape: tuple[int, ...], agrees: bool) -> None:
    state = state_of("(float[2,N] x) => (float[2,N] y) { y = Abs(x) }")
    [edge] = state.graph.outputs
    assert declares(state, [(f"v{edge}", Tensor.of(np.zeros(shape)))]) is agrees
