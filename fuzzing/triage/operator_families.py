"""Parts of a compiler that several operators share: a bug there shows in each of them.

ONNX writes the text of such operators from one template, and frontends convert what they share in one helper:
the order of dimensions in recurrent networks, the axes of reductions, the larger and the smaller of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fuzzing.outcomes import Verdict
from fuzzing.torch_aliases import bare_api
from fuzzing.triage.python_stack import is_dispatcher
from fuzzing.triage.type_needs import GRAPH_FRONTEND

_NONFINITE = frozenset({"NaN or infinity on one side", "the largest number for infinity"})
_TYPE = frozenset({"wrong type"})
_WRONG = _NONFINITE | {"wrong shapes", "wrong values"}
#: Templates `RNNDocGenerator` and `ReduceOpGenerator` of onnx/defs.
_RECURRENT = frozenset({"RNN", "GRU", "LSTM"})
_REDUCTIONS = frozenset(
    f"Reduce{kind}"
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)
_SHARED_CONVERTERS = (
    (
        "native_batch_norm",
        *(f"_native_batch_norm_legit{kind}" for kind in ("", "_functional", "_no_training")),
    ),
    ("amax", "amin", "aminmax", "argmax", "argmin", "argsort", "max", "min", "msort", "sort", "topk"),
    ("cummax", "cummin"),
    ("cumprod", "cumsum"),
    ("mean", "nanmean", "nansum", "sum"),
    ("std", "std_mean", "var", "var_mean"),
)
#: ATen's operator → those that frontends convert to the same operators: what is refused of one is of another.
_CONVERTED_ALIKE = {name: ", ".join(names) for names in _SHARED_CONVERTERS for name in names}
#: Files of OpenVINO's frontend with checks of what a converter was called with: it is wrong by itself.
_OWN_CHECKS = frozenset(
    {"node_context.cpp", "translate_session.cpp", "unconverted_ops_report.cpp", "utils.cpp"}
)
#: Needs of an Attention whose heads are in one dimension, and of one that has a dimension for them.
_FORM_OF_HEADS = frozenset({"kv_num_heads", "q_num_heads", "rank 4"})
#: An operator that runs graphs, before the pattern of these.
_BODIES = re.compile(r"(If|Loop|Scan)\[")
#: The need, behind an operator that runs graphs, of one that reads an outer value.
CAPTURES = "captures"
#: A word, or a part of a name, that is about the smaller of two.
_MIN = re.compile(r"(?<![A-Za-z])min(?=imum|_|\b)")


@dataclass(frozen=True)
class _Part:
    """A part of a compiler.

    name        in place of the operator
    operators   that have it
    need        of a case that shows its bugs, "" if any does; an attribute's value is left out
    complaints  that show them, without the types of an output of a wrong one; none if any does
    without     attributes that the part is the same for
    symptom     whether wrong values and wrong shapes tell its bugs apart
    types       whether element types do
    """

    name: str
    operators: frozenset[str]
    need: str = ""
    complaints: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    symptom: bool = True
    types: bool = True

    def shows(self, operator: str, complaint: str, needs: Collection[str]) -> bool:
        """Whether a wrong result with these needs, without the operator's name, is the part's."""
        needed = not self.need or any(_attribute(need) == self.need for need in needs)
        shown = not self.complaints or _kind(complaint) in self.complaints
        return operator in self.operators and needed and shown


#: An axis left out changes the shape; wrong numbers along an axis are the operator's own. What orders
#: dimensions changes shapes or, where lengths are equal, numbers. Types of results are decided alike for
#: arithmetic, and for matrix products.
_PARTS = (
    _Part("RNN, GRU, LSTM: layout", _RECURRENT, "layout", symptom=False),
    _Part("reductions: zero-size", _REDUCTIONS, "zero-size"),
    _Part("reductions: axes", _REDUCTIONS, "axes", frozenset({"wrong shapes"})),
    _Part("Resize: keep_aspect_ratio_policy", frozenset({"Resize"}), "keep_aspect_ratio_policy"),
    _Part("Resize: antialias", frozenset({"Resize"}), "antialias", without=frozenset({"mode"})),
    _Part("Attention", frozenset({"Attention"}), complaints=_WRONG, without=_FORM_OF_HEADS),
    _Part("ReduceMax, ReduceMin", frozenset({"ReduceMax", "ReduceMin"}), complaints=_NONFINITE),
    _Part("ArgMax, ArgMin", frozenset({"ArgMax", "ArgMin"})),
    _Part("amax, amin", frozenset({"amax", "amin", "aminmax", "max", "min"}), complaints=_NONFINITE),
    _Part("arithmetic", frozenset({"add", "div", "mul", "rsub", "sub"}), complaints=_TYPE),
    _Part(
        "matrix products",
        frozenset({"addmm", "baddbmm", "bmm", "matmul", "mm"}),
        complaints=_TYPE,
        types=False,
    ),
    _Part("argmax, argmin", frozenset({"argmax", "argmin"})),
)


def shared_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A signature's fields with what is shared in place of the operator, if the failure is about that:
    `reductions: zero-size`, and needs without the operator's name. Else the fields as they are.
    """
    if fields.get("verdict") == Verdict.CRASH.value:
        fields = _shared_exception(fields)
    operator = bare_api(str(fields.get("operator", "")))
    if "needs" not in fields:
        return dict(fields)
    lists = {
        name: [_without_name(str(need), operator) for need in fields.get(name, ())]
        for name in ("needs", "proven")
        if name in fields
    }
    complaint = str(fields.get("complaint", ""))
    shared = [part for part in _PARTS if part.shows(operator, complaint, lists["needs"])]
    shared = [part for part in shared if part.need] or shared  # what it needs tells more than what it shows
    if not shared:
        return dict(fields)
    dropped = frozenset[str]().union(*(part.without for part in shared))
    valued = {part.need for part in shared if part.need}
    for name, needs in lists.items():
        kept = (need for need in needs if _attribute(need) not in dropped)
        lists[name] = [_attribute(need) if _attribute(need) in valued else need for need in kept]
    name = "; ".join(part.name for part in shared)
    changed = {**fields, **lists, "operator": name}
    if fields.get("verdict") == Verdict.WRONG_RESULT.value and not all(part.symptom for part in shared):
        changed["complaint"] = ""
    if not all(part.types for part in shared):
        changed |= {"complaint": _kind(complaint), "dtypes": []}
    return changed


def _shared_exception(fields: Mapping[str, Any]) -> dict[str, Any]:
    """An exception's fields where the smaller is as the larger, and an operator of ATen as what is converted
    alike, if a place outside its converter refuses what that made, or its converter fails. Of what the file
    of an operator that runs graphs says of it, these tell nothing.
    """
    frames = [_MIN.sub("max", str(frame)) for frame in fields.get("frames", ())]
    changed = {**fields, "frames": frames, "complaint": _MIN.sub("max", str(fields.get("complaint", "")))}
    if not frames or not changed["complaint"] or frames[0] in _OWN_CHECKS:
        return changed
    outer = _BODIES.match(str(fields.get("operator", "")))
    if outer and frames[0].partition(".")[0] == outer[1].lower() and "needs" in fields:
        captures = f"{outer[1]} {CAPTURES}"
        if captures in fields["needs"]:  # which of its checks fails, the number of values decides
            return {**changed, "operator": captures, "complaint": "", "needs": [], "proven": []}
        return {**changed, "operator": outer[1], "needs": [], "proven": []}
    if len(frames) > 1 and is_dispatcher(frames[1]) and fields.get("frontend") != GRAPH_FRONTEND:
        return _of_converter(changed, frames[0])
    if len(frames) > 1:
        converter = str(fields["frames"][1])
        return {**changed, "frames": [frames[0], _CONVERTED_ALIKE.get(_function(converter), converter)]}
    family = _CONVERTED_ALIKE.get(bare_api(str(fields.get("operator", ""))))
    return _of_converter(changed, family) if family else changed


def _of_converter(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """An exception's fields with what was converted in place of the call, whose arguments tell nothing."""
    if "needs" not in fields:
        return {**fields, "operator": name}
    shapes = [need for need in fields["needs"] if need == "zero-size" or need.startswith("rank ")]
    return {**fields, "operator": name, "needs": shapes, "proven": []}


def _function(converter: str) -> str:
    """What a converter is of: `sum` of `translator.py:Importer._sum`."""
    return converter.rpartition(":")[2].rpartition(".")[2].strip("_")


def _kind(complaint: str) -> str:
    """A complaint without the types of an output of a wrong one."""
    return complaint.partition(" (")[0]


def _attribute(need: str) -> str:
    """A need without an attribute's value: `mode` of `mode=linear`."""
    return need.partition("=")[0]


def _without_name(need: str, operator: str) -> str:
    for mark in (".", " "):
        need = need.removeprefix(operator + mark)
    return need
