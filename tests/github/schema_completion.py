"""Completes JSON with the other properties that GitHub's description requires."""

from __future__ import annotations

from typing import Any

from tests.github_api.api_schema import schema as described

#: Placeholder values: unlike any real number, host or time.
_TEXT, _TIME, _URL = "", "2026-01-01T00:00:00Z", "https://api.github.example"

Json = dict[str, Any]


def complete(pointer: str, known: Any) -> Any:
    """`known` in the shape of a schema: missing required properties get placeholders.

    pointer   "issue" for a schema among the components, else a JSON pointer
    """
    return _complete(_named(pointer), known)


def _named(pointer: str) -> Json:
    return described(pointer if pointer.startswith("#") else f"#/components/schemas/{pointer}")


def _complete(schema: Json, known: Any) -> Any:
    schema = _resolved(schema, known)
    if isinstance(known, list):
        return [_complete(schema.get("items", {}), item) for item in known]
    if not isinstance(known, dict):
        return known
    properties = schema.get("properties", {})
    closed = schema.get("additionalProperties") is False
    made = {
        name: _complete(properties.get(name, {}), value)
        for name, value in known.items()
        if name in properties or not closed
    }
    for name in schema.get("required", ()):
        if name not in made:
            made[name] = _default(properties.get(name, {}), name, made.get("url"))
    return made


def _resolved(schema: Json, known: Any) -> Json:
    """The schema with references resolved, parts joined, and the matching alternative chosen."""
    while "$ref" in schema:
        schema = described(schema["$ref"])
    if "allOf" in schema:
        return _joined([_resolved(part, known) for part in schema["allOf"]])
    for word in ("oneOf", "anyOf"):
        if word in schema:
            return _fitting([_resolved(part, known) for part in schema[word]], known)
    return schema


def _joined(parts: list[Json]) -> Json:
    if not any("properties" in part for part in parts):
        return {name: value for part in parts for name, value in part.items()}
    joined: Json = {"properties": {}, "required": []}
    for part in parts:
        for name, value in part.get("properties", {}).items():
            before = joined["properties"].get(name)
            joined["properties"][name] = {"allOf": [before, value]} if before else value
        joined["required"] += part.get("required", [])
    return joined


def _fitting(parts: list[Json], known: Any) -> Json:
    """The alternative with most of the properties."""
    if not isinstance(known, dict):
        word = {str: "string", bool: "boolean", int: "integer", list: "array"}.get(type(known), "null")
        return next((part for part in parts if part.get("type") == word), parts[0])
    return max(parts, key=lambda part: len(known.keys() & part.get("properties", {}).keys()))


def _default(schema: Json, name: str, url: Any) -> Any:
    schema = _resolved(schema, None)
    if schema.get("nullable") or "null" in schema.get("type", ()):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return {
            inner: _default(schema.get("properties", {}).get(inner, {}), inner, url)
            for inner in schema.get("required", ())
        }
    if kind == "string":
        if name.endswith("url") or schema.get("format") == "uri":
            return f"{url or _URL}/{name.removesuffix('_url')}"
        return _TIME if schema.get("format") == "date-time" else _TEXT
    return {"boolean": False, "integer": 0, "number": 0, "array": []}[kind]
