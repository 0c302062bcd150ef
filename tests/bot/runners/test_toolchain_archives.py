"""Toolchains that go through an object store (moto's S3 server) to a machine with another disk."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.config import RepositoryConfig
from bot.errors import InfrastructureError, RunnerError
from bot.runners.bundle import pack_shard, run_bundle, unpack_shard
from bot.runners.toolchain_archives import KEPT_S, ToolchainArchive, ToolchainArchives, fetch_toolchain
from bot.toolchains import commit_toolchain, provision, resolve
from fuzzing import backends
from tests.bot.bisection.tiny_index import BACKEND, GOOD, make_index
from tests.bot.runners.pool_helpers import add_cases, make_shard
from tests.support import object_store

URL = "s3://reports/assay"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[object_store.Store]:
    with object_store.serving(monkeypatch) as made:
        yield made


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of a machine."""
    folder = tmp_path / "machine"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "assay" / "toolchains"


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The interpreter of a real toolchain: a release of the tiny compiler, installed in `tmp_path`/data."""
    for name, value in make_index(tmp_path, {"1.0": GOOD}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(backends, "compilers", lambda: (BACKEND,))
    monkeypatch.setattr(commit_toolchain, "smoke_test", lambda _spec, _python: "")
    config = RepositoryConfig(version=1, backend=BACKEND)
    spec = resolve(config, {"requirements.txt": b"tinyc==1.0\n"}.get)
    return provision(spec, tmp_path / "data", lambda _: None).python


def test_a_part_runs_on_a_machine_with_another_disk(
    store: object_store.Store, python: str, machine: Path, tmp_path: Path
) -> None:
    archives = ToolchainArchives(URL, tmp_path / "data")
    shard = replace(make_shard(add_cases(tmp_path / "cases", 4, 1)), backend=BACKEND, python=python)
    bundle = pack_shard(shard, archives.publish(python))
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    events = []
    for place in ("first", "second"):
        for batch in run_bundle(bundle, tmp_path / place, threading.Event()):
            events += [json.loads(line) for line in batch]
    ran = sorted(event["outcome"]["verdict"] for event in events if event["event"] == "outcome")
    assert ran == ["pass"] * 6 + ["wrong_result"] * 2
    assert [path.name for path in machine.iterdir() if path.is_dir()] == [
        archive.sha256 for archive in [_sent(bundle)]
    ]


def test_a_toolchain_is_uploaded_once(store: object_store.Store, python: str, tmp_path: Path) -> None:
    archives = ToolchainArchives(URL, tmp_path / "data")
    first = archives.publish(python)
    assert first is not None
    [key] = store.keys()
    made = store.client.head_object(Bucket="reports", Key=key)["LastModified"]
    assert ToolchainArchives(URL, tmp_path / "data").publish(python) == first
    assert store.client.head_object(Bucket="reports", Key=key)["LastModified"] == made
    store.client.delete_object(Bucket="reports", Key=key)  # as a bucket's lifecycle rule does
    assert archives.publish(python) is not None
    assert len(store.keys()) == 1


def test_an_interpreter_elsewhere_is_not_sent(tmp_path: Path) -> None:
    assert ToolchainArchives(URL, tmp_path).publish(sys.executable) is None


def test_what_was_not_uploaded_is_not_unpacked(
    store: object_store.Store, python: str, machine: Path, tmp_path: Path
) -> None:
    archive = ToolchainArchives(URL, tmp_path / "data").publish(python)
    assert archive is not None
    [key] = store.keys()
    store.client.put_object(Bucket="reports", Key=key, Body=b"another")
    with pytest.raises(RunnerError, match="has the SHA-256 "):
        fetch_toolchain(archive)
    assert not (machine / archive.sha256).exists()
    store.client.delete_object(Bucket="reports", Key=key)
    with pytest.raises(
        InfrastructureError, match=r"cannot fetch a toolchain from s3://reports/assay/toolchains"
    ):
        fetch_toolchain(archive)


def test_another_python_is_refused(machine: Path) -> None:
    with pytest.raises(RunnerError, match=r"needs Python 2\.7, and Assay runs on 3\."):
        fetch_toolchain(ToolchainArchive("s3://reports/x", "0" * 64, "2.7"))


def test_what_no_part_uses_goes(
    store: object_store.Store, python: str, machine: Path, tmp_path: Path
) -> None:
    archive = ToolchainArchives(URL, tmp_path / "data").publish(python)
    assert archive is not None
    old = machine / ("0" * 64)
    old.mkdir(parents=True)
    os.utime(old, (0, time.time() - KEPT_S - 60))
    fetch_toolchain(archive)
    assert not old.exists()
    os.utime(machine / archive.sha256, (0, time.time() - KEPT_S - 60))
    assert fetch_toolchain(archive).is_file(), "which a part uses now"


@pytest.mark.parametrize("sent", [[], {"url": "s3://a"}, {"url": "u", "sha256": "../x", "python": "3.11"}])
def test_a_malformed_description_is_no_bundle(sent: object, tmp_path: Path) -> None:
    bundle = io.BytesIO(pack_shard(make_shard(add_cases(tmp_path / "cases", 1))))
    with tarfile.open(fileobj=bundle, mode="a") as archive:
        content = json.dumps(sent).encode()
        member = tarfile.TarInfo("toolchain.json")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    with pytest.raises(RunnerError, match="no bundle of a shard: the description"):
        unpack_shard(bundle.getvalue(), tmp_path / "there")


def _sent(bundle: bytes) -> ToolchainArchive:
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        member = archive.extractfile("toolchain.json")
        assert member is not None
        return ToolchainArchive.from_json(json.loads(member.read()))
