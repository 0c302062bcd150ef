"""Models of the search: valid for ONNX, reproducible, and what coverage says of them is what they hold."""

from __future__ import annotations

from collections import Counter

import onnx
import pytest

from fuzzing.coverage.operator_level import OperatorUse
from fuzzing.errors import UsageError
from fuzzing.generate import generators
from fuzzing.generate.graph_search.blocks import FUSION, PAPER, Block, load_corpus
from fuzzing.generate.graph_search.choosers import MAX_CHILDREN, MAX_DEPTH, TreeChooser, TreeNode, potential
from fuzzing.generate.graph_search.search import Search, SearchSettings, SearchStep
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.graph.onnx_writer import to_onnx
from fuzzing.graph.operator_spec import GraphLimits
from fuzzing.rng import Rng, derive_seed
from tests.support.graph_validation import validate

ALL = (PAPER, FUSION)


def search(blocks: int = 6, chooser: str = "tree", *, mutations: bool = True) -> Search:
    settings = SearchSettings((blocks, blocks), chooser, mutations=mutations)
    return Search(settings, 21, GraphLimits())


def steps(made: Search, count: int) -> list[SearchStep]:
    found = []
    for number in range(count):
        step = made.advance(derive_seed(3, number))
        made.reward(step, step.gain / step.shown)
        found.append(step)
    return found


def test_the_corpus_is_that_of_the_paper() -> None:
    corpus = load_corpus(PAPER)
    assert len(corpus.operators) == 50
    assert len(corpus.blocks) == 53
    assert corpus.in_degrees(corpus.blocks["ssd_concat"]) == {2}


def test_subgraphs_have_forward_edges_and_one_result() -> None:
    for block in load_corpus(*ALL).blocks.values():
        assert all(0 <= one < other < len(block.operators) for one, other in block.edges), block.name
        sources = {one for one, _ in block.edges}
        assert [place for place in range(len(block.operators)) if place not in sources] == [
            len(block.operators) - 1
        ], block.name


@pytest.mark.parametrize("chooser", ["tree", "random"])
def test_models_are_valid_and_finite_by_their_bounds(chooser: str) -> None:
    made = search(chooser=chooser)
    for step in steps(made, 40):
        graph = step.model.generated.graph
        validate(graph)
        onnx.checker.check_model(to_onnx(graph), full_check=True)
        assert set(step.model.generated.ranges) == set(graph.inputs)
        assert step.gain > 0


def test_every_block_makes_a_valid_model_alone() -> None:
    corpus = load_corpus(*ALL)
    made = search()
    for name, block in corpus.blocks.items():
        model = made._assemble([block] * 2, Rng(derive_seed(1, name)))
        onnx.checker.check_model(to_onnx(model.generated.graph), full_check=True)


def test_a_search_is_reproducible() -> None:
    first, second = ([step.model.generated.graph for step in steps(search(blocks=4), 12)] for _ in range(2))
    assert first == second


def test_uses_count_edges_from_both_ends() -> None:
    for step in steps(search(mutations=False), 20):
        uses = step.model.uses
        consumed = Counter(name for use in uses for name in use.successors)
        for name, count in consumed.items():
            assert count <= sum(use.in_degree for use in uses if use.operator == name)


def test_the_tree_keeps_to_its_limits() -> None:
    made = search(blocks=3)
    steps(made, 60)
    assert isinstance(made.chooser, TreeChooser)
    waiting, nodes = [made.chooser.root], 0
    while waiting:
        node = waiting.pop()
        nodes += 1
        assert node.depth <= MAX_DEPTH
        assert len(node.children) <= MAX_CHILDREN
        assert node.visits == bool(node.parent) + sum(child.visits for child in node.children)
        taken = [name for one in node.path()[:-1] if one.block for name in one.block.operators]
        assert node.block is None or set(node.block.operators) - set(taken)
        waiting += node.children
    assert nodes - 1 >= 60


def test_the_tree_expands_an_operator_of_subgraphs_only_until_it_occurs() -> None:
    made = search()
    operators, blocks = made.corpus.operators, made.corpus.blocks
    inside = next(name for name in operators if name not in blocks)

    def use(name: str, successors: tuple[str, ...] = ()) -> list[OperatorUse]:
        return [OperatorUse(name, degree, successors, 0) for degree in operators[name].in_degrees]

    for name in operators.keys() - {inside}:
        made.coverage.add(use(name))
    assert inside in made.chooser.choose(1, Rng(0)).blocks[0].operators
    made.coverage.add(use(inside))
    for name in blocks.keys() & operators.keys() - {"Tanh"}:
        made.coverage.add(use(name, ("Tanh",)))
    assert made.coverage.share(inside) == made.coverage.share("Tanh")
    assert {made.chooser.choose(1, Rng(seed)).blocks[0].name for seed in range(3)} == {"Tanh"}


def test_potential_prefers_the_unvisited_then_the_rewarded() -> None:
    root = TreeNode(visits=4)
    unvisited, poor, rich = (
        TreeNode(Block(name, (name,)), root, 1, visits, value)
        for name, visits, value in (("A", 0, 0.0), ("B", 2, 0.2), ("C", 2, 1.6))
    )
    assert potential(unvisited) > potential(rich) > potential(poor)
    assert potential(poor) == pytest.approx(0.1 + (2**-0.5) * (1.3862943611 / 2) ** 0.5)


def test_the_generator_uses_the_operators_that_are_asked_for() -> None:
    made = generators.get("graph-search")(GeneratorSettings(nodes=(3, 5), operators=("Relu", "Add", "Conv")))
    for number in range(10):
        graph = made.generate(number).graph
        assert {node.op for node in graph.nodes} & {"Relu", "Add", "Conv"}
        repairs = {"Reshape", "Pad", "Slice", "Clip", "Cast"}
        assert {node.op for node in graph.nodes} <= {"Relu", "Add", "Conv"} | repairs


def test_no_block_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--operators"):
        generators.get("graph-search")(GeneratorSettings(operators=("Det",)))
