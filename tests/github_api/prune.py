"""Cuts GitHub's OpenAPI description down to the operations Assay uses.

    python tests/github_api/prune.py api.github.com.json > tests/github_api/github_api.json

The input is `generated/api.github.com.json` of the npm package @octokit/openapi 23.0.2 (MIT licence,
see LICENSE beside this file). Examples and documentation are dropped, schemas are kept as they are.
"""

from __future__ import annotations

import json
import sys
from typing import Any

OPERATIONS = {
    "/repos/{owner}/{repo}/issues": ("get", "post"),
    "/repos/{owner}/{repo}/check-runs": ("post",),
    "/repos/{owner}/{repo}/commits/{ref}": ("get",),
    "/repos/{owner}/{repo}/commits/{ref}/check-runs": ("get",),
    "/repos/{owner}/{repo}/installation": ("get",),
    "/app": ("get",),
    "/app/installations/{installation_id}/access_tokens": ("post",),
    "/user": ("get",),
}
#: What a client sends is checked whole; of answers only what the operations' requests refer to is kept.
_DROPPED = {"example", "examples", "description", "summary", "externalDocs", "tags", "x-github", "responses"}


def main(path: str) -> None:
    """Prints the pruned description."""
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    paths = {
        name: {method: _bare(whole["paths"][name][method]) for method in methods}
        for name, methods in OPERATIONS.items()
    }
    kept: dict[str, Any] = {
        "openapi": whole["openapi"],
        "info": {
            "title": "GitHub v3 REST API, pruned",
            "version": whole["info"]["version"],
            "license": whole["info"].get("license", {"name": "MIT"}),
        },
        "paths": paths,
        "components": {},
    }
    wanted = _references(paths)
    while wanted:
        reference = wanted.pop()
        _, _, kind, name = reference.split("/")  # "#/components/KIND/NAME"
        if name in kept["components"].setdefault(kind, {}):
            continue
        part = _bare(whole["components"][kind][name])
        kept["components"][kind][name] = part
        wanted |= _references(part)
    json.dump(kept, sys.stdout, indent=1, sort_keys=True, ensure_ascii=False)
    print()


def _bare(value: Any, inside: str = "") -> Any:
    """`value` without documentation; names of properties are no keywords."""
    if isinstance(value, dict):
        named = inside in ("properties", "schemas", "parameters")
        return {key: _bare(item, key) for key, item in value.items() if named or key not in _DROPPED}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


if __name__ == "__main__":
    main(sys.argv[1])
