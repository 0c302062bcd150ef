"""Refusals of OpenVINO."""

# ruff: noqa: E501 - what a compiler says is kept in one piece

from __future__ import annotations

from tests.fuzzing.backends.refusals.said import Said

_OV_CORE = "Exception from src/inference/src/cpp/core.cpp:105:\n"
_OV_REPORT = (
    "Check 'false' failed at src/frontends/common_translators/src/unconverted_ops_report.cpp:151:\n"
    "FrontEnd API failed with OpConversionFailure:\nModel wasn't fully converted."
)
_OV_LOG = f"{_OV_CORE}{_OV_REPORT} Failed operations detailed log:\n"

SAID = [
    Said(
        "openvino",
        "RuntimeError",
        f"{_OV_CORE}Exception from src/frontends/onnx/frontend/src/core/tensor.hpp:426:\n"
        "Invalid data type FLOAT8E4M3FNUZ expected: BOOL, BFLOAT16, FLOAT4E2M1, FLOAT8E4M3FN, FLOAT8E5M2",
        "type FLOAT8E4M3FNUZ",
    ),
    Said(
        "openvino",
        "RuntimeError",
        f"{_OV_CORE}Exception from src/frontends/onnx/frontend/src/core/tensor.hpp:214:\n"
        "Invalid data type FLOAT expected: INT64, raw data",
        None,
    ),
    Said(
        "openvino",
        "RuntimeError",
        "Exception from src/inference/src/core.cpp:104:\n[ GENERAL_ERROR ] "
        "data has zero dimension which is not allowed",
        "no tensors without elements",
    ),
    Said(
        "openvino",
        "RuntimeError",
        f"{_OV_LOG}-- Col2Im-18 with a message:\nCheck '(dilations.size() == spatial_rank)' failed at "
        "src/frontends/onnx/frontend/src/op/col2im.cpp:37:\nWhile validating ONNX node '<Node(Col2Im): v>':\n"
        "Col2Im 'dilations' attribute must have size [2]. Got: 3\n",
        "Col2Im 'dilations' attribute must have size [2]. Got: 3",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "Exception from src/inference/src/core.cpp:104:\nCheck 'error_message.empty()' failed at src/frontends/"
        "onnx/frontend/src/frontend.cpp:124:\nOpenVINO does not support the following ONNX operations: Det\n\n",
        "no Det",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_REPORT}\nSummary:\n-- No conversion rule found for operations: aten::i0\n",
        "no aten::i0",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "Exception from src/inference/src/cpp/core.cpp:117:\nException from src/inference/src/dev/plugin.cpp:54:\n"
        "Check '!shape.rank().is_dynamic()' failed at src/plugins/intel_cpu/src/node.cpp:108:\nUnexpected: CPU "
        "plug-in doesn't support Parameter operation with dynamic rank. Operation name: x\n\n\n",
        "the CPU plugin lacks Parameter operation with dynamic rank. Operation name: x",
    ),
    Said(
        "openvino",
        "RuntimeError",
        f"{_OV_CORE}Exception from src/frontends/onnx/frontend/src/utils/common.cpp:81:\nUnsupported data type "
        "INT2 expected: BOOL, BFLOAT16\n\n",
        "type INT2 expected: BOOL, BFLOAT16",
    ),
    Said(
        "openvino",
        "RuntimeError",
        f"{_OV_LOG}-- GridSample-22 with a message:\nCheck '(data_rank.is_dynamic() || data_rank.get_length() == "
        "4)' failed at src/frontends/onnx/frontend/src/op/grid_sample.cpp:23:\nWhile validating ONNX node "
        "'<Node(GridSample): Y>':\nGridSample is only supported for 4D input tensors. Got rank: 5\n\n",
        "GridSample is only supported for 4D input tensors. Got rank: 5",
    ),
    Said(
        "openvino",
        "RuntimeError",
        f"{_OV_LOG}-- Dropout-22 with a message:\nNon-constant training_mode input is not supported.\n\n",
        "Non-constant training_mode input is not supported.",
    ),
    Said(
        "openvino",
        "RuntimeError",
        f"{_OV_LOG}-- SplitToSequence-24 with a message:\nWhile validating ONNX node '<Node(SplitToSequence): "
        "seq>': Check 'split_const != nullptr' failed at src/frontends/onnx/frontend/src/op/split_to_sequence.cpp"
        ":65:\nSplitToSequence: 'split' input must be a constant\n\n",
        "SplitToSequence: 'split' input must be a constant",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "Exception from src/inference/src/cpp/core.cpp:117:\nException from src/inference/src/dev/plugin.cpp:54:\n"
        "Exception from src/plugins/intel_cpu/src/nodes/kernels/x64/jit_uni_eltwise_generic.cpp:602:\n"
        "unsupported src_prc: string\n\n\n",
        "unsupported src_prc: string",
    ),
    Said(
        "openvino",
        "RuntimeError",
        f"{_OV_LOG}-- Upsample-17 with a message:\nWhile validating ONNX node '<Node(Upsample): y>': "
        "vector::_M_range_check: __n (which is 1) >= this->size() (which is 1)\n",
        None,
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten.linalg_cross.default with a message:\nException happened during conversion of operation "
        "linalg_cross/aten.linalg_cross.default with schema NONE\nCheck 'num_inputs >= min_inputs' failed at "
        "src/frontends/pytorch/src/utils.cpp:55:\nGot less inputs 2 than expected 3\n",
        None,
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten.linalg_vector_norm.default with a message:\nException happened during conversion of "
        "operation linalg_vector_norm/aten.linalg_vector_norm.default with schema NONE\nCheck '(input_rank."
        "is_dynamic() || input_rank.get_length() == 1)' failed at src/frontends/pytorch/src/op/norm.cpp:58:\n"
        "FrontEnd API failed with OpConversionFailure:\n[PyTorch Frontend] ord=0 supported only for vector norm\n",
        "[PyTorch Frontend] ord=0 supported only for vector norm",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten.std.correction with a message:\nException happened during conversion of operation "
        "std/aten.std.correction with schema NONE\nCheck '(correction == 1)' failed at src/frontends/pytorch/src/"
        "op/var_mean.cpp:53:\nFrontEnd API failed with OpConversionFailure:\n[PyTorch Frontend] Unexpected value "
        "of correction.\n",
        "value of correction",
    ),
    Said(  # an LSTM with projections has one weight more
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten::lstm with a message:\nException happened during conversion of operation "
        "__module.layer/aten::lstm with schema aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params)\n"
        "Check '(static_cast<int64_t>(all_weights.size()) == num_layers * weights_per_layer * mult)' failed at "
        "src/frontends/pytorch/src/op/lstm.cpp:98:\nFrontEnd API failed with OpConversionFailure:\n"
        "[PyTorch Frontend] Unexpected length of list with weights for rnn operation.\n",
        "length of list with weights for rnn operation",
    ),
    Said(  # the translator of searchsorted takes no sorter
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten::searchsorted with a message:\nException happened during conversion of operation "
        "aten::searchsorted/aten::searchsorted with schema aten::searchsorted.Tensor(Tensor sorted_sequence)\n"
        "Check 'context.input_is_none(i)' failed at src/frontends/pytorch/src/utils.cpp:70:\n"
        "Got more inputs than expected: 6\n",
        "more inputs than its translator takes",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten::cross with a message:\nRank should be known for aten::cross without explicit dim\n",
        "Rank should be known for aten::cross without explicit dim",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten::fill_diagonal_ with a message:\naten::fill_diagonal_ required tensor with static rank >= 2 \n",
        "aten::fill_diagonal_ required tensor with static rank >= 2 ",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten::add with a message:\naten::add is used for concatenation of lists, not possible to convert\n",
        "aten::add is used for concatenation of lists, not possible to convert",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten::as_strided with a message:\naten::as_strided: Couldn't retrieve input stride information from torchscript.\n",
        "aten::as_strided: Couldn't retrieve input stride information from torchscript.",
    ),
    Said(  # its translator has one algorithm, for matrices of 3 by 3
        "openvino",
        "RuntimeError",
        "Exception from src/inference/src/cpp/infer_request.cpp:224:\nException from src/plugins/intel_cpu/src/"
        "node.cpp:794:\n[CPU] Reshape node with name 'aten::svd/requires_3x3' Check 'minusOneCount <= 1 && "
        "inputProduct == outputProduct' failed at src/plugins/intel_cpu/src/shape_inference/custom/reshape.cpp:77:"
        "\n[cpu]reshape: the shape of input data (4.4) conflicts with the reshape pattern (0.3)\n",
        "aten::svd of other shapes than 3x3",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "[CPU] Reshape node with name 'aten::svd/Reshape_3' Check 'minusOneCount <= 1 && inputProduct == "
        "outputProduct' failed at src/plugins/intel_cpu/src/shape_inference/custom/reshape.cpp:77:\n",
        None,
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- <built-in function getitem> with a message:\nException happened during conversion of "
        "operation getitem_2/<built-in function getitem> with schema NONE\nCheck '(getitem_idx < static_cast<"
        "int64_t>(list_elems.size()))' failed at src/frontends/pytorch/src/op/getitem.cpp:34:\nFrontEnd API failed "
        "with OpConversionFailure:\n[PyTorch Frontend] Index: 2 is out of bounds of input list of len: 1\n",
        None,
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten.min.default with a message:\nException happened during conversion of operation min_1/"
        "aten.min.default with schema NONE\nCheck 'data_et.is_real() || data_et.is_integral_number()' failed at "
        "src/core/src/op/util/arithmetic_reductions_keep_dims.cpp:27:\nElement type of data input must be numeric. "
        "Got: boolean\n",
        None,
    ),
    Said(
        "openvino",
        "RuntimeError",
        "Exception from src/inference/src/core.cpp:114:\n[ GENERAL_ERROR ] Interpolate layer only supports resize "
        "on spatial dimensions(depth, height and width)\n",
        "[ GENERAL_ERROR ] Interpolate layer only supports resize on spatial dimensions(depth, height and width)",
    ),
    Said(
        "openvino",
        "GeneralFailure",
        "Check 'm_axis == -1' failed at src/core/src/op/util/rnn_cell_base.cpp:66:\nDequantizeLinear doesn't "
        "support case when dimension of X at axis 1 differs",
        "DequantizeLinear doesn't support case when dimension of X at axis 1 differs",
    ),
    Said(
        "openvino",
        "GeneralFailure",
        "Check 'ok' failed at src/core/src/op/fft.cpp:9:\nFFT op input element type must be f32, f16, or bf16",
        "FFT op input element type must be f32, f16, or bf16",
    ),
    Said(
        "openvino",
        "GeneralFailure",
        "Check 'ok' failed at src/common/snippets/x.cpp:9:\nRound emitter doesn't support ngraph operation",
        None,
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten.bernoulli with a message:\naten::bernoulli expects a constant representing a generator seed",
        "aten::bernoulli expects a constant representing a generator seed",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten._fft_c2c with a message:\nOnly forward, backward and ortho are supported.",
        "Only forward, backward and ortho are supported.",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        f"{_OV_LOG}-- aten::grid_sampler with a message:\nCheck 'data_shape.rank().compatible(4)' failed at src/"
        "core/shape_inference/include/grid_sample_shape_inference.hpp:22:\nThe supported shape of the input data "
        "tensor is 4D.\n",
        "The supported shape of the input data tensor is 4D.",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "Check 'ok' failed at src/core/src/op/loop.cpp:9:\nExecutionCondition is false. Zero count of iteration "
        "not supported.",
        "ExecutionCondition is false. Zero count of iteration not supported.",
    ),
    Said("openvino", "RuntimeError", "DepthToSpace executor supports only 'nspc' or 'ncsp' layouts.", None),
    # Read in the libraries themselves. What is needed before it runs:
    Said(
        "openvino",
        "OpConversionFailure",
        "Data rank must be static for pad op",
        "Data rank must be static for pad op",
    ),
    Said(
        "openvino", "OpConversionFailure", "Input's rank has to be static.", "Input's rank has to be static."
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        "The axes tensor's shape needs to be known(static). Node: ReduceSum",
        "The axes tensor's shape needs to be known(static). Node: ReduceSum",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        "ONNX Softmax data rank needs to be known (static)",
        "ONNX Softmax data rank needs to be known (static)",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        "Channel dimension of input data must be static",
        "Channel dimension of input data must be static",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        "SplitToSequence: requires static input rank",
        "SplitToSequence: requires static input rank",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        "AffineGrid input 'size' must have a static rank.",
        "AffineGrid input 'size' must have a static rank.",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        "Input rank cannot be dynamic in case of ellipsis in input subscript",
        "Input rank cannot be dynamic in case of ellipsis in input subscript",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        "Input 3 cannot be interpreted as constant",
        "Input 3 cannot be interpreted as constant",
    ),
    Said(
        "openvino",
        "OpConversionFailure",
        "[CPU] Gather node with name 'g' expects Constant for port 2",
        "[CPU] Gather node with name 'g' expects Constant for port 2",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "Rank must be static in order to normalize negative axis=-1",
        "Rank must be static in order to normalize negative axis=-1",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "[CPU] NormalizeL2 node with name 'n' Supports only constant 'axes' input",
        "[CPU] NormalizeL2 node with name 'n' Supports only constant 'axes' input",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "[CPU] MVN node with name 'n' Supports only across channels or across spatial reduction",
        "[CPU] MVN node with name 'n' Supports only across channels or across spatial reduction",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "Cannot fallback on ngraph reference implementation. Ngraph::Node::evaluate() is not implemented for op: Bucketize",
        "Cannot fallback on ngraph reference implementation. Ngraph::Node::evaluate() is not implemented for op: Bucketize",
    ),
    Said(
        "openvino",
        "GeneralFailure",
        "First input accepts ranks from 1 to 5. Actual: 6",
        "First input accepts ranks from 1 to 5. Actual: 6",
    ),
    # Types:
    Said(
        "openvino",
        "GeneralFailure",
        "Could not get strides for types with bit widths less then 8 bit. Type: u4",
        "no packed types",
    ),
    Said("openvino", "RuntimeError", "[CPU] Memory object cannot be created for string data.", "no strings"),
    Said(
        "openvino", "OpConversionFailure", "The operation doesn't allow complex type.", "no complex numbers"
    ),
    Said("openvino", "RuntimeError", "unsupport src type: f64", "unsupport src type: f64"),
    Said(
        "openvino",
        "OpConversionFailure",
        "unable to convert tensor with type FLOAT6",
        "unable to convert tensor with type FLOAT6",
    ),
    # Modes:
    Said(
        "openvino",
        "GeneralFailure",
        "Unknown activation function: thresholdedrelu",
        "no activation function: thresholdedrelu",
    ),
    Said("openvino", "OpConversionFailure", "Unknown reduction mode: prod", "no reduction mode: prod"),
    Said(
        "openvino",
        "OpConversionFailure",
        "Col2Im 'pads' attribute must have size [4]. Got: 6",
        "Col2Im 'pads' attribute must have size [4]. Got: 6",
    ),
    Said(
        "openvino",
        "RuntimeError",
        "TODO: Support parameterized Order input for dynamic shapes.",
        "TODO: Support parameterized Order input for dynamic shapes.",
    ),
    # Of its own making, or said of itself:
    Said(
        "openvino",
        "RuntimeError",
        "Exception from src/core/src/node.cpp:414:\nDefault output not supported",
        None,
    ),
    Said("openvino", "GeneralFailure", "Internal OpenVINO error: unsupported element type: u1", None),
    Said(
        "openvino",
        "GeneralFailure",
        "[ INTERNAL ERROR ] Not supported source type for weights compression: i4",
        None,
    ),
    Said(  # QLinearMatMul with a scale for each column
        "openvino",
        "RuntimeError",
        "Scalar value can't be derived from a node with [2]",
        None,
    ),
    Said(
        "openvino", "RuntimeError", "[DS] executeDynamicImpl not implemented for node with type: Split", None
    ),
    Said("openvino", "GeneralFailure", "BRGEMM Scratch must have static shape", None),
    Said("openvino", "RuntimeError", "Static shape inference lacks constant data on port 1", None),
    Said("openvino", "OpConversionFailure", "Invalid attribute type UNDEFINED expected: INT, FLOAT", None),
    Said("openvino", "RuntimeError", "to_shape was called on a dynamic shape.", None),
    Said(
        "openvino",
        "OpConversionFailure",
        "The element type of the input tensor must be a floating point number.",
        None,
    ),
    Said("openvino", "OpConversionFailure", "[PyTorch Frontend] Input with index: 2 is none.", None),
]
