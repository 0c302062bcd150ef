"""Rules about layers of Keras: both sides agree, agree with numpy where that is short, and find faults."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuzzing.backends.keras import Keras
from fuzzing.backends.shared import torch_programs
from fuzzing.backends.shared.pair_runner import PairRunner
from fuzzing.cases import EquivalentPair, KerasLayer, Tensor, TestCase, TorchProgram
from fuzzing.equivalence import layers, pairs, rule
from fuzzing.equivalence.rules.keras_same_padding import widths
from fuzzing.errors import UsageError
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Phase, Verdict
from fuzzing.rng import Rng, derive_seed

pytestmark = [pytest.mark.compiler_keras_eager, pytest.mark.filterwarnings("ignore")]

L = "keras.layers."
#: One layer for each rule.
LAYERS = {
    "keras-same-padding": f"{L}Conv2D", "keras-depthwise": f"{L}DepthwiseConv1D",
    "keras-separable": f"{L}SeparableConv1D", "keras-unrolled": f"{L}GRU", "keras-backwards": f"{L}LSTM",
    "keras-data-format": f"{L}MaxPool2D", "keras-batch-size": f"{L}Dense",
    "keras-save-load": f"{L}LayerNormalization", "keras-model": f"{L}UpSampling1D",
}  # fmt: skip


@pytest.fixture(scope="module")
def runner() -> PairRunner:
    layers.installed()
    backend = Keras()
    backend.load("CPU", {})
    return PairRunner(backend)


def make(name: str, api: str, seed: int = 0) -> TestCase:
    draw = rule.get(name).draw
    assert draw is not None
    made = pairs.make_pair(rule.get(name), draw(api, Rng(derive_seed(seed, name, api))))
    assert made is not None
    return made


def judge(runner: PairRunner, pair: TestCase) -> Verdict:
    values: Any = list(pair.values())
    outputs = runner.run(runner.compile(runner.convert(pair.program, values)), values)
    execution = Execution("returned", Phase.RUN, outputs=tuple(outputs))
    return decide_outcome(pair, execution, Keras, "", "CPU", "eagle").verdict


def test_every_rule_about_keras_is_tried() -> None:
    assert {one.name for one in rule.select("all", "keras")} == set(LAYERS)
    with pytest.raises(UsageError, match="not about torch: keras-model"):
        rule.select("keras-model")


@pytest.mark.parametrize("name", LAYERS)
def test_both_sides_agree(name: str, runner: PairRunner) -> None:
    assert LAYERS[name] in rule.get(name).apis()
    pair = make(name, LAYERS[name])
    assert pair.provenance.source == "eagle-keras"
    assert judge(runner, pair) is Verdict.PASS


@pytest.mark.parametrize("name", ["keras-same-padding", "keras-separable", "keras-backwards", "keras-model"])
def test_a_fault_in_a_layer_is_found(name: str, runner: PairRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer, or the model around it, adds the length and the start of what it is given."""
    made = [make(name, LAYERS[name], seed) for seed in range(6)]  # layers are tried before the fault is there
    keras = layers.installed()
    traced = keras.Input((2,))
    model = type(keras.Model(traced, keras.layers.Flatten()(traced)))
    owner = model if name == "keras-model" else getattr(keras.layers, LAYERS[name].removeprefix(L))
    right = owner.call

    @functools.wraps(right)  # Keras reads the signature
    def wrong(self: Any, given: Any, *more: Any, **named: Any) -> Any:
        return right(self, given, *more, **named) + given.shape[1] + given[:, :1].abs().sum()

    monkeypatch.setattr(owner, "call", wrong)
    assert any(judge(runner, one) is Verdict.WRONG_RESULT for one in made)


def test_a_pair_is_made_anew_from_the_layer_that_it_holds(runner: PairRunner) -> None:
    """Reduction changes the layer and makes both sides from it."""
    pair = make("keras-same-padding", LAYERS["keras-same-padding"])
    subject = pairs.subject_of(pair)
    assert pairs.pair_of(subject, "keras-same-padding") == pair
    assert isinstance(subject.program, KerasLayer)
    smaller = tuple((key, 1 if key == "filters" else value) for key, value in subject.program.kwargs)
    made = pairs.pair_of(
        replace(subject, program=replace(subject.program, kwargs=smaller)), "keras-same-padding"
    )
    assert made is not None
    assert judge(runner, made) is Verdict.PASS


def test_the_float64_check_runs_a_side_in_double_precision(runner: PairRunner) -> None:
    del runner
    pair = make("keras-separable", LAYERS["keras-separable"])
    program = pair.program
    assert isinstance(program, EquivalentPair)
    for side in program.sides:
        assert isinstance(side, TorchProgram)
        [(_, value)] = torch_programs.build(side, precision="float64").run(list(pair.values()))
        assert isinstance(value, Tensor)
        assert value.dtype == "float64"


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("kernel", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
def test_same_padding_keeps_every_window(length: int, kernel: int, stride: int, dilation: int) -> None:
    """⌈length / stride⌉ windows fit, counted in numpy, and no padding is there that none of them needs."""
    before, after = widths(length, kernel, stride, dilation)
    assert after - before in (0, 1)
    span = dilation * (kernel - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(max(length + before + after, span)), span)
    assert len(windows[::stride]) == -(-length // stride)
