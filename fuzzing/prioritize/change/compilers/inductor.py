"""Areas of torch.compile: lowerings, the decompositions and meta functions before them, passes, tests."""

from fuzzing.prioritize.change.areas import register_area

_TORCH = ["torch"]

register_area(r"\Atorch/_inductor/fx_passes/", role="pass", frontends=_TORCH)
register_area(
    r"\Atorch/_inductor/(?:lowering|decomposition|mkldnn_lowerings|quantized_lowerings|jagged_lowerings|inductor_prims)\.py\Z"
    r"|\Atorch/_inductor/kernel/|\Atorch/_decomp/|\Atorch/_refs/|\Atorch/_prims/|\Atorch/_meta_registrations\.py\Z"
    r"|\Atorch/_subclasses/fake_impls\.py\Z",
    role="converter",
    frontends=_TORCH,
)
register_area(
    r"\Atorch/(?:_inductor|_dynamo|_functorch|fx)/", role="converter", frontends=_TORCH, shared=True
)
register_area(r"\Aaten/src/ATen/native/|\Atorch/csrc/inductor/|\Atorch/nn/", role="kernel", frontends=_TORCH)
register_area(
    r"\Atest/(?:inductor|dynamo)/|\Atest/test_(?:decomp|meta|ops)\.py\Z", role="test", frontends=_TORCH
)
