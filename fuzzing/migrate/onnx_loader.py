"""Reads an ONNX model from an untrusted file: whole, with its external data, or not at all.

Too large files are refused before reading. External data must be in the model's folder or below; unlike onnx,
links are followed, because caches of downloaded models hold only links.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from fuzzing.cases.programs import MAX_PROGRAM_BYTES
from fuzzing.migrate.onnx_single_nodes import UnsupportedModelError

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

TOO_LARGE = f"the model has more than {MAX_PROGRAM_BYTES >> 20} MiB, the most that a case may have"
NO_FILE = "the file cannot be read"
NO_MODEL = "the file is no ONNX model"
NO_DATA = "the model's external data cannot be read"


def read_model(file: Path) -> ModelProto:
    """The model in a file. Raises UnsupportedModelError with the reason why there is none."""
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    size = _size(file, NO_FILE)
    if not size:
        raise UnsupportedModelError("the file is empty")
    if size > MAX_PROGRAM_BYTES:
        raise UnsupportedModelError(TOO_LARGE, f"{size >> 20} MiB")
    try:
        model = onnx.load(file, format="protobuf", load_external_data=False)
    except OSError as error:
        raise UnsupportedModelError(NO_FILE, str(error.strerror)) from None
    except DecodeError as error:
        raise UnsupportedModelError(NO_MODEL, str(error)) from None
    _load_external(model, file.parent, size)
    return model


def _load_external(model: ModelProto, folder: Path, size: int) -> None:
    """Loads external data into the model; `size` is the model's without them, in bytes."""
    from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor

    tensors = []
    for tensor in _external(model):
        try:
            external: Any = ExternalDataInfo(tensor)
        except ValueError as error:
            raise UnsupportedModelError(NO_DATA, str(error)) from None
        place = _place(folder, external.location)
        size += external.length or _size(place, NO_DATA) - (external.offset or 0)
        tensors.append((tensor, place))
    if size > MAX_PROGRAM_BYTES:
        raise UnsupportedModelError(TOO_LARGE, f"{size >> 20} MiB with its external data")
    for tensor, place in tensors:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = place.name
        try:
            load_external_data_for_tensor(tensor, str(place.parent))
        except Exception as error:  # noqa: BLE001 - onnx raises its checker's, ValueError, OSError, …
            raise UnsupportedModelError(NO_DATA, str(error)) from None


def _external(message: Any) -> Iterator[TensorProto]:
    from google.protobuf.message import Message
    from onnx import TensorProto
    from onnx.external_data_helper import uses_external_data

    if isinstance(message, TensorProto):
        if uses_external_data(message):
            yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in (value,) if isinstance(value, Message) else value:
                yield from _external(item)


def _place(folder: Path, location: str) -> Path:
    """The path of external data, links followed. Raises UnsupportedModelError: missing, or outside of the
    folder.
    """
    parts = PurePosixPath(location)
    if not location or parts.is_absolute() or ".." in parts.parts:
        raise UnsupportedModelError(NO_DATA, f"{location!r} is no place beside the model")
    place = (folder / parts).resolve()
    _size(place, NO_DATA)
    return place


def _size(file: Path, reason: str) -> int:
    """The size of a regular file in bytes. Raises UnsupportedModelError: another kind, or unreadable."""
    try:
        status = file.stat()
    except OSError as error:
        raise UnsupportedModelError(reason, f"{file.name}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise UnsupportedModelError(reason, f"{file.name} is no regular file")
    return status.st_size
