"""JSON encoding of many small objects.

`json.JSONEncoder.encode` sets up CPython's C encoder for each object, which takes several times as long as
encoding a small one. Here it is set up once.
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any


def encoder(
    *, ascii_only: bool = True, allow_nan: bool = True, sort_keys: bool = False, compact: bool = False
) -> Callable[[Any], str]:
    """A function equal to `json.dumps` with these settings. Objects must not contain cycles."""
    separators = (",", ":") if compact else (", ", ": ")
    plain = json.JSONEncoder(
        ensure_ascii=ascii_only, allow_nan=allow_nan, sort_keys=sort_keys, separators=separators
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    inner = json.encoder
    quote = getattr(inner, "encode_basestring_ascii" if ascii_only else "encode_basestring")
    try:
        pieces = make(
            None, plain.default, quote, None, separators[1], separators[0], sort_keys, False, allow_nan
        )
        if "".join(pieces({"a": [1, "b", None]}, 0)) != plain.encode({"a": [1, "b", None]}):
            return plain.encode
    except TypeError:  # a Python version whose C encoder takes other arguments
        return plain.encode

    def encode(obj: Any) -> str:
        return "".join(pieces(obj, 0))

    return encode
