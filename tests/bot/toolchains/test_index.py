"""The index provisioner on a simple index served here, in HTML (PEP 503) and in JSON (PEP 691, PEP 700)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from packaging.version import Version

from bot import toolchains
from bot.cli.setup.toolchains import command
from bot.commit_files import Ancestor, CommitFiles
from bot.config import RepositoryConfig, ToolchainConfig
from bot.errors import ConfigError
from bot.github.local_repository import LocalRepository
from bot.toolchains import commit_toolchain
from bot.toolchains.index import last_before
from bot.toolchains.installer import IndexUnreachableError
from bot.toolchains.simple_index import IndexedWheel, list_wheels
from fuzzing import backends
from tests.bot.toolchains.test_overlay import commit, git
from tests.bot.toolchains.test_release_provision import Tiny
from tests.support.wheels import make_wheel

DAY = datetime(2026, 11, 20, tzinfo=UTC)
NIGHTLIES = ("3.0.dev20261118", "3.0.dev20261119", "3.0.dev20261120", "3.0.dev20261121")


class SimpleIndex:
    """An index of the wheels in a folder.

    as_json   whether it also speaks JSON, with the times in `uploaded`
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.as_json, self.yanked = folder, False, set[str]()
        self.uploaded: dict[str, datetime] = {}
        handler = type("Handler", (_Handler,), {"index": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"

    def wheels(self, package: str) -> list[str]:
        return sorted(path.name for path in self.folder.glob(f"{package}-*.whl"))


class _Handler(SimpleHTTPRequestHandler):
    index: SimpleIndex

    def do_GET(self) -> None:
        _, _, rest = self.path.partition("/simple/")
        if not rest:
            self.send(*self.file())
        elif names := self.index.wheels(rest.strip("/")):
            json_wanted = "application/vnd.pypi.simple.v1+json" in self.headers["Accept"]
            self.send(*(self.json_page(names) if json_wanted and self.index.as_json else self.page(names)))
        else:
            self.send_error(404)

    def page(self, names: list[str]) -> tuple[str, bytes]:
        yanked = {name: ' data-yanked="broken"' * (name in self.index.yanked) for name in names}
        links = "".join(f'<a href="/files/{name}"{yanked[name]}>{name}</a><br/>' for name in names)
        return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()

    def json_page(self, names: list[str]) -> tuple[str, bytes]:
        files: list[dict[str, Any]] = [
            {"filename": name, "url": f"/files/{name}", "hashes": {}, "yanked": name in self.index.yanked}
            for name in names
        ]
        for one in files:
            if at := self.index.uploaded.get(one["filename"]):
                one["upload-time"] = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        page = {"meta": {"api-version": "1.1"}, "name": "tinyc", "files": files}
        return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()

    def file(self) -> tuple[str, bytes]:
        return "application/zip", (self.index.folder / Path(self.path).name).read_bytes()

    def send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleIndex]:
    """An index of nightly wheels, the only one there is."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in NIGHTLIES:
        make_wheel(folder, "tinyc", version)
    index = SimpleIndex(folder)
    threading.Thread(target=index.server.serve_forever, daemon=True).start()
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setattr(backends, "get", lambda _: Tiny)
    monkeypatch.setattr(backends, "compilers", lambda: ("tiny",))
    monkeypatch.setattr(commit_toolchain, "smoke_test", lambda _spec, _python: "")
    yield index
    index.server.shutdown()
    index.server.server_close()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet")
    monkeypatch.setenv("GIT_COMMITTER_DATE", (DAY + timedelta(hours=12)).isoformat())
    commit(folder, {"tinyc.py": "NAME = 1\n"})
    return folder


def resolve(index: SimpleIndex, checkout: Path, tmp_path: Path) -> toolchains.ToolchainSpec:
    wanted = ToolchainConfig(provisioner=["index"], index=index.url)
    config = RepositoryConfig(version=1, backend="tiny", toolchain=wanted)
    sha = git(checkout, "rev-parse", "HEAD")
    files = CommitFiles(LocalRepository(checkout, tmp_path / "objects"), "", sha)
    return toolchains.resolve(config, files, tmp_path / "data")


def test_the_last_nightly_before_the_commit(index: SimpleIndex, checkout: Path, tmp_path: Path) -> None:
    spec = resolve(index, checkout, tmp_path)
    assert spec.label == "tinyc 3.0.dev20261119", "that of the 20th may hold more than the commit"
    ready = toolchains.provision(spec, tmp_path / "data", lambda _: None)
    assert ready.versions["tinyc"] == "3.0.dev20261119"
    assert ready.requirements == (f"--extra-index-url={index.url}", "tinyc==3.0.dev20261119")
    steps: list[str] = []
    assert toolchains.provision(spec, tmp_path / "data", steps.append).digest == ready.digest
    assert steps == [f"{spec.label}: made before"]


@pytest.mark.parametrize("as_json", [False, True])
def test_yanked_and_foreign_wheels_do_not_count(index: SimpleIndex, as_json: bool) -> None:
    index.as_json = as_json
    index.yanked = {"tinyc-3.0.dev20261119-py3-none-any.whl"}
    (index.folder / "tinyc-3.0.dev20261119-cp27-cp27m-win32.whl").write_bytes(b"")
    (index.folder / "tinyc-nonsense.whl").write_bytes(b"")
    found = [str(one.version) for one in list_wheels(index.url, "tinyc", "3.11.7")]
    assert found == ["3.0.dev20261118", "3.0.dev20261120", "3.0.dev20261121"]


def test_the_upload_counts_where_the_index_tells_it(
    index: SimpleIndex, checkout: Path, tmp_path: Path
) -> None:
    index.as_json = True
    index.uploaded = {f"tinyc-{NIGHTLIES[2]}-py3-none-any.whl": DAY + timedelta(hours=3)}
    assert resolve(index, checkout, tmp_path).label == f"tinyc {NIGHTLIES[2]}"


def test_the_highest_version_counts_of_those_from_before() -> None:
    history = [Ancestor("a" * 40, DAY.timestamp())]
    uploaded = {"1.25.0.dev20260417008": 9, "1.25.1": 8, "1.24.4": 10, "1.26.0.dev20270101": 11}
    wheels = [IndexedWheel("", Version(one), DAY.timestamp() - 10 + at) for one, at in uploaded.items()]
    version, why = last_before(wheels, history)
    assert str(version) == "1.25.1", "neither an old nightly nor a patch that was uploaded later"
    assert why == "it is of 2026-11-19 23:59 or before, the commit of 2026-11-20 00:00"


def test_it_is_known_why_a_wheel_was_taken(
    index: SimpleIndex, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path / "data"))
    spec = resolve(index, checkout, tmp_path)
    toolchains.provision(spec, tmp_path / "data", lambda _: None)
    done = CliRunner().invoke(command, ["why", spec.digest[:16]])
    assert done.exit_code == 0, done.output
    sha = git(checkout, "rev-parse", "HEAD")
    assert f"for commit {sha}\n" in done.output
    assert (
        f"the last wheel of {index.url} that holds no more than {sha[:12]}: it is of 2026-11-20 00:00 or "
        "before, the commit of 2026-11-20 12:00\n"
    ) in done.output


def test_commits_between_two_wheels_are_not_thereby_equal(
    index: SimpleIndex, checkout: Path, tmp_path: Path
) -> None:
    base = resolve(index, checkout, tmp_path)
    commit(checkout, {"tinyc.py": "NAME = 2\n"})
    head = resolve(index, checkout, tmp_path)
    assert head == base
    assert head.predates == (
        "tinyc 3.0.dev20261119 is the last wheel from before base, and from before head as well"
    )


def test_a_commit_in_the_version_goes_before_the_date() -> None:
    history = [Ancestor(digit * 40, DAY.timestamp()) for digit in "cba"]

    def last(*versions: str) -> str:
        return str(last_before([IndexedWheel("", Version(one), 0.0) for one in versions], history)[0])

    named = ("1.1.dev1+gaaaaaaa", "1.1.dev2+gitbbbbbbb", "1.1.dev3+gddddddd")
    assert last("1.0", *named) == "1.1.dev2+gitbbbbbbb"
    assert last("1.0", "1.1.dev3+gddddddd") == "1.0", "the date of a wheel of another line tells nothing"
    with pytest.raises(ConfigError, match="1 name other commits"):
        last("1.1.dev3+gddddddd")


def test_an_index_without_it(index: SimpleIndex, checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no nothing"):
        list_wheels(index.url, "nothing", "3.11.7")
    for version in NIGHTLIES[:2]:
        (index.folder / f"tinyc-{version}-py3-none-any.whl").unlink()
    with pytest.raises(ConfigError, match="2 are newer"):
        resolve(index, checkout, tmp_path)
    with pytest.raises(IndexUnreachableError):
        list_wheels("http://127.0.0.1:9/simple", "tinyc", "3.11.7")
