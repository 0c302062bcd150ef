"""Signatures of torch's built-in functions, from the schemas of its operators.

A schema's types are texts such as "Optional[List[int]]" (`str(argument.type)`); enumerations of torch (dtype,
layout) are "int" there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fuzzing.prioritize.call_binding import JSON, ApiSignature, Parameter, default_to_json

_METHOD = "torch.Tensor."
_TAGGED_INTEGERS = frozenset({"dtype", "layout", "memory_format"})


def builtin_signatures(found: Any, api: str) -> list[ApiSignature]:
    """The overloads of a built-in of torch; those with `out` are last."""
    schemas = list(_schemas(found))
    schemas.sort(key=lambda schema: any(one.name == "out" for one in schema.arguments))
    return [_signature(schema, api) for schema in schemas]


def _schemas(found: Any) -> Iterator[Any]:
    import torch

    if hasattr(found, "_schema"):  # torch.ops.aten.add.Tensor
        yield found._schema
        return
    name = getattr(found, "_qualified_op_name", None)  # torch.ops.aten.add
    own = getattr(found, "__name__", "")
    for candidate in (name, f"aten::{own}", f"aten::{own.strip('_')}"):
        if candidate:
            overloads = torch._C._jit_get_schemas_for_operator(candidate)
            if overloads:
                yield from overloads
                return


def _signature(schema: Any, api: str) -> ApiSignature:
    """A schema as a signature. Its `self` is `input` for callers.

    The last positional list of numbers also takes further positional numbers: `x.view(2, 3)`.
    """
    parameters = []
    for argument in schema.arguments:
        name = "input" if argument.name == "self" and not api.startswith(_METHOD) else argument.name
        optional = argument.has_default_value()
        default = default_to_json(argument.default_value) if optional else None
        accepts = partial(_accepts, str(argument.type))
        parameters.append(Parameter(name, not optional, default, argument.kwarg_only, accepts))
    positional = [one for one in schema.arguments if not one.kwarg_only]
    spread = len(positional) > 0 and str(positional[-1].type) == "List[int]" and positional[-1].name != "self"
    return ApiSignature(tuple(parameters), positional[-1].name if spread else "", spread=spread)


def _accepts(kind: str, value: JSON) -> bool:
    if kind.startswith("Optional["):
        return value is None or _accepts(kind[len("Optional[") : -1], value)
    if kind.startswith("List["):
        return _is_list(kind[len("List[") : -1], value)
    check = _CHECKS.get(kind)
    return check is None or check(value)


def _is_list(kind: str, value: JSON) -> bool:
    items = value.get("tuple") if isinstance(value, dict) else value
    if not isinstance(items, list):  # one number may replace a list, a type may not: `x.view(torch.int32)`
        return kind in ("int", "float") and not _is_tagged(value, *_TAGGED_INTEGERS) and _accepts(kind, value)
    return all(_accepts(kind, item) for item in items)


def _is_number(value: JSON) -> bool:
    return isinstance(value, (bool, int, float)) or _is_tagged(value, "complex", "float")


def _is_tagged(value: JSON, *tags: str) -> bool:
    return isinstance(value, dict) and any(tag in value for tag in tags)


_CHECKS: dict[str, Callable[[JSON], bool]] = {
    "Tensor": lambda value: _is_tagged(value, "tensor"),
    "number": _is_number,
    "int": lambda value: isinstance(value, int) or _is_tagged(value, *_TAGGED_INTEGERS),
    "float": lambda value: isinstance(value, (int, float)) or _is_tagged(value, "float"),
    "complex": _is_number,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "Device": lambda value: isinstance(value, str) or _is_tagged(value, "device"),
}
