"""One name for one operator, whatever its spelling in a library, a compiler or a file.

`aten::conv2d`, `conv2d.default`, `torch.nn.functional.conv2d`, `torch.nn.Conv2d` and `translate_conv2d` are
the same operator. A name has four degrees, each wider than the one before:

- exact   the same operation under another spelling, known synonyms included (`cat`, `concat`)
- bare    without the number of dimensions: `conv1d`, `conv2d` and `translate_convnd` are `conv`
- family  operators that often share a converter, kernel or pass: the groups of `_FAMILIES`
- words   the parts of the name, as in `reduce.cpp` or `pooling.cc`
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from fuzzing.torch_aliases import ALIASES

#: Roots of dotted names that are followed by the operator's own name, perhaps with an overload.
_OPERATOR_ROOTS = frozenset(
    {"aten", "prims", "prim", "quantized", "quantized_decomposed", "inductor_prims", "onednn", "mkldnn"}
)
#: Roots of dotted names whose last part is the operator's name.
_LIBRARY_ROOTS = frozenset(
    {"torch", "nn", "F", "keras", "tf", "onnx", "relax", "tir", "topi", "relay", "operator", "Ops"}
)
#: torch's modules whose name aten puts before the operator's: torch.linalg.norm is aten::linalg_norm.
_PREFIXING = frozenset({"linalg", "fft", "special"})
_BEFORE = re.compile(
    r"^(?:_+|(?:translate|convert|converter|lower|lowering|legalize|legalise|meta|decomp|decompose|infer_struct_info|"
    r"infer_type|infer_layout|infer|native|cudnn|mkldnn|miopen|unsafe|special|test|aten|op|visit|make|emit|register|"
    r"shape_infer|inplace|quantized|foreach)_)+"
)
_AFTER = re.compile(
    r"(?:_+|_(?:default|impl|module|converter|conversion|helper|backward|forward|with_indices|copy|out|op|ops|layer|"
    r"legit|no_training|functional|fx|ts|kernel|compute|shape_inference|loss|inference|test|tests|opset_?\d+|\d+))+$"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DIMENSION = re.compile(r"([123])D(?![a-z])")
_DIMENSIONS = re.compile(r"[123]d(?=$|[a-z])|(?<=[b-hj-np-tv-z])nd$")


def _squash(spelled: str) -> str:
    return spelled.replace(".", "").replace("_", "")


def _groups(text: str) -> dict[str, str]:
    """Each word of a line → the line's first."""
    return {word: line.split()[0] for line in text.strip().split("\n") for word in line.split()}


#: Spellings of the same operation in torch, ONNX, Keras, OpenVINO, numpy, besides torch's own aliases. The
#: first is the canonical one.
_SYNONYMS = {_squash(alias): _squash(name) for alias, name in ALIASES.items()} | _groups(
    """
    add plus
    pow power
    neg negate
    floordiv floordivide
    ceil ceiling
    round rint
    div idiv fdiv cdiv
    mod cmod floormod
    ge greaterorequal gte
    lt cmplt
    le lessorequal lte
    eq equal cmpeq
    ne cmpne
    and logicaland
    or logicalor
    xor logicalxor
    not logicalnot
    tile repeat
    conv convolution
    convtranspose convtransposed convolutiontranspose convolutionbackpropdata deconvolution deconv
    maxpool maxpooling
    avgpool averagepool averagepooling
    globalavgpool globalaveragepool globalaveragepooling
    globalmaxpool globalmaxpooling
    batchnorm batchnormalization
    layernorm layernormalization
    instancenorm instancenormalization
    groupnorm groupnormalization
    rmsnorm rmsnormalization
    lrn localresponsenorm
    silu swish
    hardsigmoid hsigmoid
    hardswish hswish
    prelu parametricrelu
    crossentropy softmaxcrossentropy
    nll negativeloglikelihood
    pad constantpad
    spacetodepth pixelunshuffle
    depthtospace pixelshuffle
    nms nonmaxsuppression
    """
)

#: Operations that often share a converter, kernel or pass. The first names the family.
_FAMILIES = _groups(
    """
    matmul mm bmm addmm baddbmm addmv mv linear dense gemm fullyconnected matmulinteger dot
    resize interpolate upsample upsampling upsamplenearest upsamplingnearest upsamplelinear upsamplebilinear \
        upsamplingbilinear upsampletrilinear upsamplebicubic
    conv convtranspose depthwiseconv separableconv groupconv groupconvolution
    pool maxpool avgpool lppool globalavgpool globalmaxpool globallppool adaptiveavgpool adaptivemaxpool
    reduce sum mean amax amin prod logsumexp reducesum reducemean reducemax reducemin reduceprod \
        reducelogsum reducelogsumexp reducel1 reducel2 reducesumsquare
    rnn lstm gru lstmcell grucell rnncell simplernn lstmsequence grusequence rnnsequence bidirectional
    norm linalgnorm linalgvectornorm linalgmatrixnorm frobeniusnorm nuclearnorm
    pad reflectionpad replicationpad zeropad circularpad
    scatter scatterelements scatternd scatteradd scatterreduce scatterndupdate scatterelementsupdate
    gather gatherelements gathernd indexselect take takealongdim
    quantize dequantize quantizelinear dequantizelinear dynamicquantizelinear fakequantize
    argmax argmin
    sort argsort topk msort
    softmax logsoftmax hardmax
    dft fft stft istft
    bitwiseand bitwiseor bitwisexor bitwisenot bitshift bitwiseleftshift bitwiserightshift shl shr
    attention scaleddotproductattention multiheadattention groupqueryattention
    """
)


@dataclass(frozen=True)
class OperatorName:
    """An operator's name in its four degrees; all are empty for the empty text."""

    exact: str
    bare: str
    family: str
    words: frozenset[str]


def library(operator: str) -> str:
    """The library of a case's operator: torch, keras, or else onnx."""
    root = operator.partition(".")[0]
    return root if root in ("torch", "keras") else "onnx"


@lru_cache(maxsize=65536)
def name(spelled: str) -> OperatorName:
    """The name of a spelling; empty for a text without letters."""
    plain = _DIMENSION.sub(r"\1d", _plain(spelled[:200]))
    words = tuple(word for word in _HUMP.sub("_", plain).lower().split("_") if word)
    snake = _stripped("_".join(words))
    squashed = snake.replace("_", "")
    dimensions = "".join(_DIMENSIONS.findall(squashed))
    bare = _DIMENSIONS.sub("", squashed)
    bare = _SYNONYMS.get(bare, bare)
    exact = bare + dimensions
    return OperatorName(
        exact, bare, _FAMILIES.get(bare, bare), frozenset(map(_word, snake.split("_"))) - {""}
    )


def _word(part: str) -> str:
    """The stem of a part of a name: `pool` for `pooling`, `pool2d` and `pools`."""
    bare = _DIMENSIONS.sub("", part)
    for ending in ("ing", "s"):
        if bare.endswith(ending) and len(bare) > len(ending) + 3:
            return bare.removesuffix(ending)
    return bare


def _plain(spelled: str) -> str:
    """The operator's own name, without namespaces and overload."""
    own = spelled.rpartition("::")[2]
    parts = [part for part in own.split(".") if part]
    if len(parts) < 2:
        return own.strip(".")
    if "ops" in parts[:2] and len(parts) > 3:
        return parts[3 if parts[0] == "torch" else 2]
    if parts[0] in _OPERATOR_ROOTS:
        return parts[1]
    if parts[0] in _LIBRARY_ROOTS:
        return "_".join(parts[-2:]) if parts[-2] in _PREFIXING else parts[-1]
    return parts[0]


def _stripped(snake: str) -> str:
    """Without the affixes of converters, tests and files; never empty."""
    short = _BEFORE.sub("", snake) or snake
    return _AFTER.sub("", short) or short
