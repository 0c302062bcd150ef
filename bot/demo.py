"""The demo: a small repository that pins releases, and a service beside it.

Not used by the service. The repository stands in for a maintainer's and the signed request for GitHub's;
everything else is real.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.errors import InfrastructureError, UsageError
from fuzzing.file_trees import discard_tree

TARGET = "octo-org/vision-app"
BRANCH = "main"
CONFIG_FILE, PIN_FILE = ".github/assay.yml", "requirements.txt"
_MARKER = ".assay-demo"
_START_S = 60.0  # for the service to listen; it takes about one
_STOP_S = 30.0

#: The demo repository's `.github/assay.yml`.
CONFIG = """\
version: 1
backend: openvino
sources: [onnx-node-tests]
budget: 4m
limits:
  memory: 2GiB
  run: 20s
reduction:
  cases: 2
  budget: 1m
toolchain:
  provisioner: release
  pin: requirements.txt
reports:
  mode: dry-run
"""

#: Fixed authors and dates give fixed commit ids.
_IDENTITY = {
    "GIT_AUTHOR_NAME": "Octo",
    "GIT_AUTHOR_EMAIL": "octo@example.org",
    "GIT_COMMITTER_NAME": "Octo",
    "GIT_COMMITTER_EMAIL": "octo@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


@dataclass(frozen=True)
class DemoRepository:
    """The commits of the repository, and the releases they pin."""

    base: str
    head: str
    base_release: str
    head_release: str


def prepare_folder(out: Path) -> Path:
    """Makes the demo's output folder, without an earlier demo's results; returns its data folder.

    Installed releases stay. Raises UsageError for a folder that cannot be written or holds something else.
    """
    data = out / "data"
    try:
        if out.is_dir() and any(out.iterdir()) and not (out / _MARKER).exists():
            raise UsageError(f"--out {out}: is not an earlier demo's; name an empty folder or a new one")
        data.mkdir(parents=True, exist_ok=True)
        (out / _MARKER).touch()
        for path in (*out.iterdir(), *data.iterdir()):
            if path.is_dir():
                if path not in (data, data / "toolchains"):
                    discard_tree(path)
            elif path.name != _MARKER:
                path.unlink()
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written: {error.strerror}") from error
    return data


def make_repository(root: Path, base: str, head: str, config: str = CONFIG) -> DemoRepository:
    """Creates a bare repository below `root` whose two commits pin the releases `base` and `head`."""
    commits = [
        (f"Pin OpenVINO {release}", {CONFIG_FILE: config, PIN_FILE: f"openvino=={release}\n"})
        for release in (base, head)
    ]
    shas = make_commits(root, commits)
    return DemoRepository(shas[0], shas[1], base, head)


def make_commits(root: Path, commits: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Creates a bare repository below `root` from (message, all files) pairs; returns its commit ids."""
    work, bare = root / "work", root / f"{TARGET}.git"
    discard_tree(root)
    work.mkdir(parents=True)
    _git(work, "init", "--quiet", f"--initial-branch={BRANCH}")
    shas = []
    for day, (message, files) in enumerate(commits, start=1):
        _git(work, "rm", "-r", "--quiet", "--ignore-unmatch", ".")
        for name, text in files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)
        _git(work, "add", "--all")
        _git(work, "commit", "--quiet", "--allow-empty", f"--message={message}", day=day)
        shas.append(_git(work, "rev-parse", "HEAD").strip())
    bare.parent.mkdir(parents=True)
    _git(root, "clone", "--quiet", "--bare", str(work), str(bare))
    return shas


def _git(folder: Path, *args: str, day: int = 1) -> str:
    date = f"2026-01-{day:02}T00:00:00Z"
    env = {"PATH": os.environ["PATH"], "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} | _IDENTITY
    try:
        done = subprocess.run(["git", *args], cwd=folder, env=env, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise InfrastructureError("git is not installed; install it and run the demo again") from None
    except subprocess.CalledProcessError as error:
        raise InfrastructureError(f"git {args[0]} failed: {error.stderr.strip()}") from error
    return done.stdout


@dataclass(frozen=True)
class RunningService:
    """A service process, its address, and its webhook secret."""

    process: subprocess.Popen[str]
    url: str
    secret: str


@contextmanager
def service(data_dir: Path, repositories: Path, log: Path, **variables: str) -> Iterator[RunningService]:
    """Runs `assay serve` with embedded defaults and GitHub in dry-run mode, on a free port.

    `variables` are added to its environment; its log is appended to `log`.
    """
    secret = secrets.token_hex(16)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    env = kept | {
        "ASSAY_DATA_DIR": str(data_dir),
        "ASSAY_GIT_URL": repositories.resolve().as_uri(),
        "ASSAY_WEBHOOK_SECRET": secret,
        "ASSAY_LOG_FORMAT": "json",
        **variables,
    }
    command = [sys.executable, "-P", "-m", "bot.cli", "serve", "--host", "127.0.0.1", "--port", "0"]
    with (
        open(log, "a") as file,
        subprocess.Popen(
            command, env=env, cwd=data_dir, stdout=subprocess.PIPE, stderr=file, text=True
        ) as process,
    ):
        try:
            yield RunningService(process, _address(process, log), secret)
        finally:
            _stop(process)


def _address(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()  # the URL, or end of output
    found = re.search(r"http://\S+?:\d+", line)
    if found is None:
        process.wait(_START_S)
        reason = log.read_text().strip().splitlines()[-3:]
        raise InfrastructureError(f"the service did not start; the end of {log}:\n" + "\n".join(reason))
    return found[0]


def _stop(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        process.stdout.close()


def deliver(running: RunningService, stage: DemoRepository, delivery: str = "") -> str:
    """Delivers a signed `push` as GitHub would; returns the delivery's id, by default a new one."""
    body = json.dumps(_payload(stage)).encode()
    delivery = delivery or str(uuid.uuid4())
    signature = hmac.new(running.secret.encode(), body, hashlib.sha256).hexdigest()
    request = urllib.request.Request(  # noqa: S310 - our own service
        f"{running.url}/webhooks/github",
        data=body,
        headers={
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/demo",
            "X-GitHub-Event": "push",
            "X-GitHub-Delivery": delivery,
            "X-Hub-Signature-256": f"sha256={signature}",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        if answer.status != 202:
            raise InfrastructureError(f"the service answered {answer.status} to the delivery")
    return delivery


def _payload(stage: DemoRepository) -> dict[str, Any]:
    """A push payload with the fields that GitHub's documentation requires (webhook `push`)."""
    owner, name = TARGET.split("/")
    person = {"name": "Octo", "email": "octo@example.org", "username": "octo"}
    commit = {
        "id": stage.head,
        "tree_id": stage.head,
        "distinct": True,
        "message": f"Pin OpenVINO {stage.head_release}",
        "timestamp": "2026-01-02T00:00:00Z",
        "url": f"https://github.com/{TARGET}/commit/{stage.head}",
        "author": person,
        "committer": person,
        "added": [],
        "removed": [],
        "modified": ["requirements.txt"],
    }
    return {
        "ref": f"refs/heads/{BRANCH}",
        "before": stage.base,
        "after": stage.head,
        "base_ref": None,
        "created": False,
        "deleted": False,
        "forced": False,
        "compare": f"https://github.com/{TARGET}/compare/{stage.base[:12]}...{stage.head[:12]}",
        "commits": [commit],
        "head_commit": commit,
        "pusher": person,
        "repository": {
            "id": 1,
            "name": name,
            "full_name": TARGET,
            "private": False,
            "owner": {"login": owner, "id": 1},
            "default_branch": BRANCH,
            "html_url": f"https://github.com/{TARGET}",
        },
        "sender": {"login": "octo", "id": 1, "type": "User"},
    }
