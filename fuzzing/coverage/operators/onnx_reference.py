"""The operator set `onnx`: all operators of ONNX's default domain that the installed onnx defines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx.defs

from fuzzing.coverage.operators import MAX_IN_DEGREE, register_operators

_VARIADIC = onnx.defs.OpSchema.FormalParameterOption.Variadic


@register_operators("onnx")
@cache
def in_degrees_of_all() -> Mapping[str, frozenset[int]]:
    """Operator → the numbers of inputs that its newest schema allows; any number means at most 5.

    Deprecated operators (Scatter, Upsample) are not among them.
    """
    newest = (schema for schema in onnx.defs.get_all_schemas() if not schema.domain)
    found = {schema.name: _in_degrees(schema) for schema in newest if not schema.deprecated}
    return dict(sorted(found.items()))


def _in_degrees(schema: onnx.defs.OpSchema) -> frozenset[int]:
    variadic = any(formal.option == _VARIADIC for formal in schema.inputs)
    largest = MAX_IN_DEGREE if variadic else schema.max_input
    return frozenset(range(schema.min_input, max(schema.min_input, largest) + 1))
