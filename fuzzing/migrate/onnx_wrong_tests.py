"""ONNX's node tests whose expected outputs contradict the text of the standard.

Found by comparing all node tests of onnx 1.23.2 with the corrected evaluator
(`fuzzing.backends.onnx_reference`) and with onnxruntime, which excludes these three from its own runs:
onnxruntime/test/testdata/onnx_backend_test_series_filters.jsonc. They are migrated without these outputs, so
that the corrected evaluator computes the reference.
"""

from __future__ import annotations

from collections.abc import Mapping

_ALIGN_CORNERS = (
    'align_corners maps by "(length_original - 1) / (length_resized - 1)", and length_resized is whole; the '
    "test divides by the scale times the length, a fraction. onnxruntime, openvino and torch follow the text"
)
#: By the test's name: what the text says, what the test expects, and who follows the text.
WRONG_TESTS: Mapping[str, str] = {
    "test_maxunpool_export_with_output_shape": (
        'indices are those "considering the tensor as flattened", and its shape is output_shape; the test '
        "counts in a smaller tensor (https://github.com/onnx/onnx/issues/2398). onnxruntime, tinygrad and "
        "torch follow the text"
    ),
    "test_resize_downsample_scales_cubic_align_corners": _ALIGN_CORNERS,
    "test_resize_downsample_scales_linear_align_corners": _ALIGN_CORNERS,
}
