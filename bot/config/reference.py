"""Prints the table of keys for docs/configuration.md from the model: `python -m bot.config.reference`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bot.config.model import RepositoryConfig
from bot.config.parser import iterate_sections
from bot.config.units import show_duration, show_size

_HEAD = ("key", "meaning", "default", "example")


def render_table() -> str:
    """A Markdown table of all keys: meaning, default, example."""
    rows = [_HEAD, ("---",) * len(_HEAD), *_rows(RepositoryConfig, "")]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)


def _rows(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, ...]]:
    inner = dict(iterate_sections(model))
    for name, field in model.model_fields.items():
        key = field.alias or name
        if key in inner:
            named = "NAME." if get_origin(field.annotation) is dict else ""
            yield from _rows(inner[key], f"{prefix}{key}.{named}")
            continue
        example = field.examples[0] if field.examples else None
        yield (f"`{prefix}{key}`", field.description or "", _default(field), f"`{key}: {_yaml(example)}`")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory_takes_validated_data:
        return "–"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ([], {}):
        return "–"
    return f"`{_yaml(_in_units(field, value))}`"


def _in_units(field: FieldInfo, value: Any) -> Any:
    example = field.examples[0] if field.examples else None
    if isinstance(example, str) and isinstance(value, float):
        return show_duration(value)
    if isinstance(example, str) and isinstance(value, int):
        return show_size(value)
    return value


def _yaml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_yaml(item)}' for key, item in value.items())}}}"
    if isinstance(value, str):
        return value if not set(value) & set("*&!{}[],#|>@`\"'%:") else json.dumps(value)
    return str(value)


if __name__ == "__main__":
    sys.stdout.write(render_table() + "\n")
