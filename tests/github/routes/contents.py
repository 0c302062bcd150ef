"""Routes of files."""

from __future__ import annotations

import base64
from typing import Any

from tests.github import views
from tests.github.calls import Call, RefusedError, RouteResponse, not_found, route
from tests.github.pushes import pushed
from tests.github.routes.commits import resolved
from tests.github.schema_completion import complete

_PATH = "/repos/{owner}/{repo}/contents/{path}"


@route("GET", _PATH, "contents=read")
def read(call: Call) -> RouteResponse:
    """A file at a branch or commit."""
    git, path = call.repository.git, call.parameters["path"]
    sha = resolved(call, call.query.get("ref") or call.repository.default_branch, 404)
    data = git.read(sha, path)
    if data is None:
        raise not_found()
    encoded = base64.encodebytes(data).decode()
    shown = _file(call, path, git.blob(sha, path)) | {"encoding": "base64", "content": encoded}
    return RouteResponse(200, complete("content-file", shown | {"size": len(data)}))


@route("PUT", _PATH, "contents=write")
def write(call: Call) -> RouteResponse:
    """Commits one file; `sha` must be that of the replaced file."""
    repo, path, body = call.repository, call.parameters["path"], call.body
    branch = body.get("branch", repo.default_branch)
    before = repo.git.head(branch)
    if not before:
        raise RefusedError(404, f"Branch {branch} not found")
    known = repo.git.blob(before, path) if repo.git.read(before, path) is not None else None
    if known != body.get("sha"):
        raise RefusedError(
            409 if body.get("sha") else 422, f'"sha" wasn\'t supplied or {path} does not match'
        )
    text = base64.b64decode(body["content"]).decode()
    after = repo.git.commit({path: text}, branch, body["message"], call.actor.writer.login)
    pushed(call.hub, repo, branch, before, call.actor.writer)
    shown = {
        "content": _file(call, path, repo.git.blob(after, path)),
        "commit": views.commit(call.hub, repo, repo.git.describe(after))["commit"] | {"sha": after},
    }
    return RouteResponse(200 if known else 201, complete("file-commit", shown))


def _file(call: Call, path: str, blob: str) -> dict[str, Any]:
    url = f"{call.hub.url}/repos/{call.repository.full_name}"
    return {
        "type": "file",
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": blob,
        "size": 0,
        "url": f"{url}/contents/{path}",
        "git_url": f"{url}/git/blobs/{blob}",
        "html_url": f"{views.WEB}/{call.repository.full_name}/blob/{path}",
        "download_url": f"{views.WEB}/{call.repository.full_name}/raw/{path}",
    }
