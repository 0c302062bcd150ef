"""Value classes of the attributes of ONNX's operators: which kinds of values a set of cases should hold.

The classes of strings are the words that the operators' pages list (https://onnx.ai/onnx/operators/). Numbers
are divided where code commonly divides: a switch that is on or off, an axis counted from the end, a stride
that is 1, padding that differs between both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import onnx

#: An attribute that the node does not have.
ABSENT = "absent"
#: Any value of an attribute whose values are not divided.
GIVEN = "given"

#: Attributes that are 0 or 1.
SWITCHES = frozenset(
    {
        *("align_corners", "allowzero", "antialias", "ceil_mode", "center_point_box", "count_include_pad"),
        *("exclude_outside", "exclusive", "fmod", "inverse", "is_causal", "keepdims", "largest", "layout"),
        *("linear_before_reset", "noop_with_empty_axes", "onesided", "periodic", "reverse", "saturate"),
        *("select_last_index", "sorted", "storage_order", "training_mode", "transA", "transB", "upper"),
        *(
            "detect_negative",
            "detect_positive",
            "interleaved",
            "input_forget",
            "is_case_sensitive",
            "new_axis",
        ),
    }
)
_AXES = frozenset({"axis", "axes", "start", "end"})
_TYPES = frozenset({"to", "dtype", "output_dtype", "stash_type", "softmax_precision"})
#: Types of intermediate results and of random numbers, which are floats.
_FLOATS = frozenset({"stash_type", "softmax_precision", "RandomNormal.dtype", "RandomUniform.dtype"})
#: Numbers of which 1 is a case of its own.
_COUNTS = frozenset({"group", "num_groups", "offset_group", "p"})
_LENGTHS = frozenset({"kernel_shape", "strides", "dilations"})
_PADS = frozenset({"pads"})
_FAMILIES = (
    ("float32", (onnx.TensorProto.FLOAT,)),
    ("other float", tuple(
        number for name, number in onnx.TensorProto.DataType.items()
        if name != "FLOAT" and ("FLOAT" in name or name == "DOUBLE")
    )),
    ("integer", tuple(
        number for name, number in onnx.TensorProto.DataType.items() if "INT" in name and "FLOAT" not in name
    )),
    ("other type", ()),
)  # fmt: skip
_PADDED = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_SCATTERED = ("none", "add", "mul", "max", "min")
_LOSSES = ("none", "mean", "sum")
_SAMPLED = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
            "tf_crop_and_resize")  # fmt: skip
#: The words of an attribute, by operator where they differ.
_WORDS: dict[str, tuple[str, ...]] = {
    "auto_pad": _PADDED,
    "reduction": _SCATTERED,
    "NegativeLogLikelihoodLoss.reduction": _LOSSES,
    "SoftmaxCrossEntropyLoss.reduction": _LOSSES,
    "Resize.mode": ("nearest", "linear", "cubic"),
    "Resize.nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "Resize.keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "coordinate_transformation_mode": _SAMPLED,
    "RoiAlign.coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
    "RoiAlign.mode": ("avg", "max"),
    "Pad.mode": ("constant", "reflect", "edge", "wrap"),
    "DepthToSpace.mode": ("DCR", "CRD"),
    "GridSample.mode": ("linear", "nearest", "cubic"),
    "GridSample.padding_mode": ("zeros", "border", "reflection"),
    "BitShift.direction": ("LEFT", "RIGHT"),
    "direction": ("forward", "reverse", "bidirectional"),
    "approximate": ("none", "tanh"),
    "round_mode": ("up", "down", "nearest"),
    "StringNormalizer.case_change_action": ("NONE", "LOWER", "UPPER"),
    "TfIdfVectorizer.mode": ("TF", "IDF", "TFIDF"),
}


class Cell(NamedTuple):
    """A value class of an operator's attribute."""

    operator: str
    attribute: str
    value_class: str


def list_cells() -> Iterator[Cell]:
    """All classes of ONNX's own operators in their newest version, without deprecated ones."""
    for schema in sorted(onnx.defs.get_all_schemas(), key=lambda one: str(one.name)):
        if schema.domain or schema.deprecated:
            continue
        for name, attribute in sorted(schema.attributes.items()):
            if not attribute.required and schema.name != "Constant":  # whose attributes exclude one another
                yield Cell(schema.name, name, ABSENT)
            for found in _classes(schema.name, name, attribute.type):
                yield Cell(schema.name, name, found)


def _classes(operator: str, name: str, kind: Any) -> tuple[str, ...]:
    types = onnx.defs.OpSchema.AttrType
    if kind == types.INT and name in SWITCHES:
        return "0", "1"
    if kind == types.INT and name in _TYPES:
        floats = name in _FLOATS or f"{operator}.{name}" in _FLOATS
        return ("float32", "other float") if floats else ("float32", "other float", "integer")
    if kind == types.INT and name in _COUNTS:
        return "1", "more than 1"
    if kind == types.STRING:
        return _WORDS.get(f"{operator}.{name}") or _WORDS.get(name) or (GIVEN,)
    if name in _AXES:
        return "from the front", "from the end"
    if name in _PADS:
        return "zero", "equal on both sides", "different on both sides"
    return ("all 1", "equal", "different") if name in _LENGTHS else (GIVEN,)


def classify(operator: str, name: str, value: Any) -> str:
    """The class of an attribute's value, as from `onnx.helper.get_attribute_value`; None for no attribute."""
    if value is None:
        return ABSENT
    if isinstance(value, bytes):
        word = value.decode("utf-8", "replace")
        return word if f"{operator}.{name}" in _WORDS or name in _WORDS else GIVEN
    if isinstance(value, int):
        return _class_of_number(name, value)
    if isinstance(value, list) and value and all(isinstance(one, int) for one in value):
        return _class_of_numbers(name, value)
    return GIVEN


def _class_of_number(name: str, value: int) -> str:
    if name in SWITCHES:
        return str(value)
    if name in _TYPES:
        return next((family for family, numbers in _FAMILIES if value in numbers), "other type")
    if name in _AXES:
        return "from the end" if value < 0 else "from the front"
    if name in _COUNTS:
        return "more than 1" if value > 1 else "1"
    return GIVEN


def _class_of_numbers(name: str, value: list[int]) -> str:
    if name in _PADS:
        half = len(value) // 2
        if not any(value):
            return "zero"
        return "equal on both sides" if value[:half] == value[half:] else "different on both sides"
    if name in _AXES:
        return "from the end" if min(value) < 0 else "from the front"
    if name not in _LENGTHS:
        return GIVEN
    if set(value) == {1}:
        return "all 1"
    return "equal" if len(set(value)) == 1 else "different"
