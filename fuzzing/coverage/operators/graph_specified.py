"""The operator set `specified`: the operators that `fuzzing.graph` specifies, and their in-degrees.

What Assay's own generators could make at the installed onnx's newest opset.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx.defs

from fuzzing.coverage.operators import register_operators


@register_operators("specified")
def in_degrees() -> Mapping[str, frozenset[int]]:
    """Operator → the in-degrees of its specification, what its bodies capture left out; patterns are none."""
    from fuzzing.graph import operators  # every specification is imported with it

    found = operators.specifications(onnx.defs.onnx_opset_version()).values()
    return {
        f"{one.domain}::{one.name}" if one.domain else one.name: frozenset(
            degree - one.captured for degree in one.degrees
        )
        for one in found
        if one.expand is None
    }
