"""The traits of a pair: what its sides are, whatever rewrites led from one to the other."""

from __future__ import annotations

from dataclasses import replace

import onnx
import onnx.inliner

from fuzzing.cases import EquivalentModels, EquivalentPair, OnnxModel, TestCase
from fuzzing.triage.trait_readers import graphs
from fuzzing.triage.traits import Traits, register_traits


@register_traits(EquivalentPair.kind)
def traits(case: TestCase) -> Traits:
    """The traits of a pair of calls: its rule and API."""
    program = case.program
    assert isinstance(program, EquivalentPair)
    operator = case.provenance.operator
    return Traits(f"{operator} by {program.rule}", operators=(operator,))


@register_traits(EquivalentModels.kind)
def model_traits(case: TestCase) -> Traits:
    """The traits of a pair of models: both graphs, `Relu = Max`, and whatever either needs."""
    program = case.program
    assert isinstance(program, EquivalentModels)
    left, right = (_side_traits(case, side) for side in program.sides)
    needs, operators = {*left.needs, *right.needs}, {*left.operators, *right.operators}
    if onnx.load_model_from_string(program.right.model).functions:
        needs.add("function")
    pattern = f"{left.pattern} = {right.pattern}"
    return Traits(pattern, left.dtypes, tuple(sorted(needs)), tuple(sorted(operators)))


def _side_traits(case: TestCase, side: OnnxModel) -> Traits:
    """The traits of one model, the bodies of its functions in place of their calls.

    A model that is no graph of operators has the names of its operators, not those of the rewrites.
    """
    model = onnx.inliner.inline_local_functions(onnx.load_model_from_string(side.model))
    names = " ".join(sorted({node.op_type for node in model.graph.node}))
    provenance = replace(case.provenance, operator=names)
    program = OnnxModel(model.SerializeToString(deterministic=True))
    return graphs.traits(replace(case, program=program, provenance=provenance))
