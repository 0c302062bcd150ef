"""Programs that are text are described by the text that a worker runs."""

from __future__ import annotations

from fuzzing.cases.arguments import TensorArg
from fuzzing.cases.keras_layer import KerasLayer
from fuzzing.cases.torch_call import TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.triage.program_text import MAX_PROGRAM, format_program


def test_the_source_is_shown() -> None:
    call = TorchCall("torch.add", (TensorArg("x"), 2))
    layer = KerasLayer("keras.layers.ReLU", (), (TensorArg("x", dtype="float32", shape=(2,)),))
    for program in (call, layer, TorchProgram("def forward(x):\n    return x\n")):
        assert format_program(program) == program.source()
    assert "return torch.add(x, 2)" in format_program(call)


def test_a_long_one_is_cut() -> None:
    reported = format_program(TorchProgram("def forward(x):\n    return x\n" + "# long\n" * MAX_PROGRAM))
    assert len(reported) == MAX_PROGRAM
    assert reported.endswith("… cut here")
