"""The artifact provisioner: wheels of workflows of the GitHub double, and of an address."""

from __future__ import annotations

import io
import os
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bot import toolchains
from bot.commit_files import CommitFiles
from bot.config import RepositoryConfig, ToolchainConfig
from bot.config.sections import ArtifactConfig
from bot.errors import BuildFailedError, BuildPendingError, ConfigError, ProvisionError, RefusalError
from bot.github.github_api import GitHubApi
from bot.github.identity import Credentials
from bot.github.repositories import Repositories
from bot.github.workflow_artifacts import WorkflowArtifacts
from bot.isolation import Isolation
from bot.toolchains import artifact, commit_toolchain
from bot.toolchains.policy import ToolchainPolicy
from fuzzing import backends
from tests.bot.toolchains.test_release_provision import Tiny, use_index
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble
from tests.support.wheels import make_wheel

TARGET, WORKFLOW = "octo/tinyc", "wheels.yml"


@dataclass
class Store:
    """A store of files: path → content, and the headers of each request."""

    files: dict[str, bytes] = field(default_factory=dict)
    seen: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


@dataclass
class Ci:
    """A repository, its CI, and where its files are stored."""

    repository: RepositoryDouble
    store: Store
    source: Repositories
    folder: Path

    def resolve(self, **fields: object) -> toolchains.ToolchainSpec:
        """The toolchain of the head."""
        wanted = ArtifactConfig.model_validate({"workflow": WORKFLOW, **fields})
        chosen = ToolchainConfig(provisioner=["artifact"], artifact=wanted)
        config = RepositoryConfig(version=1, backend="tiny", toolchain=chosen)
        return toolchains.resolve(config, CommitFiles(self.source, TARGET, self.repository.head()))

    def make(self, spec: toolchains.ToolchainSpec) -> toolchains.ReadyToolchain:
        return toolchains.provision(spec, self.folder / "data", lambda _: None)

    def publish(self, archive: bytes, name: str = "linux-wheel", conclusion: str = "success") -> None:
        """A run of the workflow that ends with an artifact."""
        run = self.repository.start_workflow(WORKFLOW, self.repository.head())
        self.repository.end_workflow(run, {name: archive}, conclusion)
        self.store.files |= {f"/{number}.zip": data for (number, _), data in run.artifacts.items()}


@pytest.fixture
def store() -> Iterator[Store]:
    found = Store()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.seen.append(dict(self.headers))
            content = found.files.get(self.path.partition("?")[0])
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture
def ci(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ci]:
    monkeypatch.setattr(backends, "get", lambda _: Tiny)
    monkeypatch.setattr(backends, "compilers", lambda: ("tiny",))
    monkeypatch.setattr(commit_toolchain, "smoke_test", lambda _spec, _python: "")
    (tmp_path / "index").mkdir()
    use_index(tmp_path / "index", tmp_path, monkeypatch)
    with GitHubDouble(tmp_path) as github:
        github.hub.permissions["actions"] = "read"
        github.hub.artifact_store = store.url
        repository = github.repository(TARGET)
        repository.commit({"tinyc.py": "1\n"})
        api = GitHubApi(Credentials(app_id=github.app_id, private_key=github.private_key), github.url)
        source = Repositories(github.git_url, tmp_path / "git", None, WorkflowArtifacts(api))
        yield Ci(repository, store, source, tmp_path)
        api.close()


def archive(folder: Path, version: str = "1.0", package: str = "tinyc") -> bytes:
    """An artifact: an archive with a wheel."""
    wheel = make_wheel(folder, package, version)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as opened:
        opened.write(wheel, f"dist/{wheel.name}")
        opened.writestr("build.log", "words")
    return data.getvalue()


def test_the_wheel_of_a_workflow(ci: Ci) -> None:
    ci.publish(archive(ci.folder))
    ready = ci.make(ci.resolve())
    assert ready.versions["tinyc"] == "1.0"
    assert ready.spec.label == f"tinyc that CI built of {ci.repository.head()[:12]}"
    assert not any("Authorization" in headers for headers in ci.store.seen), "it is another server"
    ci.store.files.clear()
    assert ci.make(ci.resolve()) == ready


def test_a_run_is_waited_for_and_not_for_ever(ci: Ci) -> None:
    other = ci.repository.head()
    run = ci.repository.start_workflow(WORKFLOW, other)
    spec = ci.resolve(wait=600.0)
    with pytest.raises(BuildPendingError, match="has not ended") as caught:
        ci.make(spec)
    assert caught.value.wait_s == artifact.POLL_S
    (awaited,) = (ci.folder / "data" / "toolchains").glob("*.awaited")
    os.utime(awaited, (time.time() - 601,) * 2)
    with pytest.raises(ProvisionError, match="has not ended, after 600 s") as ended:
        ci.make(spec)
    assert not ended.value.transient
    ci.repository.end_workflow(run, {"linux-wheel": archive(ci.folder)})
    ci.store.files |= {f"/{number}.zip": data for (number, _), data in run.artifacts.items()}
    assert ci.make(spec).versions["tinyc"] == "1.0"
    assert not awaited.exists()
    ci.repository.commit({"tinyc.py": "2\n"})
    with pytest.raises(BuildPendingError, match="has no run of"):
        ci.make(ci.resolve())


def test_a_failed_run_is_no_finding_and_a_new_one_counts(ci: Ci) -> None:
    ci.publish(b"log", "log", "failure")
    with pytest.raises(BuildFailedError, match=r"failed without an artifact \*wheel\*; its artifacts: log"):
        ci.make(ci.resolve())
    ci.publish(archive(ci.folder))
    assert ci.make(ci.resolve()).versions["tinyc"] == "1.0"


@pytest.mark.parametrize(
    ("content", "reported"),
    [("other", "it made otherc-1.0"), ("none", "it made no wheel"), ("text", "not a zip file")],
)
def test_an_artifact_that_is_no_wheel(ci: Ci, content: str, reported: str) -> None:
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    data = {"other": archive(ci.folder, package="otherc"), "none": empty.getvalue(), "text": b"text"}[content]
    ci.publish(data)
    with pytest.raises(BuildFailedError, match=reported):
        ci.make(ci.resolve())


def test_size_and_hash_are_checked(ci: Ci, monkeypatch: pytest.MonkeyPatch) -> None:
    ci.publish(archive(ci.folder))
    (name,) = ci.store.files
    whole = ci.store.files[name]
    ci.store.files[name] = whole[:-1] + b"?"
    with pytest.raises(ProvisionError, match="arrived with another hash"):
        ci.make(ci.resolve())
    ci.store.files[name] = whole + bytes(1 << 16)
    monkeypatch.setattr(artifact, "MAX_BYTES", len(whole))
    with pytest.raises(RefusalError, match="is larger than"):
        ci.make(ci.resolve())


def test_the_wheel_of_an_address(ci: Ci) -> None:
    url = f"{ci.store.url}/{{sha}}/tinyc-1.0-py3-none-any.whl"
    spec = ci.resolve(workflow=None, url=url)
    with pytest.raises(BuildPendingError, match="status 404"):
        ci.make(spec)
    place = f"/{ci.repository.head()}/tinyc-1.0-py3-none-any.whl"
    ci.store.files[place] = make_wheel(ci.folder, "tinyc", "1.0").read_bytes()
    assert ci.make(spec).requirements == (f"tinyc @ {ci.store.url}{place}",)
    assert spec.config is not None
    config = RepositoryConfig(version=1, backend="tiny", toolchain=spec.config)
    policy = ToolchainPolicy("none", (), lambda: Isolation("none", {}))
    with pytest.raises(ConfigError, match="ASSAY_TOOLCHAIN_URLS"):
        policy.resolve(config, CommitFiles(ci.source, TARGET, ci.repository.head()))
