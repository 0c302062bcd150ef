"""Reduces operator graphs: the failing part, then fewer operators, attributes, dimensions, values."""

from __future__ import annotations

from dataclasses import replace

from fuzzing.cases import TestCase
from fuzzing.execute.evaluator import Evaluator
from fuzzing.outcomes import Outcome
from fuzzing.reduce.engine import Pass, ReductionSpec
from fuzzing.reduce.formats import ProgramFormat, register_format
from fuzzing.reduce.graph_cuts import (
    bypass_nodes,
    isolate_named_nodes,
    isolate_node,
    keep_nodes,
    remove_nodes,
    remove_outputs,
    split,
)
from fuzzing.reduce.graph_simplification import (
    drop_optional,
    fill_empty_inputs,
    fix_operands,
    name_cast_types,
    separate_operands,
    shrink_inputs_together,
    simplify_values,
    take_one_direction,
    use_common_types,
)
from fuzzing.reduce.graph_state import GraphState, key, size
from fuzzing.reduce.graph_state import load as load_state
from fuzzing.reduce.graph_subgraphs import inline_branches, shrink_subgraphs
from fuzzing.reduce.graph_validity import declares, find_violations, is_valid

SPEC = ReductionSpec[GraphState](
    size=size,
    key=key,
    passes=(
        Pass("named", isolate_named_nodes),
        Pass("single", isolate_node),
        Pass("outputs", remove_outputs),
        Pass("nodes", remove_nodes),
        Pass("bypass", bypass_nodes),
        Pass("unfold", inline_branches),
        Pass("inside", shrink_subgraphs),
        Pass("plain", drop_optional),
        Pass("directions", take_one_direction),
        Pass("casts", name_cast_types),
        Pass("usual", use_common_types),
        Pass("fill", fill_empty_inputs),
        Pass("separate", separate_operands),
        Pass("shrink", shrink_inputs_together),
        Pass("simplify", simplify_values),
        Pass("fixed", fix_operands),  # last: axes that are initializers shrink no more
    ),
)


def load(case: TestCase, evaluator: Evaluator, outcome: Outcome | None = None) -> GraphState:
    """The graph of a case as from `graph_state.load`, with the rules of ONNX that it breaks itself."""
    state = load_state(case, evaluator, outcome)
    return replace(state, tolerated=find_violations(state))


_WORDS = ("operators", "edges used", "outputs", "attributes")
register_format(
    ProgramFormat(
        "OnnxModel",
        load=load,
        case=GraphState.case,
        spec=SPEC,
        valid=is_valid,
        declares=declares,
        words=_WORDS,
        split=split,
        parts=lambda state: len(state.graph.nodes),
    )
)

__all__ = ["SPEC", "GraphState", "keep_nodes", "load"]
