"""Refusals of tinygrad."""

# ruff: noqa: E501 - what a compiler says is kept in one piece

from __future__ import annotations

from tests.fuzzing.backends.refusals.said import Said

SAID = [
    Said("tinygrad", "NotImplementedError", "op='BitCast' is not supported", "no BitCast"),
    Said("tinygrad", "NotImplementedError", "antialias is not implemented", "antialias is not implemented"),
    Said("tinygrad", "ValueError", "8 is not a valid OnnxDataType", "no element type 8 of ONNX"),
    Said("tinygrad", "ValueError", "13 is not a valid AttributeType", "no attributes of type 13 of ONNX"),
    Said(
        "tinygrad", "ValueError", "'ai.onnx.preview' is not a valid Domain", "no operators of ai.onnx.preview"
    ),
    Said(
        "tinygrad",
        "ValueError",
        "invalid coordinate_transformation_mode='tf_half_pixel_for_nn'",
        "no coordinate_transformation_mode='tf_half_pixel_for_nn'",
    ),
    Said(
        "tinygrad",
        "TypeError",
        "get_onnx_ops.<locals>.SpaceToDepth() got an unexpected keyword argument 'mode'",
        "no attribute mode of SpaceToDepth",
    ),
    Said(
        "tinygrad",
        "ImportError",
        "Pillow must be installed for the ImageDecoder operator",
        "Pillow must be installed for the ImageDecoder operator",
    ),
    Said(
        "tinygrad",
        "RuntimeError",
        "Shapes for input x0 sequence must be homogeneous",
        "no sequences of several shapes",
    ),
    Said(
        "tinygrad",
        "AssertionError",
        "resizing batch_size dim or channel dim not supported",
        "resizing batch_size dim or channel dim not supported",
    ),
    Said(
        "tinygrad",
        "AssertionError",
        "does not support symbolic shape (Variable('n', 1, 9),)",
        "does not support symbolic shape (Variable('n', 1, 9),)",
    ),
    Said("tinygrad", "AssertionError", "only float32 is supported", "only float32 is supported"),
    Said(
        "tinygrad",
        "ClangError",
        "__bf16 is not supported on this target\n__builtin_bit_cast source size does not equal destination size (2 vs 8)",
        "this machine's clang does not compute with bfloat16",
    ),
    Said("tinygrad", "AssertionError", "no fmt dtype for dtypes.bfloat16", "no bfloat16 numbers in Python"),
    Said("tinygrad", "AssertionError", "only 1 data field is allowed from obj={'dims': [0]}", None),
    Said("tinygrad", "TypeError", "'<' not supported between instances of 'list' and 'int'", None),
    Said("tinygrad", "AssertionError", "TODO", "marked as TODO in its source"),
    Said("tinygrad", "AssertionError", "TODO list is empty", None),
    Said("tinygrad", "AssertionError", "no np dtype for dtypes.bfloat16", "no bfloat16 numbers in Python"),
    Said("tinygrad", "AssertionError", "bdtype=dtypes.fp8e4m3 has None fmt", "no fp8e4m3 numbers in Python"),
    Said(
        "tinygrad",
        "ValueError",
        "rand only supports concrete float dtypes, got dtypes.int",
        "rand only supports concrete float dtypes, got dtypes.int",
    ),
    Said(
        "tinygrad",
        "RuntimeError",
        "rounding_mode=half is not supported",
        "rounding_mode=half is not supported",
    ),
    Said(
        "tinygrad",
        "ValueError",
        "Padding value causes wrapping around more than once.",
        "no padding by several lengths",
    ),
    Said("tinygrad", "IndexError", "index dtype dtypes.float is not supported", None),
    Said("tinygrad", "AssertionError", "kernel size cannot be greater than actual input size", None),
]
