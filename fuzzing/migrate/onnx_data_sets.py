"""Data beside an ONNX model, in the layout of ONNX's tests and model zoo:

    FOLDER/test_data_set_0/input_0.pb, input_1.pb, …, output_0.pb, …

each a TensorProto, SequenceProto or OptionalProto, by the type of the model's input or output at that index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuzzing.cases import Tensor, Value
from fuzzing.cases.corpus import MAX_MANIFEST_BYTES
from fuzzing.migrate.onnx_single_nodes import UnsupportedModelError, element_type

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

MAX_BYTES = MAX_MANIFEST_BYTES // 2  # of one data set; it is stored as base64, a third longer
_MISSING = "a file of the data set beside the model is missing"
_FOLDER = re.compile(r"test_data_set_(\d{1,6})")

Data = tuple[list[Any], list[Any]]


def data_set_folders(place: Path) -> list[Path]:
    """The data sets in a folder, by number."""
    found = ((_FOLDER.fullmatch(one.name), one) for one in place.glob("test_data_set_*"))
    return [one for _, one in sorted((int(match[1]), one) for match, one in found if match and one.is_dir())]


def read_data_set(folder: Path, model: ModelProto) -> Data:
    """Inputs and outputs of a data set as numpy values; a sequence is a list.

    Raises UnsupportedModelError: there are none, one in between is missing, or the model does not take them.
    """
    files = {what: _files(folder, what) for what in ("input", "output")}
    if not any(files.values()):
        raise UnsupportedModelError("the data set beside the model is empty", folder.name)
    if sum(one.stat().st_size for both in files.values() for one in both) > MAX_BYTES:
        raise UnsupportedModelError(f"the data set beside the model has more than {MAX_BYTES >> 20} MiB")
    wanted = match_inputs(model, len(files["input"]))
    for place in range(len(files["input"]), len(wanted)):
        if not wanted[place].type.HasField("optional_type"):
            raise UnsupportedModelError(_MISSING, f"{folder.name}/input_{place}.pb")
    return _values(files["input"], wanted), _values(files["output"], model.graph.output)


def match_inputs(model: ModelProto, count: int) -> list[ValueInfoProto]:
    """The model's inputs for `count` values: old models also list initializers as inputs."""
    constant = {item.name for item in model.graph.initializer}
    free = [item for item in model.graph.input if item.name not in constant]
    return free if count <= len(free) else list(model.graph.input)


def check_fits(item: ValueInfoProto, value: Value) -> None:
    """Raises UnsupportedModelError for a tensor whose type and shape differ from the model's."""
    if not item.type.HasField("tensor_type") or not isinstance(value, Tensor):
        return
    kind = item.type.tensor_type
    fits = element_type(item) == value.dtype
    if fits and kind.HasField("shape"):
        stated = [dim.dim_value for dim in kind.shape.dim]  # 0 or -1 where it is open
        fits = len(stated) == len(value.shape) and all(
            wanted in (0, -1, size) for wanted, size in zip(stated, value.shape, strict=True)
        )
    if not fits:
        detail = f"{item.name} is {value.dtype}{list(value.shape)}"
        raise UnsupportedModelError(
            "the data beside the model is not of the type or shape that it takes", detail
        )


def _files(folder: Path, what: str) -> list[Path]:
    found = {one.name: one for one in folder.glob(f"{what}_*.pb")}
    names = [f"{what}_{place}.pb" for place in range(len(found))]
    for name in names:
        if name not in found:
            raise UnsupportedModelError(_MISSING, f"{folder.name}/{name}")
    return [found[name] for name in names]


def _values(files: Sequence[Path], items: Sequence[ValueInfoProto]) -> list[Any]:
    if len(files) > len(items):
        raise UnsupportedModelError("there is more data beside the model than it has inputs or outputs")
    return [_value(file, item) for file, item in zip(files, items, strict=False)]


def _value(file: Path, item: ValueInfoProto) -> Any:
    import onnx
    from onnx import numpy_helper

    kinds: dict[str | None, tuple[Any, Callable[[Any], Any]]] = {
        "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    }
    kind = item.type.WhichOneof("value")
    if kind not in kinds:
        raise UnsupportedModelError(
            "an input or output is neither tensor nor sequence nor optional", item.name
        )
    message, to_python = kinds[kind]
    try:
        return to_python(message.FromString(file.read_bytes()))
    except Exception as error:  # noqa: BLE001 - protobuf's and numpy's own, of files that may be anything
        raise UnsupportedModelError(
            "the data beside the model cannot be read", f"{file.parent.name}/{file.name}: {error}"
        ) from None
