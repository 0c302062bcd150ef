"""Scripts of pairs are judged by running them: equal programs end well, a planted difference does not."""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bot.reports.campaign_view import ToolchainView
from bot.reports.reproducer_pair import render_pair
from bot.runners.reproducer_run import BUG_SHOWN, Ending, try_script
from fuzzing.backends.shared.keras_models import ENVIRONMENT
from fuzzing.cases import (
    EquivalentPair,
    KerasLayer,
    Provenance,
    Recipe,
    TensorArg,
    TestCase,
    TorchCall,
    TorchProgram,
)
from fuzzing.cases.torch_call import Init
from fuzzing.equivalence.pairs import pair_of
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict

TOOLCHAIN = ToolchainView("here", {"torch": "2.13.0"}, ("torch==2.13.0", "keras==3.12.0"))
SHAPE = (2, 5, 4)
INPUT = TensorArg("input", dtype="float32", shape=SHAPE)
KERAS = KerasLayer("keras.layers.Conv1D", (("filters", 2), ("kernel_size", 2)), (INPUT,), seed=1)
LINEAR = TorchCall("torch.nn.Linear", (INPUT,), init=Init((4, 3)))
PAIRS = [
    pytest.param("torch", "permutation", TorchCall("torch.neg", (INPUT,)), id="function"),
    pytest.param("torch", "functional-call", LINEAR, id="module"),
    pytest.param("keras", "keras-save-load", KERAS, id="layer", marks=pytest.mark.compiler_keras_eager),
]  # fmt: skip


def run(pair: TestCase, backend: str, folder: Path) -> None:
    mismatch = Mismatch("left 0", "value", "2 of 2 elements differ", rtol=1e-5, atol=1e-2)
    outcome = Outcome(
        pair.id, backend, "here", "CPU", Verdict.WRONG_RESULT, Phase.RUN, "2 of 2 elements differ",
        evidence=Evidence(mismatches=(mismatch,)),
    )  # fmt: skip
    script = folder / "pair.py"
    script.write_text(render_pair(pair, outcome, TOOLCHAIN))
    runpy.run_path(str(script))


def wrong(pair: TestCase) -> TestCase:
    """The right program gives one more."""
    program = pair.program
    assert isinstance(program, EquivalentPair)
    head, found, result = program.right.text.rpartition("return ")
    first, *others = result.split("\n")
    right = TorchProgram("\n".join([f"{head}{found}({first}) + 1", *others]))
    return replace(pair, program=replace(program, right=right))


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # keras with numpy 2
@pytest.mark.parametrize(("backend", "rule", "subject"), PAIRS)
def test_the_script_shows_a_difference_and_only_that(
    backend: str, rule: str, subject: TorchCall | KerasLayer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    given = (("input", Recipe("uniform", "float32", SHAPE, -1.0, 1.0, 0)),)
    pair = pair_of(TestCase(subject, given, Provenance("here", "t", "o", "torch", "1")), rule)
    assert pair is not None
    run(pair, backend, tmp_path)
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        run(wrong(pair), backend, tmp_path)
    if rule == "permutation":  # which imports torch once more
        script = (tmp_path / "pair.py").read_text()
        assert try_script(script, sys.executable, Ending("AssertionError", assertion=True)) == BUG_SHOWN
