"""What ONNX Runtime 1.32.0 does with models that ONNX allows; each kind was read by hand."""

from __future__ import annotations

import re

#: What it says of what it lacks.
LACKS = re.compile(
    r"NOT_IMPLEMENTED|not a registered function|No Op registered|official released onnx opset"
    r"|No corresponding Numpy type|Python API takes no|Failed to construct locale"
    r"|Unrecognized attribute|of input parameter \(.*\) of operator \(\w+\) in node .* is invalid"
    r"|operator does not support double yet"
    r"|Batchwise recurrent operations \(layout == 1\) are not supported"
    r"|Non per-tensor quantization is not supported now"
    r"|data type is not supported with Scatter(?:Elements|ND)"
    r"|subgraph input \d+ has unknown shape|Subgraph must have the shape set for all outputs"
    # ONNX gives these attributes no meaning in other modes, and does not forbid them.
    r"|exclude_outside can be set to 1 when|when anti-aliasing is set, Resize only supports mode"
    # ONNX's function of CenterCropPad, where the shape is int32.
    r"|Type parameter \(T\) of Optype \(Max\) bound to different types \(tensor\(int64\) and tensor\(int32\) "
    r"|X_shape\.NumDimensions\(\) == 4 was false"  # LRN; ONNX has "N x C x D1 x D2, ... Dn"
)
#: Rows of docs/findings.md: operators of the model, and the message.
BUGS = re.compile(
    r"Attention: .*inconsistent (?:total|q)_sequence_length"
    r"|ConvTranspose: .*output_padding \(\d+\) may be too large for stride"
    r"|SplitToSequence: .*shape_\.Size\(\) == new_shape\.Size\(\) was false"
    r"|Resize: .*IsPrimitiveDataType<T>"
    r"|ReduceMax: .*not defined for empty set with bool type"
    r"|STFT: .*Tensor shape\.Size\(\) must be >= 0"
    r"|BatchNormalization: \Z",  # it died
    re.DOTALL,
)
