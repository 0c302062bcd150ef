"""Areas of OpenVINO: src/frontends, src/core, src/common/transformations, src/plugins, tests/layer_tests."""

from fuzzing.prioritize.change.areas import register_area

register_area(r"\Asrc/frontends/onnx/frontend/src/(?:op|utils)/", role="converter", frontends=["onnx"])
register_area(
    r"\Asrc/frontends/pytorch/src/(?:op|transforms|helper_ops)/", role="converter", frontends=["torch"]
)
register_area(r"\Asrc/frontends/pytorch/src/op_table", role="converter", frontends=["torch"])
register_area(r"\Asrc/frontends/onnx/frontend/src/ops_bridge", role="converter", frontends=["onnx"])
register_area(r"\Asrc/frontends/tensorflow(?:_common)?/src/op/", role="converter", frontends=["keras"])
register_area(r"\Asrc/frontends/onnx/tests/", role="test", frontends=["onnx"])
register_area(
    r"\Asrc/frontends/pytorch/tests/|\Atests/layer_tests/(?:py)?torch\w*/", role="test", frontends=["torch"]
)
register_area(r"\Atests/layer_tests/onnx_tests/", role="test", frontends=["onnx"])
register_area(r"\Atests/layer_tests/tensorflow\w*/", role="test", frontends=["keras"])
register_area(r"\Asrc/frontends/onnx/", role="converter", frontends=["onnx"], shared=True)
register_area(
    r"\Asrc/frontends/pytorch/|\Asrc/bindings/python/src/openvino/frontend/pytorch/",
    role="converter",
    frontends=["torch"],
    shared=True,
)
register_area(
    r"\Asrc/(?:common/(?:low_precision_)?transformations|plugins/\w+/src/.*transformations?)/(?!tests/)",
    role="pass",
)
register_area(r"\Asrc/(?:core|common/snippets|plugins/[^/]+)/(?:.*/)?tests/", role="test")
register_area(r"\Asrc/core/(?:include|src|shape_inference|reference)/", role="kernel")
register_area(r"\Asrc/plugins/[^/]+/src/", role="kernel")
