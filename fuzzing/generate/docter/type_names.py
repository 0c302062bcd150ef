"""Type names in docstrings, stubs, schemas and annotations, as structures and element types."""

from __future__ import annotations

import re

#: Each name as a pattern, with the structures it stands for. The first that matches takes its words away.
_NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(sequence|list|tuple|iterable)s?( of| or list of|\[)\s*(python:|torch\.)?tensors?(,\s*\.\.\.)?\]?",
     ("list(tensor)",)),
    (r"tensor\[\]\??|tensors\.\.\.|tensorlist|\(tensor, tensor\)", ("list(tensor)",)),
    (r"(sequence|list|tuple|iterable|array_list)s?\s*( of|\[)\s*(python:|_)?(floats?)[^\]]*\]?|float\[\]",
     ("list(float)",)),
    (r"(list|tuple)( or tuple)?( of|\[)\s*(python:|_)?bools?\]?", ("list(bool)",)),
    (r"sequence of ints|list or tuple of ints|tuple of ints|list of ints?|tuple of int", ("list(int)",)),
    (r"(sequence|list|tuple|iterable)s?\s*(of|\[)\s*(python:|_)?(ints?|symint|union\[int, symint\])[^\]]*\]?",
     ("list(int)",)),
    (r"(symint|int)\[\d*\]|torch\.size|_size(_any_t|_any_opt_t)?\b|\bsize\b|ints?\.\.\.|shapetype",
     ("list(int)",)),
    (r"_(size|ratio)_(any|\d)_(opt_)?t", ("int", "list(int)")),
    (r"(long|int|bool|byte|float|double|short|half)tensor|torch\.\w+tensor", ("tensor",)),
    (r"tensors?\b", ("tensor",)),
    (r"memory_?format", ("memory_format",)),
    (r"_?layout", ("layout",)),
    (r"_?device(liketype)?", ("device",)),
    (r"_?dtype|scalartype", ("dtype",)),
    (r"generator", ("generator",)),
    (r"callable|function|module", ("callable",)),
    (r"\bdict", ("dict",)),
    (r"(python )?number|scalar|\breal\b", ("int", "float")),
    (r"_?(bool(ean)?|symbool)\b", ("bool",)),
    (r"_?(symint|int(eger|\d\d)?)s?\b", ("int",)),
    (r"_?(float|double|symfloat)\b", ("float",)),
    (r"_?complex\b", ("complex",)),
    (r"_?str(ing)?\b|'[\w]+'|literal\[", ("str",)),
    (r"sequence|tuple|\blist\b|iterable", ("list(int)",)),
    (r"\bnone\b|optional\[", ("none",)),
)  # fmt: skip
_COMPILED = [(re.compile(pattern), options) for pattern, options in _NAMES]
_TENSOR_DTYPES = {
    "long": "int64", "int": "int32", "bool": "bool", "byte": "uint8", "float": "float32", "double": "float64",
    "short": "int16", "half": "float16",
}  # fmt: skip
_TENSOR_NAME = re.compile(r"\b(" + "|".join(_TENSOR_DTYPES) + r")tensor", re.IGNORECASE)


def parse_structures(text: str) -> tuple[str, ...]:
    """The structures of a type's name, in order; () for none.

    "int or tuple of ints, optional" is ("int", "list(int)"); "Tensor?" is ("tensor",): the default decides
    whether it may be omitted.
    """
    rest = re.sub(r":\w+:`~?([^`]*)`|`", r"\1", text).lower()
    rest = re.sub(r"(,\s*)?\boptional\b(?!\[)|,?\s*required|default.*", "", rest)
    found: list[tuple[int, tuple[str, ...]]] = []
    for pattern, options in _COMPILED:
        while match := pattern.search(rest):
            found.append((match.start(), options))
            rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
            if not match[0]:
                break
    ordered = [option for _, options in sorted(found, key=lambda item: item[0]) for option in options]
    return tuple(dict.fromkeys(ordered))


def parse_tensor_dtypes(text: str) -> tuple[str, ...]:
    """Element types by legacy tensor names: "IntTensor or LongTensor" is int32, int64."""
    return tuple(dict.fromkeys(_TENSOR_DTYPES[match.lower()] for match in _TENSOR_NAME.findall(text)))
