"""Refusals of IREE."""

# ruff: noqa: E501 - what a compiler says is kept in one piece

from __future__ import annotations

from tests.fuzzing.backends.refusals.said import Said

SAID = [
    Said(
        "iree",
        "IreeError",
        "failed to legalize operation 'torch.operator' that was explicitly marked illegal: %1 = "
        '"torch.operator"(%arg0) <{name = "onnx.Dropout"}> : (!torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32>',
        "no lowering of onnx.Dropout in this form",
    ),
    Said(
        "iree",
        "IreeError",
        "failed to legalize operation 'torch.aten.cumsum' that was explicitly marked illegal: %8 = "
        '"torch.aten.cumsum"(%7, %5, %0) : (!torch.vtensor<[5],f64>, !torch.int, !torch.none) -> '
        "!torch.vtensor<[5],f64>",
        "no lowering of torch.aten.cumsum in this form",
    ),
    Said(
        "iree",
        "IreeError",
        "failed to legalize operation 'torch.constant.bool': %0 = \"torch.constant.bool\"() <{value = false}> : () "
        "-> !torch.bool",
        "no lowering of the torch operators, torch.constant.bool first",
    ),
    Said(
        "iree",
        "IreeError",
        "'tensor.cast' op operand type 'tensor<?x1xi1>' and result type 'tensor<1xi1>' are cast incompatible\n"
        "failed to legalize operation 'torch.constant.bool': %0 = \"torch.constant.bool\"() : () -> !torch.bool",
        None,
    ),
    Said(
        "iree",
        "IreeError",
        "unhandled torch type: '!torch.list<vtensor<[4],si32>>'",
        "no values of type !torch.list<vtensor<[4],si32>>",
    ),
    Said(
        "iree",
        "RuntimeError",
        "Error invoking function: <vm>:0: FAILED_PRECONDITION; unimplemented: score_threshold should be <= min(scores); \n",
        "not where score_threshold should be <= min(scores)",
    ),
    Said(
        "iree",
        "OnnxImportError",
        "ONNX importer does not support generic node attribute type TYPE_PROTO with ID 13. This likely means "
        'that this is a special node which requires specific handling in the importer: name: "type"\ntp {\n',
        "its importer does not support generic node attribute type TYPE_PROTO with ID 13",
    ),
    Said("iree", "OnnxImportError", "Unsupported builtin tensor type", "Unsupported builtin tensor type"),
    Said("iree", "OnnxImportError", "Unknown ONNX tensor element type: 23", "no element type 23 of ONNX"),
    Said(
        "iree",
        "IreeError",
        "failed to legalize operation 'arith.extf' that was explicitly marked illegal: %70 = "
        '"arith.extf"(%69) : (vector<4xf8E4M3FNUZ>) -> vector<4xf16>',
        None,
    ),
    Said(
        "iree",
        "IreeError",
        "'tensor.collapse_shape' op number of elements must be preserved: 2700 != 1",
        None,
    ),
    Said(
        "iree",
        "ValueError",
        "Error invoking function: c/runtime/src/iree/modules/hal/utils/buffer_diagnostics.c:214: "
        "INVALID_ARGUMENT; tensor shape rank mismatch; expected 0 (scalar) but have 1",
        None,
    ),
    Said(
        "iree",
        "OnnxImportError",
        "Unhandled ONNX attribute type code 5: name",
        "Unhandled ONNX attribute type code 5",
    ),
    Said(
        "iree",
        "OnnxImportError",
        "An immediate value for 'shape' was required but it is dynamically produced.",
        "no shape known only when it runs",
    ),
    Said(
        "iree",
        "IreeError",
        "unimplemented: coordinate transformation mode: tf_crop_and_resize",
        "unimplemented: coordinate transformation mode: tf_crop_and_resize",
    ),
    Said(
        "iree",
        "IreeError",
        "unsupported: aten.matmul with different input element types",
        "unsupported: aten.matmul with different input element types",
    ),
    Said("iree", "IreeError", "unimplemented: Distribution with dynamic workgroup size.", None),
    Said(
        "iree", "IreeError", "operand #0 does not dominate this use\nunimplemented: dim is not constant", None
    ),
]
