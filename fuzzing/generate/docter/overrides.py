"""Manual corrections where documentation is silent or wrong, each with its reason: overrides.yaml.

EAGLE also keeps such a file for DocTer's constraints. A correction selects APIs by patterns and gives
constraints that replace the extracted ones (null removes one), and relations to add.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from importlib.resources import files
from typing import Any, get_type_hints

from ruamel.yaml import YAML

from fuzzing.errors import InternalError
from fuzzing.generate.docter.record import Definition, Evidence, Parameter, Record, Relation, build

_FILE = "overrides.yaml"


@cache
def load_corrections() -> tuple[Mapping[str, Any], ...]:
    """The file's entries: apis, because, parameters, relations, definitions."""
    loaded: list[Mapping[str, Any]] = YAML(typ="safe").load(files(__package__).joinpath(_FILE).read_text())
    return tuple(loaded)


def apply_corrections(record: Record) -> Record:
    """The record with every correction whose pattern matches its API, in the file's order."""
    for correction in load_corrections():
        if any(re.fullmatch(pattern, record.api) for pattern in correction["apis"]):
            record = _apply(record, correction)
    return record


def _apply(record: Record, correction: Mapping[str, Any]) -> Record:
    because = Evidence("override", correction["because"])
    given = correction.get("parameters", {})
    found = tuple(
        _parameter(item, given[item.name], because) if item.name in given else item
        for item in record.parameters
    )
    added = tuple(
        Relation(item["holds"], item["parameter"], because) for item in correction.get("relations", ())
    )
    defined = tuple(
        Definition(name, text, because) for name, text in correction.get("definitions", {}).items()
    )
    symbols = {item.symbol for item in defined}
    kept = tuple(item for item in record.definitions if item.symbol not in symbols)
    relations = () if correction.get("no_relations") else record.relations
    return replace(record, parameters=found, relations=(*relations, *added), definitions=(*kept, *defined))


def _parameter(item: Parameter, given: Mapping[str, Any], because: Evidence) -> Parameter:
    hints = get_type_hints(Parameter)
    names = {field.name for field in fields(Parameter)}
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if name not in names:
            raise InternalError(f"{_FILE}: a parameter has no {name}")
        evidence = {"evidence": {"origin": because.origin, "text": because.text}}
        changes[name] = build(hints[name], {**value, **evidence} if isinstance(value, Mapping) else value)
    return replace(item, **changes)
