"""The text of a call."""

from __future__ import annotations

from fuzzing.cases import TorchCall
from fuzzing.cases.arguments import TensorArg


def test_no_parameter_is_called_as_a_builtin() -> None:
    call = TorchCall(
        "torch.clamp", (TensorArg("input"),), (("max", TensorArg("max")), ("min", TensorArg("input_")))
    )
    source = call.source()
    assert "def forward(self, input__, max_, input_):" in source
    assert "torch.clamp(input__, max=max_, min=input_)" in source
    assert "inputs['input'].clone()" in source
    assert TorchCall("torch.abs", (TensorArg("x"),)).source().count("forward(self, x)") == 1
