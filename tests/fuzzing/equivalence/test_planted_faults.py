"""Each of EAGLE's rules, and some beyond, find a fault in one API of torch, and nothing without it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from fuzzing.backends.shared.pair_runner import PairRunner
from fuzzing.backends.torch import Torch
from fuzzing.cases import TestCase
from fuzzing.equivalence import draws, pairs, rule
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Phase, Verdict
from fuzzing.rng import Rng
from tests.fuzzing.equivalence.pair_helpers import subject_of
from tests.fuzzing.equivalence.planted_faults import FAULTS, FURTHER_FAULTS, Fault

#: torch warns of settings that cost time.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def runner() -> PairRunner:
    backend = Torch()
    backend.load("CPU", {})
    return PairRunner(backend)


def subjects(fault: Fault) -> Iterator[TestCase]:
    if rule.get(fault.rule).draw is not None:
        seeds = range(1 if rule.get(fault.rule).compiles else 8)
        yield from (subject_of(fault.rule, fault.api, seed) for seed in seeds)
    else:
        init = {"in_features": 3, "out_features": 2} if fault.api == "torch.nn.Linear" else None
        data = {"input": draws.uniform(Rng(0), (2, 3))}
        yield draws.call_case(fault.api, data, init=init)


def judge(runner: PairRunner, pair: TestCase) -> Verdict:
    values: Any = list(pair.values())
    outputs = runner.run(runner.compile(runner.convert(pair.program, values)), values)
    execution = Execution("returned", Phase.RUN, outputs=tuple(outputs))
    return decide_outcome(pair, execution, Torch, "", "CPU", "eagle").verdict


def verdicts(runner: PairRunner, fault: Fault) -> set[Verdict]:
    made = [pairs.make_pair(rule.get(fault.rule), subject) for subject in subjects(fault)]
    found = {judge(runner, pair) for pair in made if pair is not None}
    assert found
    return found


def resolve(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    try:
        return importlib.import_module(dotted)
    except ImportError:
        return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("fault", [*FAULTS, *FURTHER_FAULTS], ids=lambda fault: fault.rule)
def test_the_rule_finds_the_fault(fault: Fault, runner: PairRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault.rule != "optimized-compile":  # which would compile; the eager backend is tested elsewhere
        assert verdicts(runner, fault) == {Verdict.PASS}
    where, name = fault.patched
    owner = resolve(where)
    monkeypatch.setattr(owner, name, fault.wrong(getattr(owner, name)))
    assert Verdict.WRONG_RESULT in verdicts(runner, fault)


def test_there_is_a_fault_for_each_of_the_sixteen_rules() -> None:
    assert sorted(rule.get(fault.rule).number for fault in FAULTS) == list(range(1, 17))
