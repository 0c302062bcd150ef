"""Element types in two signatures that are compared.

A reduction ends in the plainest type that shows the failure (`fuzzing.cases.plain_types`), float32 for any
number. A signature of one that was not finished, or of an earlier release, which tried less, may have another
type: it is the bug that is known by the plainer one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fuzzing.cases.plain_types import oddness, plainer_types
from fuzzing.triage.traits import dtype_class

#: The frontend whose programs are graphs with initializers, of which it is known what reductions tried.
GRAPH_FRONTEND = "ONNX"
_FLOAT = "float"
#: Classes of types, with those for which they stand.
_CLASSES = {"float": {"bfloat16", "int", "uint"}, "int": {"uint"}}
_WORD = re.compile(r"\w+")


def with_plainer_types(fields: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """A signature's fields with the types that `known` has in place of others, unless these are proven."""
    if "needs" not in fields or "needs" not in known:
        return dict(fields)
    in_graph = fields.get("frontend") == GRAPH_FRONTEND
    needed, proven = set(known["needs"]), set(fields.get("proven", ()))
    plainer = {
        need: next((plain for plain in plainer_types(need) if plain in needed), need)
        for need in fields["needs"]
        if need not in needed | proven
    }
    classes = {dtype_class(plainer.get(name, name)) for name in fields.get("dtypes", ())}
    there = set(known.get("dtypes", ()))
    for plain, odd in _CLASSES.items():
        if plain in there - classes:  # beside floats integers are operands
            replaced = {name for name in odd - there - proven if name == "bfloat16" or in_graph}
            classes = {plain if name in replaced else name for name in classes}
    needs = {plainer.get(need, need) for need in fields["needs"]}
    complaint = _WORD.sub(lambda word: plainer.get(word[0], word[0]), str(fields.get("complaint", "")))
    return {**fields, "needs": sorted(needs), "dtypes": sorted(classes), "complaint": complaint}


def type_oddness(fields: Mapping[str, Any]) -> int:
    """How far the types of a signature are from float32. Of signatures that explain one failure the one with
    the plainest types is the bug.
    """
    needs, classes = (list(map(str, fields.get(name, ()))) for name in ("needs", "dtypes"))
    return oddness(needs) + sum(name != _FLOAT for name in classes)
