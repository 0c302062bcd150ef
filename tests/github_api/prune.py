"""Cuts GitHub's OpenAPI description down to the operations Assay uses.

    python tests/github_api/prune.py api.github.com.json > tests/github_api/github_api.json

The input is `generated/api.github.com.json` of the npm package @octokit/openapi 23.0.2 (MIT licence,
see LICENSE beside this file). Examples and documentation are dropped, schemas are kept as they are: of
requests, of answers that say yes, and of the payloads of webhooks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

_REPO = "/repos/{owner}/{repo}"

OPERATIONS = {
    "/app": ("get",),
    "/app-manifests/{code}/conversions": ("post",),
    "/app/hook/config": ("get", "patch"),
    "/app/hook/deliveries": ("get",),
    "/app/hook/deliveries/{delivery_id}": ("get",),
    "/app/hook/deliveries/{delivery_id}/attempts": ("post",),
    "/app/installations": ("get",),
    "/app/installations/{installation_id}": ("get",),
    "/app/installations/{installation_id}/access_tokens": ("post",),
    "/installation/repositories": ("get",),
    "/installation/token": ("delete",),
    "/rate_limit": ("get",),
    "/search/issues": ("get",),
    "/user": ("get",),
    "/users/{username}": ("get",),
    _REPO: ("get",),
    f"{_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}": ("get",),
    f"{_REPO}/actions/runs/{{run_id}}/artifacts": ("get",),
    f"{_REPO}/actions/runs/{{run_id}}/cancel": ("post",),
    f"{_REPO}/actions/workflows/{{workflow_id}}/dispatches": ("post",),
    f"{_REPO}/actions/workflows/{{workflow_id}}/runs": ("get",),
    f"{_REPO}/branches": ("get",),
    f"{_REPO}/branches/{{branch}}": ("get",),
    f"{_REPO}/check-runs": ("post",),
    f"{_REPO}/check-runs/{{check_run_id}}": ("get", "patch"),
    f"{_REPO}/check-runs/{{check_run_id}}/annotations": ("get",),
    f"{_REPO}/check-suites/{{check_suite_id}}": ("get",),
    f"{_REPO}/collaborators/{{username}}/permission": ("get",),
    f"{_REPO}/commits": ("get",),
    f"{_REPO}/commits/{{ref}}": ("get",),
    f"{_REPO}/commits/{{ref}}/check-runs": ("get",),
    f"{_REPO}/commits/{{ref}}/check-suites": ("get",),
    f"{_REPO}/commits/{{ref}}/statuses": ("get",),
    f"{_REPO}/commits/{{commit_sha}}/pulls": ("get",),
    f"{_REPO}/compare/{{basehead}}": ("get",),
    f"{_REPO}/contents/{{path}}": ("get", "put"),
    f"{_REPO}/git/commits": ("post",),
    f"{_REPO}/git/commits/{{commit_sha}}": ("get",),
    f"{_REPO}/git/ref/{{ref}}": ("get",),
    f"{_REPO}/git/refs": ("post",),
    f"{_REPO}/git/refs/{{ref}}": ("delete", "patch"),
    f"{_REPO}/git/trees": ("post",),
    f"{_REPO}/installation": ("get",),
    f"{_REPO}/issues": ("get", "post"),
    f"{_REPO}/issues/comments": ("get",),
    f"{_REPO}/issues/comments/{{comment_id}}": ("delete", "get", "patch"),
    f"{_REPO}/issues/comments/{{comment_id}}/reactions": ("get", "post"),
    f"{_REPO}/issues/comments/{{comment_id}}/reactions/{{reaction_id}}": ("delete",),
    f"{_REPO}/issues/{{issue_number}}": ("get", "patch"),
    f"{_REPO}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{_REPO}/issues/{{issue_number}}/labels": ("get", "post", "put"),
    f"{_REPO}/issues/{{issue_number}}/labels/{{name}}": ("delete",),
    f"{_REPO}/issues/{{issue_number}}/reactions": ("get", "post"),
    f"{_REPO}/labels": ("get", "post"),
    f"{_REPO}/labels/{{name}}": ("get", "patch"),
    f"{_REPO}/merge-upstream": ("post",),
    f"{_REPO}/pulls": ("get", "post"),
    f"{_REPO}/pulls/{{pull_number}}": ("get", "patch"),
    f"{_REPO}/pulls/{{pull_number}}/commits": ("get",),
    f"{_REPO}/pulls/{{pull_number}}/files": ("get",),
    f"{_REPO}/statuses/{{sha}}": ("post",),
}
#: Payloads of webhooks: the description's name of each, "event-action".
WEBHOOKS = (
    *(f"check-run-{action}" for action in ("completed", "created", "requested-action", "rerequested")),
    *(f"check-suite-{action}" for action in ("requested", "rerequested")),
    *(f"installation-{action}" for action in ("created", "deleted", "new-permissions-accepted", "suspend")),
    "installation-unsuspend",
    *(f"installation-repositories-{action}" for action in ("added", "removed")),
    *(f"issue-comment-{action}" for action in ("created", "deleted", "edited")),
    *(f"issues-{action}" for action in ("closed", "deleted", "edited", "labeled", "opened", "reopened")),
    *("issues-transferred", "issues-unlabeled", "merge-group-checks-requested", "ping"),
    *(f"pull-request-{action}" for action in ("closed", "converted-to-draft", "edited", "opened")),
    *(f"pull-request-{action}" for action in ("ready-for-review", "reopened", "synchronize")),
    "push",
    *(f"repository-{action}" for action in ("archived", "deleted", "edited", "privatized", "publicized")),
    *(f"repository-{action}" for action in ("renamed", "transferred", "unarchived")),
)
#: What people read, and what no answer of the double is made of.
_DROPPED = {"example", "examples", "description", "summary", "externalDocs", "tags", "x-github", "headers"}


def main(path: str) -> None:
    """Prints the pruned description."""
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    paths = {
        name: {method: _operation(whole["paths"][name][method]) for method in methods}
        for name, methods in OPERATIONS.items()
    }
    webhooks = {name: _payload(whole["x-webhooks"][name]["post"]) for name in WEBHOOKS}
    kept: dict[str, Any] = {
        "openapi": whole["openapi"],
        "info": {
            "title": "GitHub v3 REST API, pruned",
            "version": whole["info"]["version"],
            "license": whole["info"].get("license", {"name": "MIT"}),
        },
        "paths": paths,
        "webhooks": webhooks,
        "components": {},
    }
    wanted = _references(paths) | _references(webhooks)
    while wanted:
        reference = wanted.pop()
        _, _, kind, name = reference.split("/")  # "#/components/KIND/NAME"
        if name in kept["components"].setdefault(kind, {}):
            continue
        part = _bare(whole["components"][kind][name])
        kept["components"][kind][name] = part
        wanted |= _references(part)
    print(_lines(kept))


def _lines(kept: dict[str, Any]) -> str:
    """JSON with a line for each path, payload and schema, so that a newer version is a readable change."""

    def dump(value: Any) -> str:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    def section(named: dict[str, Any], inner: Callable[[Any], str]) -> str:
        return "{\n" + ",\n".join(f"{dump(name)}:{inner(named[name])}" for name in sorted(named)) + "\n}"

    deep: dict[str, Callable[[Any], str]] = {
        "components": lambda kinds: section(kinds, lambda parts: section(parts, dump)),
        "paths": lambda paths: section(paths, dump),
        "webhooks": lambda payloads: section(payloads, dump),
    }
    return "{" + ",\n".join(f"{dump(key)}:{deep.get(key, dump)(kept[key])}" for key in sorted(kept)) + "}"


def _operation(whole: dict[str, Any]) -> dict[str, Any]:
    """An operation with the statuses it answers, and what it answers where it says yes."""
    answers = {
        status: {"content": answer["content"]} if status < "300" and "content" in answer else {}
        for status, answer in whole["responses"].items()
    }
    return dict(_bare(whole)) | {"responses": _bare(answers)}


def _payload(whole: dict[str, Any]) -> Any:
    return _bare(whole["requestBody"]["content"]["application/json"]["schema"])


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
