"""NNSmith's models as cases (ASPLOS 2023), byte for byte, with inputs from NNSmith's own ranges."""

from __future__ import annotations

from collections.abc import Iterator

from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.rng import Rng, derive_seed

NAME = "nnsmith"
#: Models in all; some twenty are made in a second.
MODELS = 2000
#: Of NNSmith's own operators, each of which becomes 2.7 of ONNX's: from one to what its paper's runs have.
NODES = (1, 10)
SEED = 0


@register_source(NAME, library="onnx", needs="nnsmith z3-solver torch")
def migrate(
    part: Selection | None = None, seed: int = SEED, count: int = MODELS
) -> Iterator[TestCase | Skip]:
    """Models of seeds derived from one; a part has some of them."""
    tests = (f"{NAME}/{seed}/{number}" for number in range(count))
    yield from generate_cases(test for test in tests if part is None or part.contains(test))


def generate_cases(tests: Iterator[str]) -> Iterator[TestCase | Skip]:
    """The case of each test, or why it is none; raises InfrastructureError if there is no NNSmith."""
    from fuzzing.errors import UnreadableError
    from fuzzing.generate.isra.settings import GeneratorSettings
    from fuzzing.generate.nnsmith import GenerationError, NNSmith

    generator = NNSmith(GeneratorSettings(nodes=NODES))
    try:
        for test in tests:
            seed = derive_seed(SEED, test)
            try:
                yield _case(test, seed, generator.model(seed).onnx, generator.versions["nnsmith"])
            except GenerationError as error:
                yield Skip(test, "NNSmith cannot export its own model", str(error))
            except UnreadableError as error:
                yield Skip(test, "ONNX cannot infer the types of the model", str(error))
    finally:
        generator.close()


def _case(test: str, seed: int, model: bytes, version: str) -> TestCase:
    from fuzzing.generate.case_builder import make_recipe, single_operator
    from fuzzing.generate.nnsmith import input_range
    from fuzzing.graph.onnx_reader import from_onnx

    graph = from_onnx(model)
    rng = Rng(derive_seed(seed, "data"))
    inputs = []
    for edge in graph.inputs:
        type_ = graph.types[edge]
        inputs.append((graph.names[edge], make_recipe(type_, input_range(type_), rng.seed())))
    provenance = Provenance(NAME, test, single_operator(graph), "nnsmith", version, seed)
    return TestCase(OnnxModel(model), tuple(inputs), provenance)
