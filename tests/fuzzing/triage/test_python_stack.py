from __future__ import annotations

import pytest

from fuzzing.triage.python_stack import calling_converter, exception_frames, is_dispatcher, python_frames


def test_python_frames_without_doors() -> None:
    trace = ("openvino/_ov_api.py:compile_model", "a/one.py:f", "a/two.py:g", "a/three.py:h", "b/four.py:i")
    assert python_frames(trace) == ("four.py:i", "three.py:h", "two.py:g")
    assert python_frames(trace[:1]) == ()


def test_what_native_code_raises_has_no_place_in_python() -> None:
    trace = ("compiler/engine.py:run", "onnxruntime/capi/onnxruntime_inference_collection.py:run")
    assert exception_frames(trace) == ()
    assert exception_frames(trace[:1]) == ("engine.py:run",)
    assert exception_frames((*trace, "compiler/engine.py:callback")) == (
        "engine.py:callback",
        "engine.py:run",
    )
    assert exception_frames(()) == ()


ONNX = "tvm/relax/frontend/onnx/onnx_frontend.py:"
NATIVE = "op_common.h:tvm::relax::InferBinary(const tvm::Call&)"


@pytest.mark.parametrize(
    ("trace", "converter"),
    [
        ((f"{ONNX}from_onnx", f"{ONNX}Elu._impl_v1", "tvm/relax/op/binary.py:add"), f"{ONNX}Elu._impl_v1"),
        (
            (f"{ONNX}from_onnx", f"{ONNX}Importer._convert_operator", NATIVE),
            f"{ONNX}Importer._convert_operator",
        ),
        ((f"{ONNX}from_onnx", f"{ONNX}Elu._impl_v1"), ""),
        ((NATIVE,), ""),
        (("openvino/_ov_api.py:compile_model", "core.cpp:read(const Model&)"), ""),
        ((), ""),
    ],
)
def test_the_converter_that_calls_what_raises(trace: tuple[str, ...], converter: str) -> None:
    assert calling_converter(trace) == converter.rpartition("/")[2]


def test_dispatchers_name_no_converter() -> None:
    assert is_dispatcher("onnx_frontend.py:ONNXGraphImporter._convert_operator")
    assert is_dispatcher("onnx.py:OnnxRunner.__call__")
    assert not is_dispatcher("onnx_frontend.py:Elu._impl_v1")
