"""GitHub's own description of its API, as a judge of requests, answers and the payloads of webhooks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

_FILE = Path(__file__).with_name("github_api.json")
_ROOT = "urn:github"
#: Statuses that any request may get, whatever its operation's description lists: who asks, how often, and
#: GitHub's own troubles ("Troubleshooting the REST API", "Rate limits for the REST API").
_ANYWHERE = {"301", "304", "307", "401", "403", "404", "429", "500", "502", "503"}
#: Parameters that hold slashes.
_MANY = {"path", "ref", "basehead", "branch"}


#: Where the description is stricter than GitHub, as parts of what a judge says: the account of a listed
#: installation would have to be a user and an enterprise at once; a pull request whose fork was deleted has
#: no `head.repo` ("pull_request" in the payloads of webhooks has null there).
_MISTAKEN = (r"\$\[\d+\]\.account: ", r"\.head\.repo: None is not of type 'object'")


@dataclass(frozen=True)
class Operation:
    """What may be asked: `pointer` leads to its description."""

    method: str
    template: str
    described: dict[str, Any]

    @property
    def pointer(self) -> str:
        """Where it stands, as a JSON pointer."""
        return f"#/paths/{self.template.replace('~', '~0').replace('/', '~1')}/{self.method.lower()}"


@cache
def _description() -> dict[str, Any]:
    text: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return text


@cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """Paths as patterns, those with the most fixed words first."""
    found = sorted(_description()["paths"], key=lambda path: (len(path.split("/")), path), reverse=True)
    found.sort(key=lambda path: sum("{" not in word for word in path.split("/")), reverse=True)
    return [(re.compile(re.sub(r"\{(\w+)\}", _parameter, path)), path) for path in found]


def _parameter(match: re.Match[str]) -> str:
    return ".+" if match[1] in _MANY else "[^/]+"


def operation(method: str, path: str) -> Operation | None:
    """The operation a request is of, if GitHub has it."""
    bare = path.partition("?")[0]
    for pattern, template in _templates():
        if pattern.fullmatch(bare):
            found = _description()["paths"][template].get(method.lower())
            if found is not None:
                return Operation(method, template, found)
    return None


def faults(method: str, path: str, body: object = None) -> list[str]:
    """What is wrong with a request: an operation GitHub lacks, or a body it would refuse.

    Properties that the description does not name count as faults: GitHub would ignore them, which is
    never what we meant.
    """
    requested = operation(method, path)
    if requested is None:
        return [f"GitHub has no {method} {path.partition('?')[0]} (or it is missing in prune.py)"]
    described = requested.described.get("requestBody")
    if described is None:
        return ["a body where none is expected"] if body is not None else []
    if body is None:
        return ["a body is missing"] if described.get("required") else []
    return _found(_request_judge(requested.method, requested.template), body)


def answer_faults(method: str, path: str, status: int, answer: object) -> list[str]:
    """What is wrong with an answer: a status GitHub does not give there, or a body of another shape."""
    requested = operation(method, path)
    if requested is None:
        return []
    known = requested.described["responses"]
    if str(status) not in known:
        listed = str(status) in _ANYWHERE
        return [] if listed else [f"GitHub does not answer {status} to {method} {requested.template}"]
    content = known[str(status)].get("content")
    if content is None:
        return []
    where = f"{requested.pointer}/responses/{status}/content/application~1json/schema"
    return [f"the answer to {method} {path}: {fault}" for fault in _found(_judge(where), answer)]


def payload_faults(event: str, payload: dict[str, Any]) -> list[str]:
    """What is wrong with a webhook's payload."""
    name = "-".join(filter(None, (event, payload.get("action")))).replace("_", "-")
    if name not in _description()["webhooks"]:
        return [f"the webhook {name} is missing in prune.py"]
    return [f"the webhook {name}: {fault}" for fault in _found(_judge(f"#/webhooks/{name}"), payload)]


def _found(judge: jsonschema.Draft202012Validator, value: object) -> list[str]:
    errors = (best_match([error]) for error in judge.iter_errors(value))
    found = [f"{error.json_path}: {error.message[:300]}" for error in errors if error is not None]
    return [fault for fault in found if not any(re.search(known, fault) for known in _MISTAKEN)]


@cache
def _request_judge(method: str, template: str) -> jsonschema.Draft202012Validator:
    body = _description()["paths"][template][method.lower()]["requestBody"]
    schema = _strict(body["content"]["application/json"]["schema"])
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


@cache
def _judge(pointer: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"{_ROOT}{pointer}"}, registry=_registry())


@cache
def _registry() -> Registry[Any]:
    whole = Resource.from_contents(_spelled(_description()), default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource(_ROOT, whole)
    return registry


def _spelled(schema: Any) -> Any:
    """OpenAPI 3.0's dialect as JSON Schema: `nullable` spelled out."""
    if isinstance(schema, list):
        return [_spelled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _spelled(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") is True else made


def _strict(schema: Any) -> Any:
    """A request's schema with its references resolved and its objects closed."""
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


def schema(pointer: str) -> dict[str, Any]:
    """The part of the description that a pointer such as `#/components/schemas/issue` leads to."""
    found = _description()
    for word in pointer.removeprefix("#/").split("/"):
        found = found[word.replace("~1", "/").replace("~0", "~")]
    return found
