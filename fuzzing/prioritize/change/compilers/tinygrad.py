"""Areas of tinygrad: its ONNX importer, the tensor's methods, rewrites of its graphs, tests."""

from fuzzing.prioritize.change.areas import register_area

_ONNX = ["onnx"]

register_area(
    r"\A(?:tinygrad/(?:nn|frontend)|extra)/onnx(?:_parser)?\.py\Z", role="converter", frontends=_ONNX
)
register_area(r"\Atinygrad/(?:tensor|nn/__init__)\.py\Z|\Atinygrad/mixin/", role="kernel", frontends=_ONNX)
register_area(r"\Atinygrad/(?:codegen|uop|schedule|engine|renderer)/", role="pass", frontends=_ONNX)
register_area(r"\Atinygrad/(?:llm|viz|runtime/autogen|runtime/graph)/", role="none")
register_area(r"\Atest/external/external_test_onnx", role="test", frontends=_ONNX)
register_area(r"\Atest/(?:amd|mockgpu|web|speed)/|\Aexamples/", role="none")
