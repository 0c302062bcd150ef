"""The expected gain of a block: pairs that no model has come first, then new vectors."""

from __future__ import annotations

import pytest

from fuzzing.coverage.operator_level import OperatorLevelCoverage, OperatorUse
from fuzzing.generate.graph_search.blocks import Block, BlockCorpus, BlockOperator
from fuzzing.generate.graph_search.expected_gain import ExpectedGain
from fuzzing.rng import Rng

NAMES = ("Add", "Relu", "Tanh")
RELU = Block("Relu", ("Relu",))


def corpus() -> BlockCorpus:
    operators = {name: BlockOperator(name, (name,)) for name in NAMES}
    operators["Add"] = BlockOperator("Add", ("Add",), frozenset({2}))
    return BlockCorpus(operators, {name: Block(name, (name,)) for name in NAMES})


def best(*uses: OperatorUse, blocks: tuple[Block, ...] = (RELU,)) -> set[str]:
    """What is chosen beside some blocks in a model of three, over ten draws."""
    coverage = OperatorLevelCoverage(corpus().degree_bounds(), max_spc=10)
    coverage.add(uses)
    gain = ExpectedGain(corpus(), coverage, blocks, 3)
    return {gain.best(Rng(seed)).name for seed in range(10)}


def use(operator: str, *successors: str, vector: int = 0) -> OperatorUse:
    return OperatorUse(operator, 1, successors, vector)


def test_operators_that_no_model_has_come_first() -> None:
    assert best(use("Add"), use("Relu")) == {"Tanh"}


def test_more_inputs_make_more_pairs() -> None:
    assert best(*map(use, NAMES)) == {"Add"}


def test_pairs_that_models_have_add_nothing() -> None:
    known = use("Relu", "Add", "Relu"), use("Add", "Relu"), use("Tanh")
    assert best(*known) == {"Tanh"}


def test_without_new_pairs_new_vectors_decide() -> None:
    every = [use(name, *NAMES) for name in NAMES]
    assert best(*every, *[use("Add"), use("Relu")] * 3) == {"Tanh"}


@pytest.mark.parametrize("count", [1, 2])
def test_small_models_have_a_gain_too(count: int) -> None:
    coverage = OperatorLevelCoverage(corpus().degree_bounds())
    assert ExpectedGain(corpus(), coverage, [], count).best(Rng(0)).name in NAMES


def test_an_operator_stands_for_the_subgraphs_that_contain_it() -> None:
    both = corpus()
    made = BlockCorpus(both.operators, {**both.blocks, "add_relu": Block("add_relu", ("Add", "Relu"))})
    coverage = OperatorLevelCoverage(made.degree_bounds())
    coverage.add(map(use, NAMES))
    gain = ExpectedGain(made, coverage, [RELU], 3)
    assert {gain.best(Rng(seed)).name for seed in range(20)} == {"Add", "add_relu"}


def test_operators_inside_of_subgraphs_alone_are_not_asked_for() -> None:
    operators = {name: BlockOperator(name, (name,)) for name in ("Relu", "Erf")}
    made = BlockCorpus(operators, {"Relu": RELU, "gelu": Block("gelu", ("Erf", "Relu"), ((0, 1),))})
    gain = ExpectedGain(made, OperatorLevelCoverage(made.degree_bounds()), [], 3)
    assert {gain.best(Rng(seed)).name for seed in range(20)} == {"Relu", "gelu"}
