"""Comparisons of two tensors, which broadcast, and questions about one."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.graph.domains import Choice
from fuzzing.graph.intervals import BOOLEAN, WHOLE, whole
from fuzzing.graph.operator import LEAD, Data, Operator, Setting, Torch
from fuzzing.graph.operators import register
from fuzzing.graph.operators.arithmetic import companion, together
from fuzzing.graph.operators.elementwise import PLAIN
from fuzzing.graph.site import Site
from fuzzing.graph.types import ANY, FLOATS, INTEGERS, NUMBERS, TensorType


def _answers(site: Site) -> tuple[TensorType, ...]:
    (type_,) = together(site)
    return (TensorType("bool", type_.shape),)


def _comparison(name: str, since: int, dtypes: tuple[str, ...], torch: str) -> Operator:
    return Operator(
        name,
        since,
        slots=(LEAD, Data(companion, within=lambda site: WHOLE[site.dtype])),
        infer=_answers,
        values=lambda site: BOOLEAN,
        within=whole,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        torch=torch,
    )


def _question(
    name: str, since: int, dtypes: tuple[str, ...], torch: Torch, settings: tuple[Setting, ...] = ()
) -> Operator:
    return Operator(
        name,
        since,
        infer=lambda site: (TensorType("bool", site.x.shape),),
        values=lambda site: BOOLEAN,
        within=whole,
        dtypes=dtypes,
        empty=True,
        dynamic=True,
        settings=settings,
        torch=torch,
    )


def _infinite(site: Site, names: Sequence[str]) -> str:
    sides = [
        f"torch.{function}({names[0]})"
        for function, side in (("isneginf", "detect_negative"), ("isposinf", "detect_positive"))
        if site.get(side)
    ]
    return " | ".join(sides) if sides else f"torch.zeros_like({names[0]}, dtype=torch.bool)"


_OLD_NUMBERS = PLAIN + INTEGERS
_SIDES = tuple(
    Setting(name, Choice(0, 1), omit=0.6, default=1) for name in ("detect_negative", "detect_positive")
)

register(
    _comparison("Equal", 13, ANY, "torch.eq({0}, {1})"),
    _comparison("Less", 13, NUMBERS, "torch.lt({0}, {1})"),
    _comparison("Greater", 13, NUMBERS, "torch.gt({0}, {1})"),
    _comparison("LessOrEqual", 12, _OLD_NUMBERS, "torch.le({0}, {1})"),
    _comparison("LessOrEqual", 16, NUMBERS, "torch.le({0}, {1})"),
    _comparison("GreaterOrEqual", 12, _OLD_NUMBERS, "torch.ge({0}, {1})"),
    _comparison("GreaterOrEqual", 16, NUMBERS, "torch.ge({0}, {1})"),
    # Always false here, as every edge is finite: what folds them away is worth testing all the same.
    _question("IsNaN", 13, FLOATS, "torch.isnan({0})"),
    _question("IsInf", 10, ("float32", "float64"), _infinite, _SIDES),
    _question("IsInf", 20, FLOATS, _infinite, _SIDES),
)
