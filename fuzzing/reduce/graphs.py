"""Operator graphs made small: the failing part, then fewer operators, attributes, dimensions, values."""

from __future__ import annotations

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
    shrink_inputs_together,
    simplify_values,
    use_common_types,
)
from fuzzing.reduce.graph_state import GraphState, key, load, size
from fuzzing.reduce.graph_subgraphs import inline_branches, shrink_subgraphs

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
        Pass("usual", use_common_types),
        Pass("shrink", shrink_inputs_together),
        Pass("simplify", simplify_values),
    ),
)

_WORDS = ("operators", "edges used", "outputs", "attributes")
register_format(
    ProgramFormat(
        "OnnxModel",
        load=load,
        case=GraphState.case,
        spec=SPEC,
        words=_WORDS,
        split=split,
        parts=lambda state: len(state.graph.nodes),
    )
)

__all__ = ["SPEC", "GraphState", "keep_nodes", "load"]
