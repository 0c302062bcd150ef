"""Areas of TVM: the Relax frontends and operators, their legalization, TOPI, passes, tests."""

from fuzzing.prioritize.change.areas import register_area

register_area(r"\Apython/tvm/relax/frontend/onnx/", role="converter", frontends=["onnx"])
register_area(r"\Apython/tvm/relax/frontend/torch/", role="converter", frontends=["torch"])
register_area(
    r"\Apython/tvm/relax/frontend/(?!common)\w+/", role="none"
)  # TFLite, StableHLO: no cases for them
register_area(
    r"\Asrc/relax/op/|\Apython/tvm/relax/op/|\Apython/tvm/relax/transform/legalize_ops/", role="kernel"
)
register_area(r"\Apython/tvm/topi/|\A(?:src|include/tvm)/topi/", role="kernel")
register_area(
    r"\Asrc/relax/transform/|\Apython/tvm/relax/transform/|\Asrc/(?:tir|tirx|s_tir)/transform", role="pass"
)
register_area(r"\Atests/python/relax/test_frontend_.*onnx", role="test", frontends=["onnx"])
register_area(r"\Atests/python/relax/test_frontend_(?:from_|dynamo)", role="test", frontends=["torch"])
