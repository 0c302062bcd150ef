"""Operator graphs made small: the failing part, then fewer operators, attributes, dimensions, values."""

from __future__ import annotations

from fuzzing.reduce.engine import Format, Pass
from fuzzing.reduce.graph_bodies import inside, unfold
from fuzzing.reduce.graph_cuts import by_nodes, by_outputs, bypass, keep, named, single, split
from fuzzing.reduce.graph_plain import plain, shrink, simplify, usual
from fuzzing.reduce.lenses import Lens, register_lens
from fuzzing.reduce.subject import Subject, key, load, size

FORMAT = Format[Subject](
    size=size,
    key=key,
    passes=(
        Pass("named", named),
        Pass("single", single),
        Pass("outputs", by_outputs),
        Pass("nodes", by_nodes),
        Pass("bypass", bypass),
        Pass("unfold", unfold),
        Pass("inside", inside),
        Pass("plain", plain),
        Pass("usual", usual),
        Pass("shrink", shrink),
        Pass("simplify", simplify),
    ),
)

_WORDS = ("operators", "edges used", "outputs", "attributes")
register_lens(
    Lens(
        "OnnxModel",
        load=load,
        case=Subject.case,
        format=FORMAT,
        words=_WORDS,
        split=split,
        parts=lambda subject: len(subject.graph.nodes),
    )
)

__all__ = ["FORMAT", "Subject", "keep", "load"]
