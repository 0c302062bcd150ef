"""Mutants of ONNX models with data: of the standard's node tests, or of the models that a user names.

A mutant has other parameters, element types, shapes, ranks or opset than its original, or initializers in
place of inputs. ONNX's checker and inference accept it, and so do its operators' specifications. Its expected
outputs are the reference's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fuzzing.cases import OnnxModel, Provenance, TestCase
from fuzzing.migrate import onnx_files, onnx_node_tests
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.rng import Rng, derive_seed

NAME = "onnx-mutants"
SEED = 0
#: Mutants of each model.
MUTANTS = 4


@register_source(NAME, library="onnx")
def migrate(
    part: Selection | None = None, seed: int = SEED, count: int = MUTANTS, models: str = ""
) -> Iterator[TestCase | Skip]:
    """The mutants of each model, after one another.

    count   mutants of each model, fewer where the draws are not valid
    models  a model or a folder of models on disk; the standard's node tests if it is empty
    """
    for item in onnx_files.migrate([Path(models)]) if models else onnx_node_tests.migrate():
        if isinstance(item, TestCase) and (part is None or part.contains(item.provenance.test)):
            yield from mutate_case(item, seed, count)


def mutate_case(case: TestCase, seed: int, count: int) -> Iterator[TestCase | Skip]:
    """Different mutants of a case."""
    from fuzzing.graph.onnx_writer import to_bytes
    from fuzzing.mutate.graphs.models.drawing import draw_mutant, read_model

    test = case.provenance.test
    model = read_model(case)
    if model is None or case.comparison != "values":
        yield Skip(test, "the model has inputs that are no tensors, or random results")
        return
    seen = {to_bytes(replace(model.graph, names={}))}
    for number in range(count):
        own = derive_seed(seed, NAME, test, number)
        drawn = draw_mutant(model, Rng(own))
        if drawn is None:
            continue
        mutant, mutations = drawn
        graph = replace(mutant.graph, names={})
        data = to_bytes(graph)
        if data in seen:
            continue
        seen.add(data)
        origin = case.provenance
        yield TestCase(
            program=OnnxModel(data),
            inputs=tuple([(f"v{edge}", mutant.values[edge]) for edge in graph.inputs]),
            provenance=Provenance(
                NAME,
                f"{test}/{number}/{'+'.join(mutations)}",
                origin.operator,
                origin.library,
                origin.version,
                own,
            ),
        )
    if len(seen) == 1:
        yield Skip(test, "no mutation of the model is valid")
