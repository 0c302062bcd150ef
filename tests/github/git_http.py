"""Serves clones over HTTP with `git http-backend`; private repositories require a token.

GitHub's documentation, "Authenticating as a GitHub App installation": the user is `x-access-token`, the
password the installation's token.
"""

from __future__ import annotations

import base64
import os
import subprocess
from urllib.parse import urlsplit

from tests.github.calls import Actor, RefusedError
from tests.github.core import GitHubCore
from tests.github.state import Repository

PREFIX = "/git/"
#: CGI variables of http-backend.
_HEADERS = {
    "content-type": "CONTENT_TYPE",
    "content-length": "CONTENT_LENGTH",
    "content-encoding": "HTTP_CONTENT_ENCODING",
    "git-protocol": "GIT_PROTOCOL",
}


def serve(
    hub: GitHubCore, method: str, target: str, headers: dict[str, str], body: bytes
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the response; only reads are served."""
    split = urlsplit(target)
    owner, name, rest = split.path.removeprefix(PREFIX).split("/", 2)
    with hub.lock:
        repository = hub.world.named(f"{owner}/{name.removesuffix('.git')}")
        try:
            actor = hub.identity.actor(_authorization(headers))
        except RefusedError:
            return _unauthorised()
        if repository is None or not _reads(actor, repository):
            return (404, {}, b"Repository not found.") if headers.get("authorization") else _unauthorised()
        folder = repository.git.path
    if "receive-pack" in split.path + split.query:
        return 403, {}, b"The double takes no pushes over HTTP."
    environment = {name: headers[header] for header, name in _HEADERS.items() if header in headers}
    environment |= {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(folder),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "REQUEST_METHOD": method,
        "PATH_INFO": f"/{rest}",
        "QUERY_STRING": split.query,
    }
    done = subprocess.run(
        ["git", "http-backend"], env=environment, input=body, capture_output=True, check=True
    )
    return _answer(done.stdout)


def _answer(output: bytes) -> tuple[int, dict[str, str], bytes]:
    """Parses a CGI response."""
    head, _, body = output.partition(b"\r\n\r\n")
    headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n"))
    status = int(headers.pop("Status", "200").split()[0])
    return status, headers, body


def _authorization(headers: dict[str, str]) -> str:
    kind, _, coded = headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return ""
    return f"token {base64.b64decode(coded).decode().partition(':')[2]}"


def _reads(actor: Actor, repository: Repository) -> bool:
    if not repository.private:
        return True
    if actor.kind == "installation":
        return repository.id in actor.repositories and actor.may(("contents=read",))
    return actor.kind == "user" and repository.role(actor.writer.login) != "none"


def _unauthorised() -> tuple[int, dict[str, str], bytes]:
    return 401, {"WWW-Authenticate": 'Basic realm="GitHub"'}, b"Authentication is required."
