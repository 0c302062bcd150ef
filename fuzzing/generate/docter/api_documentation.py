"""An API's documentation, and that of the APIs it refers to ("See torch.add", "Alias for")."""

from __future__ import annotations

import re
from functools import cache

from fuzzing.errors import UnknownNameError
from fuzzing.generate.docter import apis, docstrings
from fuzzing.generate.docter.docstrings import Documentation, Entry

_REFERENCE = re.compile(
    r"(?:[Ss]ee|[Aa]lias (?:for|of)|[Ii]n-?place version of|[Oo]ut-of-place version of|"
    r"Applies the)\s+:(?:py:)?(?:func|class|meth|attr):`~?(?:[^`<]*<)?([\w.]+?)(?:\(\))?>?`"
)
_DEPTH = 3


@cache
def read_documentation(api: str) -> Documentation:
    """The API's own docstring, parsed."""
    found = apis.resolve(api)
    return docstrings.parse_docstring(getattr(found, "__doc__", None) or "", apis.split_api(api)[1])


@cache
def documentation_chain(api: str) -> tuple[tuple[str, Documentation], ...]:
    """The API's own documentation first, then that of its references, transitively, each once."""
    found: dict[str, Documentation] = {}
    waiting = [(api, 0)]
    while waiting:
        name, depth = waiting.pop(0)
        if name in found:
            continue
        found[name] = read_documentation(name)
        if depth < _DEPTH:
            waiting.extend((other, depth + 1) for other in list_references(name))
    return tuple(found.items())


def list_references(api: str) -> list[str]:
    """The APIs to which a docstring refers for what it does not describe itself."""
    docstring = getattr(apis.resolve(api), "__doc__", None) or ""
    docstring = docstring.split("Args:")[0]
    given = [match[1] for match in _REFERENCE.finditer(docstring)]
    namespace, name = apis.split_api(api)
    if namespace == "torch.Tensor" and not given:
        given = [f"torch.{name.rstrip('_')}", name.rstrip("_")]
    return list(dict.fromkeys(other for spelled in given if (other := _resolve_reference(spelled, api))))


def _resolve_reference(name: str, api: str) -> str:
    tail = name.removeprefix("torch.")
    for dotted in (f"torch.{tail}", f"{apis.split_api(api)[0]}.{tail}", f"torch.Tensor.{tail}"):
        try:
            found = apis.resolve(dotted)
        except UnknownNameError:
            continue
        if dotted != api and callable(found):
            return dotted
    return ""


def find_entry(api: str, name: str) -> tuple[str, Entry] | None:
    """The entry of a parameter, by the API itself or its first reference that has one, and which."""
    for origin, document in documentation_chain(api):
        found = document.entry(name)
        if found is None and name == "input":
            found = document.entry("self")
        if found is None and name in ("input", "self") and origin != api and document.entries:
            first = document.entries[0]  # torch.det's input is torch.linalg.det's A
            found = (
                first
                if "tensor" in first.type.lower() and not apis.signature_mentions(api, first.name)
                else None
            )
        if found is not None:
            return origin, found
    return None
