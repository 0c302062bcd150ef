"""What ONNX forbids and onnxruntime refuses: found by `python -m tests.sweeps.derived_models`."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from fuzzing.graph.onnx_reader import from_onnx
from fuzzing.graph.validity import find_violations


def violations_of(text: str, **inputs: object) -> frozenset[str]:
    """The rules that a model of opset 24 in ONNX's text format breaks with these inputs."""
    opsets = '["" : 24, "ai.onnx.preview.training" : 1]'
    model = onnx.parser.parse_model(f"<ir_version: 10, opset_import: {opsets}> g {text}")
    graph = from_onnx(model.SerializeToString())

    def value_of(edge: int) -> np.ndarray | None:
        if edge in graph.constants:
            return np.asarray(graph.constants[edge].array)
        name = graph.names.get(edge)
        return np.asarray(inputs[name]) if name in inputs else None

    return find_violations(graph, value_of)


def gru(activations: str) -> str:
    """A GRU from front to back of one feature."""
    return (
        "(float[1,1,1] x, float[1,3,1] w, float[1,3,1] r) => (float[1,1,1,1] y) "
        f"{{ y = GRU<activations = [{activations}], hidden_size = 1>(x, w, r) }}"
    )


def tf_idf(low: int, high: int, skips: int) -> str:
    """A TfIdfVectorizer of a pool of one word and one pair."""
    return (
        f"(int64[3] x) => (float[2] y) {{ y = TfIdfVectorizer<max_gram_length = {high}, "
        f'max_skip_count = {skips}, min_gram_length = {low}, mode = "TF", ngram_counts = [0, 1], '
        "ngram_indexes = [0, 1], pool_int64s = [1, 2, 3]>(x) }"
    )


def crop(axes: str, count: int) -> str:
    """A CenterCropPad of two axes to `count` lengths."""
    return f"(float[4,4] x, int64[{count}] s) => (float[m,n] y) {{ y = CenterCropPad{axes}(x, s) }}"


def resize(regions: str, mode: str = "tf_crop_and_resize", given: str = "r") -> str:
    """A Resize of the last axis to 2, of regions."""
    return (
        f"(float[1,4] x) => (float[1,2] y) <float{regions}, int64[1] s = {{2}}> "
        f'{{ y = Resize<axes = [1], coordinate_transformation_mode = "{mode}">(x, {given}, , s) }}'
    )


def conv(attributes: str) -> str:
    """A convolution of one axis."""
    return f"(float[1,1,4] x, float[1,1,2] w) => (float[1,1,n] y) {{ y = Conv<{attributes}>(x, w) }}"


def parts(split: str) -> str:
    """Six columns in parts."""
    return f"(float[3,6] x) => (seq(float[3,n]) y) <int64{split}> {{ y = SplitToSequence<axis = 1>(x, p) }}"


def dequantize(shape: str, scale: str, block: int) -> str:
    """A DequantizeLinear along the last axis."""
    return (
        f"(uint8[{shape}] x) => (float[{shape}] y) <float{scale}> "
        f"{{ y = DequantizeLinear<axis = -1, block_size = {block}>(x, s) }}"
    )


def attention(mask: str, valid: str) -> str:
    """Attention to an external cache of four keys."""
    return (
        f"(float[1,1,1,1] q, float[1,1,4,1] k, float[{mask}] m) => (float[1,1,1,1] y) "
        f"<int64[1] n = {{{valid}}}> {{ y = Attention(q, k, k, m, , , n) }}"
    )


def momentum(count: str, gradient: str) -> str:
    """A Momentum of two tensors."""
    return (
        f"(float r, int64{count} t, float[2] x, float[1,2] y, float[{gradient}] g, float[1,2] h, "
        "float[2] v, float[1,2] w) => (float[2] a, float[1,2] b, float[2] c, float[1,2] d) "
        '{ a, b, c, d = ai.onnx.preview.training.Momentum<alpha = 0.1, beta = 0.1, mode = "standard", '
        "norm_coefficient = 0.1>(r, t, x, y, g, h, v, w) }"
    )


def unpool(length: int) -> str:
    """A MaxUnpool of two windows of two to a length."""
    return (
        "(float[1,1,2] x, int64[1,1,2] i) => (float[1,1,n] y) "
        f"<int64[3] s = {{1, 1, {length}}}> {{ y = MaxUnpool<kernel_shape = [2], strides = [2]>(x, i, s) }}"
    )


def heads(queries: int, keys: int) -> str:
    """An Attention of four heads of queries and two of keys, which it names."""
    return (
        "(float[1,4,2,1] q, float[1,2,3,1] k) => (float[1,4,2,1] y) "
        f"{{ y = Attention<kv_num_heads = {keys}, q_num_heads = {queries}>(q, k, k) }}"
    )


def past(given: str) -> str:
    """An Attention after a past of one position."""
    return (
        "(float[1,1,2,1] q, float[1,1,1,1] p) => (float[1,1,2,1] y, float[1,1,m,1] k, float[1,1,n,1] v) "
        f"{{ y, k, v = Attention(q, q, q, , {given}) }}"
    )


def rotary(count: int) -> str:
    """A RotaryEmbedding of one head."""
    return (
        "(float[1,1,2,4] x, float[1,2,2] c) => (float[1,1,2,4] y) "
        f"{{ y = RotaryEmbedding<num_heads = {count}>(x, c, c) }}"
    )


def stft(step: str, window: str = "[2] w = {1, 1}") -> str:
    """An STFT of frames of two numbers."""
    return (
        f"(float[1,4,1] x, int64{step} s) => (float[a,b,c,d] y) <float{window}, int64 l = {{2}}> "
        "{ y = STFT(x, s, w, l) }"
    )


def columns(image: str, block: str = "2, 2", blocks: int = 4) -> str:
    """A Col2Im of one channel, of four elements a block."""
    rank = image.count(",") + 1
    return (
        f"(float[1,4,{blocks}] x) => (float[{','.join('abcd'[: rank + 2])}] y) "
        f"<int64[{rank}] s = {{{image}}}, int64[{rank}] k = {{{block}}}> {{ y = Col2Im(x, s, k) }}"
    )


def top(count: str) -> str:
    """A TopK of two elements."""
    return f"(float[2] x) => (float[n] y, int64[n] i) <int64{count}> {{ y, i = TopK(x, k) }}"


def align(regions: str, places: str) -> str:
    """A RoiAlign of one image."""
    return (
        f"(float[1,1,2,2] x) => (float[a,b,c,d] y) <float{regions}, int64{places}> "
        "{ y = RoiAlign<sampling_ratio = 1>(x, r, b) }"
    )


def integers(zeros: str) -> str:
    """A MatMulInteger of [2, 3] by [3, 4] with a zero point of each."""
    one, other = zeros.split()
    return (
        f"(uint8[2,3] x, uint8[3,4] w, uint8{one} z, uint8{other} v) => (int32[2,4] y) "
        "{ y = MatMulInteger(x, w, z, v) }"
    )


def pad(mode: str, amounts: str, value: str = " v = {0}", length: int = 3) -> str:
    """A Pad of a vector."""
    return (
        f"(float[{length}] x) => (float[n] y) <int64[2] p = {{{amounts}}}, float{value}> "
        f'{{ y = Pad<mode = "{mode}">(x, p, v) }}'
    )


def deconvolve(attributes: str, length: str = "n", kernel: int = 3) -> str:
    """A ConvTranspose of three elements by steps of 3."""
    return (
        f"(float[1,1,3] x, float[1,1,{kernel}] w) => (float[1,1,{length}] y) "
        f"{{ y = ConvTranspose<strides = [3], {attributes}>(x, w) }}"
    )


def repeat(count: str) -> str:
    """A Loop that changes nothing."""
    return (
        f"(float[1] x) => (float[1] y) <int64{count}> {{ y = Loop(n, , x) "
        "<body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w) "
        "{ d = Identity(c) w = Identity(v) }> }"
    )


FORBIDDEN = {
    "pads with computed pads": conv('auto_pad = "VALID", pads = [0, 0]'),
    "pads below zero": conv("pads = [-1, 1]"),
    "a stride of nothing": conv("strides = [0]"),
    "strides of another rank": conv("strides = [1, 1]"),
    "windows without an element": "(float[1,1,2] x, int64[1,1,2] i) => (float[1,1,n] y) "
    "{ y = MaxUnpool<kernel_shape = [0]>(x, i) }",
    "parts that do not fill the axis": parts("[2] p = {1, 2}"),
    "a part of nothing": parts(" p = {0}"),
    "blocks of a scale for all": "(float[16] x, float[1] s, int16 z) => (int16[16] y) "
    "{ y = QuantizeLinear<block_size = 1>(x, s, z) }",
    "one activation of two": gru('"Tanh"'),
    "activations of two directions": gru('"Sigmoid", "Tanh", "Sigmoid", "Tanh"'),
    "a negative number of skipped words": tf_idf(1, 2, -1),
    "a longest n-gram below the shortest": tf_idf(2, 1, 0),
    "n-grams longer than the pool's": tf_idf(1, 3, 0),
    "n-grams without a word": tf_idf(0, 2, 0),
    "two lengths for one axis": crop("<axes = [0]>", 2),
    "one length for two axes": crop("", 1),
    "an axis twice": crop("<axes = [0, -2]>", 2),
    "an axis that is none": crop("<axes = [2]>", 1),
    "regions that are a matrix": resize("[1,2] r = {0, 1}"),
    "a region of the wrong number of axes": resize("[4] r = {0, 0, 1, 1}"),
    "a cropped region that is left out": resize("[2] r = {0, 1}", given=""),
    "a block of one scale for all": dequantize("4", " s = {1}", 2),
    "a block that a list of one scale is not for": dequantize("2,4", "[1] s = {1}", 2),
    "a third form of boxes": (
        "(float[1,1,4] b, float[1,1,1] s) => (int64[n,3] y) "
        "{ y = NonMaxSuppression<center_point_box = 2>(b, s) }"
    ),
    "a third half of a matrix": "(float[2,2] x) => (float[2,2] y) { y = Trilu<upper = 2>(x) }",
    "an order of no axes": (
        "(float[2,3] x, int64[k] s) => (float[n,m] y) "
        "{ z = Reshape(x, s) y = Transpose<perm : ints = []>(z) }"
    ),
    "quantization of zeros, whose scale is 0": (
        "() => (uint8[2] y, float s, uint8 z) <float[2] x = {0, 0}> { y, s, z = DynamicQuantizeLinear(x) }"
    ),
    "a gradient of another shape": momentum("", "1,2"),
    "a list of one count": momentum("[1]", "2"),
    "an unpooled length that two windows do not fit": unpool(3),
    "past keys without past values": past("p"),
    "past values without past keys": past(", p"),
    "other heads than those of the queries": heads(2, 2),
    "other heads than those of the keys": heads(4, 1),
    "a negative number of heads": rotary(-1),
    "n-grams from before the pool": tf_idf(1, 2, 0).replace("[0, 1], ngram_i", "[-1, 1], ngram_i"),
    "pairs of an odd number of words": tf_idf(1, 2, 0).replace("[1, 2, 3]", "[1, 2, 3, 4]"),
    "a word twice": (
        tf_idf(1, 2, 0)
        .replace("[1, 2, 3]", "[1, 1, 2, 3]")
        .replace("[0, 1], ngram_i", "[0, 2], ngram_i")
        .replace("ngram_indexes = [0, 1]", "ngram_indexes = [0, 1, 1]")
    ),
    "fewer places than n-grams": tf_idf(1, 2, 0).replace("ngram_indexes = [0, 1]", "ngram_indexes = [0]"),
    "sums along no axis": "(float x) => (float y) <int64 a = {0}> { y = CumSum(x, a) }",
    "products along no axis": "(float x) => (float y) <int64 a = {0}> { y = CumProd(x, a) }",
    "a list of one step": stft("[1]"),
    "a window that is a matrix": stft("", "[1,2] w = {1, 1}"),
    "a window of another length than the frames": stft("", "[1] w = {1}"),
    "a mask shorter than the valid keys": attention("1,2", "3"),
    "a mask of two rows for one query": attention("2,4", "3"),
    "a mask of one column, padded or broadcast": attention("1,1", "1"),
    "more valid keys than there are": attention("1,4", "5"),
    "columns of an empty image": columns("0, 0"),
    "more blocks than the image has": columns("3, 3", blocks=5),
    "blocks that do not divide the columns": columns("4, 4", "3, 3"),
    "an image of one axis": columns("5", "2", blocks=4),
    "a global pool of no axes": "(float[1,1] x) => (float[1,1] y) { y = GlobalMaxPool(x) }",
    "no elements at the top": top("[1] k = {0}"),
    "more elements at the top than there are": top("[1] k = {3}"),
    "two numbers of elements at the top": top("[2] k = {1, 1}"),
    "a region of an image that is none": align("[1,4] r = {0, 0, 1, 1}", "[1] b = {1}"),
    "fewer images than regions": align("[2,4] r = {0, 0, 1, 1, 0, 0, 1, 1}", "[1] b = {0}"),
    "a zero point for each column of the left": integers("[3] [4]"),
    "a zero point for each row of the right": integers("[2] [3]"),
    "reflections beyond the data": pad("reflect", "3, 0"),
    "two lists of numbers to pad with": pad("constant", "1, 1", "[2] v = {0, 0}"),
    "a list of one bound": "(float[2] x) => (float[2] y) <float[1] m = {0}> { y = Clip(x, m) }",
    "a share of more than all": "(float[2] x) => (float[2] y) <float r = {1.5}> { y = Dropout(x, r) }",
    "a third form of Gelu": '(float[1] x) => (float[1] y) { y = Gelu<approximate = "erf">(x) }',
    "a norm of a third order": "(float[2] x) => (float[2] y) { y = LpNormalization<p = 3>(x) }",
    "two numbers of repeats": repeat("[2] n = {1, 1}"),
    "an output longer by two": deconvolve("output_shape = [11]", "11"),
    "an output longer by one, which SAME_UPPER puts before": deconvolve(
        'auto_pad = "SAME_UPPER", output_shape = [10]', "10"
    ),
    "kernels shorter than the steps that SAME fills": deconvolve('auto_pad = "SAME_LOWER"', "9", kernel=1),
    "an output padding that becomes pads below 0": deconvolve(
        "output_padding = [1], output_shape = [12]", "12"
    ),
}

ALLOWED = (
    columns("3, 3"),
    "(float[2] x) => (float[2] y) <int64 a = {-1}> { y = CumSum(x, a) }",
    top("[1] k = {2}"),
    align("[1,4] r = {0, 0, 1, 1}", "[1] b = {0}"),
    integers("[2] [4]"),
    integers("[1] [1,4]"),
    integers("[2,1] [4]"),
    pad("reflect", "2, 2"),
    pad("reflect", "-1, 1"),
    pad("constant", "5, 5"),
    pad("constant", "1, 1", "[1] v = {0}"),
    "(float[2] x) => (float[2] y) <float m = {0}> { y = Clip(x, , m) }",
    "(float[2] x) => (float[2] y) <float r = {0}> { y = Dropout(x, r) }",
    repeat("[1] n = {1}"),
    repeat(" n = {1}"),
    deconvolve("output_shape = [10]", "10"),
    deconvolve('auto_pad = "SAME_UPPER", output_shape = [9]', "9"),
    deconvolve('auto_pad = "SAME_LOWER"', "9"),
    deconvolve("output_padding = [2], output_shape = [11]", "11"),
    momentum("", "2"),
    stft(""),
    unpool(4),
    unpool(5),
    heads(4, 2),
    past("p, p"),
    rotary(1),
    gru('"Sigmoid", "Tanh"'),
    tf_idf(1, 2, 0),
    tf_idf(2, 2, 5),
    crop("<axes = [-1]>", 1),
    crop("", 2),
    resize("[2] r = {0, 1}"),
    resize("[0] r = {}", "half_pixel"),
    resize("[0] r = {}", "half_pixel", given=""),
    dequantize("4", "[1] s = {1}", 4),
    dequantize("4", " s = {1}", 0),
    dequantize("2,4", "[2,2] s = {1, 1, 1, 1}", 2),
    "(float[1,1,4] b, float[1,1,1] s) => (int64[n,3] y) "
    "{ y = NonMaxSuppression<center_point_box = 1>(b, s) }",
    "(float x) => (float y) { y = Transpose<perm : ints = []>(x) }",
    "() => (uint8[2] y, float s, uint8 z) <float[2] x = {0, 1}> { y, s, z = DynamicQuantizeLinear(x) }",
    attention("1,3", "3"),
    attention("1,4", "0"),
    attention("4", "4"),
    conv('auto_pad = "NOTSET", pads = [0, 1], strides = [2]'),
    conv('auto_pad = "VALID"'),
    parts("[3] p = {1, 2, 3}"),
    parts(" p = {4}"),
)


@pytest.mark.parametrize("text", FORBIDDEN.values(), ids=FORBIDDEN)
def test_forbidden_operands_break_a_rule(text: str) -> None:
    assert violations_of(text)


@pytest.mark.parametrize("text", ALLOWED)
def test_allowed_operands_break_none(text: str) -> None:
    assert violations_of(text) == frozenset()


def test_inputs_are_judged_by_what_they_hold() -> None:
    text = "(float[2] x) => (uint8[2] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }"
    assert violations_of(text) == violations_of(text, x=[0, 1]) == frozenset()
    assert violations_of(text, x=[0, 0])


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (
            "Col2Im",
            "(float[1,4,4] x) => (float[1,1,n,m] y) <int64[2] i = {4, 4}, int64[2] b = {2, 2}> "
            "{ y = Col2Im<strides = [0, 0]>(x, i, b) }",
        ),
        (
            "Col2Im",
            "(float[1,4,4] x) => (float[1,1,n,m] y) <int64[2] i = {4, 4}, int64[2] b = {2, 2}> "
            "{ y = Col2Im<strides = [2, 2, 2]>(x, i, b) }",
        ),
        (
            "Attention",
            "(float[1,2,4] x) => (float[1,2,n] y) "
            "{ y = Attention<q_num_heads = 0, kv_num_heads = 2>(x, x, x) }",
        ),
        (
            "MaxPool",
            "(float[1,1,4] x) => (float[1,1,n] y) { y = MaxPool<kernel_shape = [2], strides = [1, 1]>(x) }",
        ),
        (
            "ConvTranspose",
            "(float[1,1,4] x, float[1,1,2] w) => (float[1,1,n] y) "
            '{ y = ConvTranspose<auto_pad = "SAME_UPPER", strides = [1, 1]>(x, w) }',
        ),
        (
            "TopK",
            "(float[4] x) => (float[n] y, int64[n] i) <int64[0] k = {}> { y, i = TopK(x, k) }",
        ),
    ],
)
def test_numbers_for_which_a_rule_has_no_answer_break_it(operator: str, text: str) -> None:
    """A stride of 0 ended the whole source of mutants by a division."""
    assert violations_of(text) == {f"{operator}: operands"}
