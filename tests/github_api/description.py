"""GitHub's own description of its API, as a judge of requests."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

_FILE = Path(__file__).with_name("github_api.json")


@cache
def _description() -> dict[str, Any]:
    text: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return text


def faults(method: str, path: str, body: object = None) -> list[str]:
    """What is wrong with a request: an operation GitHub lacks, or a body it would refuse.

    Properties that the description does not name count as faults: GitHub would ignore them, which is
    never what we meant.
    """
    bare = path.partition("?")[0]
    for template, operations in _description()["paths"].items():
        pattern = re.sub(r"\{[^}]+\}", "[^/]+", template)
        if re.fullmatch(pattern, bare) and method.lower() in operations:
            return _body_faults(operations[method.lower()], body)
    return [f"GitHub has no {method} {bare} (or it is missing in prune.py)"]


def _body_faults(operation: dict[str, Any], body: object) -> list[str]:
    described = operation.get("requestBody")
    if described is None:
        return ["a body where none is expected"] if body is not None else []
    if body is None:
        return ["a body is missing"] if described.get("required") else []
    schema = _strict(described["content"]["application/json"]["schema"])
    checker = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    return [f"{error.json_path}: {error.message[:300]}" for error in checker.iter_errors(body)]


def _strict(schema: Any) -> Any:
    """OpenAPI 3.0's dialect as JSON Schema: references resolved, `nullable` spelled out, closed objects."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        _, _, kind, name = schema["$ref"].split("/")
        return _strict(_description()["components"][kind][name])
    made = {
        key: {name: _strict(item) for name, item in value.items()} if key == "properties" else _strict(value)
        for key, value in schema.items()
        if key != "nullable"
    }
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made
