"""What becomes of a pair of which both sides fail."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from fuzzing.backends.base import Backend, Named, Unsupported
from fuzzing.backends.shared.pair_runner import PairRunner
from fuzzing.cases.equivalent_pair import BothSidesError, EquivalentModels, EquivalentPair, OneSidedError
from fuzzing.cases.programs import OnnxModel
from fuzzing.cases.torch_program import TorchProgram


class Failing(Backend):
    """Programs are words: "ZeroDivisionError in compile", "ok"."""

    name: ClassVar[str] = "failing"

    def convert(self, program: Any, inputs: Named) -> Any:
        return self._pass("convert", program.to_bytes().decode().partition("\n")[0].removeprefix("# "))

    def compile(self, model: Any) -> Any:
        return self._pass("compile", model)

    def run(self, executable: Any, inputs: Named) -> Named:
        self._pass("run", executable)
        return []

    @staticmethod
    def _pass(phase: str, word: str) -> str:
        error, _, where = word.partition(" in ")
        if where == phase:
            raise {"ValueError": ValueError, "TypeError": TypeError, "Unsupported": Unsupported}[error](phase)
        return word


def run(left: str, right: str, phases: str, *, models: bool) -> Any:
    """The last of these phases' results."""
    runner = PairRunner(Failing())
    if models:
        pair: Any = EquivalentModels(OnnxModel(left.encode()), OnnxModel(right.encode()), "tests")
    else:
        one, other = (TorchProgram(f"# {word}\ndef forward(): ...") for word in (left, right))
        pair = EquivalentPair(one, other, "tests")
    found = runner.convert(pair, [])
    if "compile" in phases:
        found = runner.compile(found)
    return runner.run(found, []) if "run" in phases else found


@pytest.mark.parametrize(
    ("left", "right", "phase", "error"),
    [
        ("ValueError in convert", "ValueError in convert", "convert", ValueError),
        ("ValueError in compile", "TypeError in convert", "convert compile", ValueError),
        ("ValueError in convert", "TypeError in run", "convert compile run", TypeError),
        ("ValueError in convert", "Unsupported in convert", "convert", Unsupported),
    ],
)
def test_models_that_both_fail_fail_as_one_does(left: str, right: str, phase: str, error: type) -> None:
    """In the phase in which the last of them does: nobody could say that the models are no models."""
    with pytest.raises(error, match=phase.split()[-1]):
        run(left, right, phase, models=True)


@pytest.mark.parametrize("models", [True, False])
def test_one_failing_side_is_said_at_the_end(models: bool) -> None:
    phases = "convert compile"
    assert run("ok", "ValueError in convert", phases, models=models)
    with pytest.raises(OneSidedError, match="only the right program fails, in convert: ValueError: convert"):
        run("ok", "ValueError in convert", "convert compile run", models=models)


def test_calls_that_both_fail_are_no_test_of_their_equality() -> None:
    with pytest.raises(BothSidesError, match="both programs fail; the left one in convert: ValueError"):
        run("ValueError in convert", "ValueError in run", "convert compile run", models=False)
