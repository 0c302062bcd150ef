"""Refusals of ONNX Runtime."""

# ruff: noqa: E501 - what a compiler says is kept in one piece

from __future__ import annotations

from tests.fuzzing.backends.refusals.said import Said

_ORT = "[ONNXRuntimeError] : "

SAID = [
    Said(
        "onnxruntime",
        "NotImplemented",
        f"{_ORT}9 : NOT_IMPLEMENTED : Could not find an implementation for Add(14) node with name ''",
        "no kernel for Add",
    ),
    Said(
        "onnxruntime",
        "NotImplemented",
        f"{_ORT}9 : NOT_IMPLEMENTED : Failed to find kernel for Cast(25) (node:'' ep:'CPUExecutionProvider').",
        "Failed to find kernel for Cast(25) (node:'' ep:'CPUExecutionProvider').",
    ),
    Said(
        "onnxruntime",
        "RuntimeException",
        f"{_ORT}6 : RUNTIME_EXCEPTION : Non-zero status code returned while running LSTM node. Name:'vn0_LSTM' "
        "Status Message: LSTM operator does not support double yet",
        "no kernel for LSTM of double",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Non-zero status code returned while running Loop node. Name:'vn8_Loop' Status "
        "Message: loop.cc:466 Initialize Loop subgraph input 0 has unknown shape: v3",
        "no bodies without shapes",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Non-zero status code returned while running Scan node. Name:'vn0_Scan' Status "
        "Message: Subgraph must have the shape set for all outputs but v2 did not.",
        "no bodies without shapes",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Fatal error: ai.onnx.preview.training:Adam(-1) is not a registered function/op",
        "no such operator",
    ),
    Said(
        "onnxruntime",
        "InvalidGraph",
        f'{_ORT}10 : INVALID_GRAPH : This is an invalid model. In Node, ("", Swish, "", -1) : ("x": '
        'tensor(float),) -> ("y": tensor(float),) , Error No Op registered for Swish with domain_version of 17',
        "no Swish of opset 17",
    ),
    Said(
        "onnxruntime",
        "InvalidGraph",
        f'{_ORT}10 : INVALID_GRAPH : This is an invalid model. In Node, ("", Bar, "com.foo", -1) : ("x": '
        "tensor(float),) -> (\"y\": tensor(float),) , Error No opset import for domain 'com.foo'",
        "no operators of the domain com.foo",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : /onnxruntime_src/onnxruntime/core/graph/model_load_utils.h:46 void "
        "onnxruntime::model_load_utils::ValidateOpsetForDomain(const std::unordered_map<std::__cxx11::"
        "basic_string<char>, int>&, const onnxruntime::logging::Logger&, bool, const std::string&, int) ONNX "
        "Runtime only *guarantees* support for models stamped with official released onnx opset versions. "
        "Opset 27 is under development and support for this is limited.",
        "opset newer than this release",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : /onnxruntime_src/onnxruntime/core/graph/model.cc:256 onnxruntime::Model::Model("
        "onnx::ModelProto&&, const onnxruntime::PathString&, const onnxruntime::IOnnxRuntimeOpSchemaRegistryList"
        "*, const onnxruntime::logging::Logger&, const onnxruntime::ModelOptions&) Unsupported model IR "
        "version: 14, max supported IR version: 13\n",
        "no models of IR version 14",
    ),
    Said(
        "onnxruntime",
        "InvalidGraph",
        f'{_ORT}10 : INVALID_GRAPH : This is an invalid model. In Node, ("", Attention, "", -1) : ("Q": '
        'tensor(float),"K": tensor(float),"V": tensor(float),) -> ("Y": tensor(float),) , Error Unrecognized '
        "attribute: left_window_size for operator Attention",
        "no left_window_size of Attention",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Exception during loading: MLDataType for: tensor(complex64) is not currently "
        "registered or supported",
        f"{_ORT}1 : FAIL : Exception during loading: MLDataType for: tensor(complex64) is not currently "
        "registered or supported",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Exception during initialization: /onnxruntime_src/onnxruntime/core/providers/cpu/text/"
        "string_normalizer.cc:235 onnxruntime::StringNormalizer::Locale::Locale(const std::string&)::<lambda()> "
        "Failed to construct locale with name:en_US.UTF-8:locale::facet::_S_create_c_locale name not valid",
        "this machine lacks the locale en_US.UTF-8:locale::facet::_S_create_c_locale",
    ),
    Said(
        "onnxruntime",
        "InvalidGraph",
        f"{_ORT}10 : INVALID_GRAPH : This is an invalid model. Type Error: Type 'tensor(bfloat16)' of input "
        "parameter (x) of operator (Acosh) in node () is invalid.",
        "Acosh does not take tensor(bfloat16)",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Type Error: Type parameter (T) of Optype (Add) bound to different types "
        "(tensor(bfloat16) and tensor(float) in node ().",
        None,
    ),
    Said(
        "onnxruntime",
        "RuntimeException",
        f"{_ORT}6 : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceMax node. Name:'' "
        "Status Message: ReduceMax is not defined for empty set with bool type",
        None,
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Non-zero status code returned while running Div node. Name:'' Status Message: "
        "element_wise_ops.cc:692 Compute Integer division by zero",
        None,  # the referee excuses it, where the program asks for that
    ),
    Said(
        "onnxruntime",
        "RuntimeError",
        "No corresponding Numpy type for Tensor Type. Int4x2",
        "no Int4x2 outputs",
    ),
    Said(
        "onnxruntime",
        "RuntimeException",
        f"{_ORT}6 : RUNTIME_EXCEPTION : Status Message: Only support GridSample Cubic mode in 4-D cases.",
        f"{_ORT}6 : RUNTIME_EXCEPTION : Status Message: Only support GridSample Cubic mode in 4-D cases.",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Unsupported ConvTranspose weight data type for BN fusion.",
        None,
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : Exception during initialization: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/upsamplebase.h:273 onnxruntime::UpsampleBase::UpsampleBase(const KernelInfoType&) [with KernelInfoType = onnxruntime::OpKernelInfo] exclude_outside can be set to 1 when (1) mode is CUBIC, or (2) mode is LINEAR when anti-aliasing is enabled. Current mode is set to linear and anti-aliasing is set to 0",
        f"{_ORT}1 : FAIL : Exception during initialization: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/upsamplebase.h:273 onnxruntime::UpsampleBase::UpsampleBase(const KernelInfoType&) [with KernelInfoType = onnxruntime::OpKernelInfo] exclude_outside can be set to 1 when (1) mode is CUBIC, or (2) mode is LINEAR when anti-aliasing is enabled. Current mode is set to linear and anti-aliasing is set to 0",
    ),
    Said(
        "onnxruntime",
        "Fail",
        f"{_ORT}1 : FAIL : MemberShip values is only implemented for integers, ",
        f"{_ORT}1 : FAIL : MemberShip values is only implemented for integers, ",
    ),
    # Read in the library itself.
    Said(
        "onnxruntime",
        "Fail",
        "unimplemented activation: ThresholdedRelu",
        "unimplemented activation: ThresholdedRelu",
    ),
    Said(
        "onnxruntime",
        "Fail",
        "Only works on matrices with two dimensions.",
        "Only works on matrices with two dimensions.",
    ),
    Said(
        "onnxruntime",
        "Fail",
        "No valid axes are specified. This is not handled now.",
        "No valid axes are specified. This is not handled now.",
    ),
    Said(
        "onnxruntime",
        "Fail",
        "Currently supporting only 2-D matrices",
        "Currently supporting only 2-D matrices",
    ),
    Said(
        "onnxruntime",
        "Fail",
        "DequantizeLinear only outputs FLOAT16, FLOAT or BFLOAT16.",
        "DequantizeLinear only outputs FLOAT16, FLOAT or BFLOAT16.",
    ),
    Said("onnxruntime", "Fail", "not support normalize yet.", "not support normalize yet."),
    Said(
        "onnxruntime",
        "Fail",
        "Resize: dimensions exceed supported int32 range for CPU linear mode.",
        "Resize: dimensions exceed supported int32 range for CPU linear mode.",
    ),
    Said("onnxruntime", "InvalidGraph", "[ShapeInferenceError] Incompatible dimensions", None),
    Said(
        "onnxruntime",
        "Fail",
        "Node (y_q) Op (QuantizeLinear) [TypeInferenceError] output_dtype INT8 does not match y_zero_point type UINT8.",
        None,
    ),
    Said("onnxruntime", "Fail", "Weight point must be constant", "Weight point must be constant"),
    Said("onnxruntime", "Fail", "norm_scale shape must be known", "norm_scale shape must be known"),
]
