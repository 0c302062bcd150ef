"""Canonical JSON program files: equal content has equal bytes, and so one case id."""

from __future__ import annotations

import json
from typing import Any, Dict, FrozenSet, List, Tuple

from fuzzing import json_encoder
from fuzzing.errors import CaseFormatError

MAX_BYTES = 1 << 20  # a call with all its arguments; data is in the case's inputs


_WIDTH = 100  # columns; items that fit are written on one line
_encode = json_encoder.encoder(ascii_only=False, allow_nan=False, sort_keys=True)


def to_text(obj: Dict[str, Any]) -> bytes:
    """The canonical text of `obj`: keys sorted, floats as Python's repr, long items split over lines."""
    return (_spell(obj, "") + "\n").encode()


def _spell(obj: Any, indent: str) -> str:
    line = _encode(obj)
    if not indent or len(indent) + len(line) > _WIDTH:
        inner = indent + " "
        if isinstance(obj, dict) and obj:
            items = [f"{_encode(key)}: {_spell(obj[key], inner)}" for key in sorted(obj)]
            return "{\n" + ",\n".join(inner + item for item in items) + f"\n{indent}}}"
        if isinstance(obj, list) and obj:
            return "[\n" + ",\n".join(inner + _spell(item, inner) for item in obj) + f"\n{indent}]"
    return line


def from_text(data: bytes, keys: FrozenSet[str], filename: str) -> Dict[str, Any]:
    """The object in `data`, with exactly these keys; raises CaseFormatError."""
    if len(data) > MAX_BYTES:
        raise CaseFormatError(f"{filename} has {len(data)} bytes; the limit is {MAX_BYTES}")
    try:
        obj = json.loads(data.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise CaseFormatError(f"{filename} is not JSON: {error}") from None
    if not isinstance(obj, dict) or obj.keys() != keys:
        raise CaseFormatError(f"{filename} must be an object with the keys {', '.join(sorted(keys))}")
    return obj


def check_spelling(data: bytes, canonical: bytes, filename: str) -> None:
    """Raises CaseFormatError if `data` is not the text of `canonical`."""
    if data != canonical:
        raise CaseFormatError(
            f"{filename} is not spelled as Assay spells it: keys sorted, indented by one space"
        )


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    obj = dict(pairs)
    if len(obj) != len(pairs):
        raise ValueError("a key is there twice")
    return obj
