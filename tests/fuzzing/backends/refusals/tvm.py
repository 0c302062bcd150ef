"""Refusals of TVM."""

# ruff: noqa: E501 - what a compiler says is kept in one piece

from __future__ import annotations

from tests.fuzzing.backends.refusals.said import Said

SAID = [
    Said("tvm", "InternalError", "Check failed: dtype.bits % 8 == 0 (4 vs. 0) : ", "no tensors of 4 bits"),
    Said(
        "tvm",
        "TypeError",
        "one_hot op requires the input indices to have integer dtype. However, the given indices dtype is T.float32",
        "one_hot op requires the input indices to have integer dtype",
    ),
    Said(
        "tvm",
        "AssertionError",
        "Only resize1d/resize2d/resize3d are supported.",
        "Only resize1d/resize2d/resize3d are supported.",
    ),
    Said(
        "tvm",
        "InternalError",
        "Check failed: (IsFloatType(x.ty())) is false: power only applies to float",
        "Check failed: (IsFloatType(x.ty())) is false: power only applies to float",
    ),
    Said(
        "tvm",
        "OpNotImplemented",
        "The following operators are not supported for frontend ONNX: DFT",
        "no DFT",
    ),
    Said("tvm", "AssertionError", "Unsupported function types ['min.dim']", "no 'min.dim'"),
    Said("tvm", "NotImplementedError", "Position must be a constant.", "Position must be a constant."),
    Said("tvm", "ValueError", "unknown dtype `object`", "no string tensors"),
    Said("tvm", "ValueError", "unknown dtype `complex64`", "no complex64 tensors"),
    Said(
        "tvm",
        "ValueError",
        "Node  cannot handle ShapeExpr inputs.",
        "a computed shape as this operator's input",
    ),
    Said("tvm", "ValueError", "TopK k must be a constant", "no k known only when it runs"),
    Said("tvm", "ValueError", "TopK sorted must be 1 for Relax frontend", "TopK sorted must be 1"),
    Said(
        "tvm",
        "TypeError",
        "Prelu requires the input tensor to have float dtype. However, the given input dtype is T.int64",
        "Prelu requires the input tensor to have float dtype",
    ),
    Said(
        "tvm",
        "ValueError",
        "Slice requires a statically known starts length.",
        "Slice requires a statically known starts length.",
    ),
    Said(
        "tvm", "AssertionError", "Only constant axes currently supported", "no axes known only when they run"
    ),
    Said(
        "tvm",
        "TypeError",
        "zero_point param datatype should be one of ['int8', 'uint8'], but got T.float8_e5m2",
        "zero_point param datatype should be one of ['int8', 'uint8'], but got T.float8_e5m2",
    ),
    Said("tvm", "ValueError", "Dynamic Split not yet supported", "Dynamic Split not yet supported"),
    Said(
        "tvm",
        "ValueError",
        "LRN only supports 3D or 4D input, got 2D.",
        "LRN only supports 3D or 4D input, got 2D.",
    ),
    Said("tvm", "KeyError", "'num_heads'", None),
    Said(
        "tvm",
        "TypeError",
        "Binary operators must have the same datatype for both operands.  However, R.power(x, y) uses datatype "
        "T.float32 on the LHS and T.int64 on the RHS.",
        None,
    ),
    Said("tvm", "ValueError", "no value in Constant", None),
    Said(
        "tvm",
        "InternalError",
        "Check failed: (from.MatchesCode(DLDataTypeCode::kDLFloat) && "
        "to.MatchesCode(DLDataTypeCode::kDLFloat)) is false: ",
        None,
    ),
    Said(
        "tvm",
        "AssertionError",
        "Missing outputs during conversion. Expected 2 but Got 1 in MaxPool.",
        None,
    ),
    Said(
        "tvm",
        "ValueError",
        "Squeeze axis 1 has a symbolic extent that cannot be proven to be 1 at import time",
        "Squeeze axis 1 has a symbolic extent that cannot be proven to be 1 at import time",
    ),
    Said(
        "tvm",
        "OpAttributeInvalid",
        'Value wrap in attribute "mode" is invalid for operator Pad.',
        'Value wrap in attribute "mode" is invalid for operator Pad.',
    ),
    Said(
        "tvm",
        "ValueError",
        "scaled_dot_product_attention expects 2D or 4D inputs, but got 3D input",
        "scaled_dot_product_attention expects 2D or 4D inputs, but got 3D input",
    ),
    Said(
        "tvm",
        "TypeError",
        'ir.Op(span=None, ty=ir.Type(span=None), name="relax.sqrt", description="", arguments=(ir.ArgumentInfo(name="x", '
        'type_info="Tensor", description="The input tensor."),), attrs_type_key="", num_inputs=1, support_level=10) '
        "requires the input tensor to have float dtype. However, the given input dtype is T.int64",
        "sqrt requires the input tensor to have float dtype",
    ),
    Said(
        "tvm",
        "KeyError",
        "'Unregonized approximate algorithm for gelu: x.'",
        "Unregonized approximate algorithm for gelu",
    ),
    Said(
        "tvm", "ValueError", "Slice expects starts and ends to have the same length, but got 1 and 2.", None
    ),
    # What it needs to know before it runs, and types:
    Said(
        "tvm",
        "ValueError",
        "affine_grid legalization requires static target_shape, got symbolic value: n",
        "affine_grid legalization requires static target_shape, got symbolic value: n",
    ),
    Said(
        "tvm",
        "TypeError",
        "Matmul requires both inputs to have known ndim. However, the given ones are R.Tensor",
        "Matmul requires both inputs to have known ndim. However, the given ones are R.Tensor",
    ),
    Said(
        "tvm",
        "ValueError",
        "The ndim of ShapeExpr is expected to a real number, but got -1.",
        "The ndim of ShapeExpr is expected to a real number, but got -1.",
    ),
    Said("tvm", "ValueError", "Expect value to be constant int", "Expect value to be constant int"),
    Said(
        "tvm",
        "InternalError",
        "Check failed: (v) is false: All elements of begin must be constant integers",
        "Check failed: (v) is false: All elements of begin must be constant integers",
    ),
    Said(
        "tvm",
        "InternalError",
        "Expression does not have an known symbolic shape, please consider use match_cast to normalize",
        "Expression does not have an known symbolic shape, please consider use match_cast to normalize",
    ),
    Said(
        "tvm",
        "AssertionError",
        "Do not support inputs with different data types now. float16 vs. float32",
        "Do not support inputs with different data types now. float16 vs. float32",
    ),
    Said("tvm", "ValueError", "not support this layout NCHW4c yet", "not support this layout NCHW4c yet"),
    Said(
        "tvm",
        "ValueError",
        "Only NCHW and NHWC layouts are currently supported.",
        "Only NCHW and NHWC layouts are currently supported.",
    ),
    Said(
        "tvm",
        "TypeError",
        "Op(relax.nn.layer_norm) expects that data must be float, but got T.bfloat16",
        "expects that data must be float, but got T.bfloat16",
    ),
    # Of its own making, in words like these; Python's and numpy's words:
    Said(
        "tvm",
        "InternalError",
        "Check failed: (dtype.is_int()) is false: IntImm supports only int or uint or bool type, but float32 was supplied.",
        None,
    ),
    Said("tvm", "InternalError", "FloatImm supports only float, but int64 was supplied.", None),
    Said("tvm", "InternalError", "Tensor constants are not supported in primitive functions.", None),
    Said(
        "tvm", "TypeError", "Operator overloading is not supported for expression type R.Tensor((2,))", None
    ),
    Said("tvm", "InternalError", "split_indices must be sorted", None),
    Said(
        "tvm",
        "ValueError",
        "Conv2dTranspose expects the output padding less than the strides, but the output padding is(1, 1)",
        None,
    ),
    Said(
        "tvm",
        "ValueError",
        "IndexPut requires the number of index tensors (1) to match the data tensor dimensions (2)",
        None,
    ),
    Said("tvm", "InternalError", "Check failed: ndim != 0 (0 vs. 0) : Cannot reduce a 0 dim Tensor", None),
]
