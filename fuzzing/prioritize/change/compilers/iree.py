"""Areas of IREE: the importer, conversions and transformations of its dialects, the CPU's code, tests."""

from fuzzing.prioritize.change.areas import register_area

_ONNX = ["onnx"]

register_area(
    r"\Acompiler/bindings/python/iree/compiler/tools/import_onnx/",
    role="converter",
    frontends=_ONNX,
    shared=True,
)
register_area(r"\Acompiler/plugins/input/Torch/", role="converter", frontends=_ONNX)
register_area(r"\Acompiler/plugins/input/", role="none")  # StableHLO, TOSA: no cases for them
register_area(r"\Acompiler/plugins/target/(?!LLVMCPU)|\Aruntime/src/iree/hal/drivers/(?!local)", role="none")
register_area(r"\Acompiler/src/iree/compiler/.*/test/", role="test", frontends=_ONNX)
register_area(r"\Acompiler/src/iree/compiler/", role="pass", frontends=_ONNX)
register_area(r"\Aruntime/src/iree/(?:builtins|modules|vm)/", role="kernel", frontends=_ONNX)
