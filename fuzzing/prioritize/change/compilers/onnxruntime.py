"""Areas of ONNX Runtime: CPU kernels, graph optimizers, tests. All its operators are ONNX's."""

from fuzzing.prioritize.change.areas import register_area

register_area(r"\Aonnxruntime/(?:core/providers/cpu|contrib_ops/cpu)/", role="kernel", frontends=["onnx"])
register_area(r"\Aonnxruntime/core/(?:mlas|util|graph)/", role="kernel", frontends=["onnx"])
register_area(r"\Aonnxruntime/core/optimizer/", role="pass", frontends=["onnx"])
register_area(r"\Aonnxruntime/core/(?:framework|session)/", role="kernel", frontends=["onnx"], shared=True)
register_area(r"\Aonnxruntime/core/providers/(?!cpu/)", role="none")  # devices without cases
register_area(r"\Aonnxruntime/test/", role="test", frontends=["onnx"])
