"""Parses `.github/assay.yml` into a RepositoryConfig, or lists every mistake in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bot.config.document import Document, UnreadableError, read_document
from bot.config.model import RepositoryConfig
from bot.config.names import suggestion
from bot.config.problems import InvalidConfigError, Path, Problem, format_path
from bot.config.units import FROM_FILE

CONFIG_PATH = ".github/assay.yml"

_TYPES = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "bool_type": "must be true or false",
    "model_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
}


def parse_config(text: bytes, name: str = CONFIG_PATH) -> RepositoryConfig:
    """Parses a configuration; raises InvalidConfigError with every mistake and its position."""
    try:
        document = read_document(text)
    except UnreadableError as error:
        raise InvalidConfigError(name, [error.problem]) from None
    if document.data is None:
        hint = "is empty; it needs at least 'version: 1' and 'backend: ...'"
        raise InvalidConfigError(name, [Problem(1, 1, "", hint)])
    try:
        config = RepositoryConfig.model_validate(document.data, context=FROM_FILE)
    except ValidationError as error:
        found = [_problem(detail, document) for detail in list_errors(error)]
        raise InvalidConfigError(name, [*document.problems, *found]) from None
    if document.problems:
        raise InvalidConfigError(name, document.problems)
    return config


def list_errors(error: ValidationError) -> Iterator[ErrorDetails]:
    """The errors, without those of defaults that depend on an invalid field."""
    for detail in error.errors(include_url=False):
        if detail["type"] != "default_factory_not_called":
            yield detail


def _problem(detail: ErrorDetails, document: Document) -> Problem:
    path: Path = detail["loc"]
    unknown = detail["type"] in ("extra_forbidden", "unknown_name")
    line, column = document.position_of(path, key=unknown)
    return Problem(line, column, format_path(path), _message(detail, path))


def _message(detail: ErrorDetails, path: Path) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return f"is not a key here; {suggestion(str(path[-1]), keys_at(path[:-1]))}"
    if kind == "missing":
        return "is missing; add it"
    if kind == "literal_error":
        return f"must be {context['expected']}; it is {_describe(detail['input'])}"
    if kind == "value_error":
        return str(context["error"])
    if kind in ("refused", "unknown_name"):
        return str(context["why"])
    if kind in _TYPES:
        return f"{_TYPES[kind]}; it is {_describe(detail['input'])}"
    message = detail["msg"]
    return f"is not allowed: {message[:1].lower()}{message[1:]}; it is {_describe(detail['input'])}"


def keys_at(path: Path) -> list[str]:
    """The keys that the section at `path` may hold."""
    model: type[BaseModel] = RepositoryConfig
    parts = iter(path)
    for part in parts:
        inner = next((kind for name, kind in iterate_sections(model) if name == part), None)
        if inner is None:
            return []
        field = next(one for name, one in model.model_fields.items() if (one.alias or name) == part)
        if get_origin(field.annotation) is dict:
            next(parts, None)  # a name of the user's own
        model = inner
    return [field.alias or name for name, field in model.model_fields.items()]


def iterate_sections(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """The fields of a model that are models themselves."""
    for name, field in model.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield field.alias or name, kind


def _describe(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value) if isinstance(value, str) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."
