"""The cache of toolchains: what it lists, what garbage collection removes, and what it leaves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from bot.artifacts import Artifacts
from bot.atomic_folders import make_once
from bot.cli import main
from bot.errors import UsageError
from bot.file_lock import file_lock
from bot.settings import load_settings
from bot.store import Database, campaigns, now
from bot.store.models import Campaign, CampaignState, Toolchain
from bot.targets.dependencies import Dependencies, RetentionPolicy
from bot.targets.periodic_tasks import TaskContext, list_tasks
from bot.toolchains import collection, uses
from tests.support import kills

OLD, NEWER, FAILED = "a" * 64, "b" * 64, "c" * 64
_HOLDER = """
import sys
from pathlib import Path
from bot.toolchains.uses import hold
hold(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def add(root: Path, digest: str, *, age_s: float, size: int = 1 << 20, failure: str = "") -> Path:
    """A toolchain, or a failure to make one, that was last used so long ago."""

    def make(folder: Path) -> None:
        (folder / "code").write_bytes(b"x" * size)
        record = {
            "label": f"tinyc {digest[0]}",
            "requirements": ["tinyc==1"],
            "commit": "f" * 40,
            "overlay": ["tinyc"],
        }
        files = {"assay-toolchain.json": json.dumps(record)}
        files |= {"assay-failure.txt": failure} if failure else {}
        for name, text in files.items():
            (folder / name).write_text(text)
            os.utime(folder / name, (time.time() - age_s,) * 2)

    root.mkdir(exist_ok=True)
    make_once(root / digest, lambda _folder: True, make)
    return root / digest


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path))
    place = tmp_path / "toolchains"
    add(place, OLD, age_s=7200)
    add(place, NEWER, age_s=60)
    add(place, FAILED, age_s=600, failure="tinyc: cannot be imported:\nImportError: libadd.so")
    return place


def collected(root: Path, max_bytes: int | None = None, max_age_s: float | None = None) -> list[str]:
    return [one.folder.name[0] for one in collection.collect(root, max_bytes, max_age_s, dry_run=False)]


def left(root: Path) -> list[str]:
    return [one.folder.name[0] for one in collection.toolchains(root)]


def test_the_least_recently_used_go_first(root: Path) -> None:
    assert left(root) == ["b", "c", "a"]
    assert collected(root, max_bytes=5 << 19) == ["a"]
    assert collected(root, max_age_s=300) == ["c"]
    assert left(root) == ["b"]
    assert collected(root, max_bytes=0) == ["b"]
    assert not list(root.glob("*.partial-*"))


def test_what_another_process_uses_stays_until_it_ends(root: Path) -> None:
    command = [sys.executable, "-c", _HOLDER, str(root / OLD)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert collection.find(root, OLD[:8]).held
        assert collected(root, max_bytes=0) == ["b", "c"]
        process.kill()
    assert [one.by for one in uses.uses(root / OLD)] == [f"-c {root / OLD} (process {process.pid})"]
    assert collected(root, max_bytes=0) == ["a"]


def test_a_failure_without_a_record_is_listed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As versions before made them."""
    (root / FAILED / "assay-toolchain.json").unlink()
    assert collection.find(root, FAILED).label == "tinyc: cannot be imported:"
    with pytest.raises(SystemExit):
        main(["toolchains", "why", "cccc"])
    assert "pip install" not in capsys.readouterr().out


def test_a_kill_of_the_collection_leaves_whole_toolchains_or_none(root: Path) -> None:
    """Nor the record of an upload without its toolchain: the next one of this digest is another build."""
    archive = root / f"{OLD}.archive"
    folder = root / OLD

    def remove() -> None:
        assert collected(root, max_age_s=3600) == ["a"]

    def restore() -> None:
        if not folder.exists():
            add(root, OLD, age_s=7200)
        archive.write_text("{}")

    restore()
    total = kills.count_steps(remove)
    for step in range(1, total + 1):
        restore()
        kills.kill_at(step, remove)
        assert not archive.exists() or folder.exists(), step
        assert not folder.exists() or {"code", "assay-toolchain.json"} <= {
            one.name for one in folder.iterdir()
        }
        assert set(left(root)) - {"a"} == {"b", "c"}
        collected(root, max_age_s=3600)
        assert left(root) == ["b", "c"]
        assert not list(root.glob("*.partial-*"))


def test_a_use_names_the_package_that_runs(root: Path) -> None:
    package = root.parent / "tool"
    package.mkdir()
    (package / "__main__.py").write_text(_HOLDER.replace("sys.argv[1]", "sys.argv[2]"))
    command = [sys.executable, "-m", "tool", "run", str(root / OLD)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(Path.cwd()), str(root.parent)))}
    subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert collection.find(root, OLD).uses[-1].by.startswith("python -m tool run (process ")


def test_a_use_is_younger_than_the_making(root: Path) -> None:
    uses.hold(root / OLD)
    uses.hold(root / OLD)
    assert left(root)[0] == "a"
    assert len(uses.uses(root / OLD)) == 1, "one line an hour"


def test_leftovers_of_a_maker_that_died_go(root: Path) -> None:
    (root / f"{OLD}.partial-1-x").mkdir()
    collected(root, max_age_s=1e6)
    assert not list(root.glob("*.partial-*"))
    assert len(left(root)) == 3


def test_what_another_process_removes_meanwhile_is_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed_now(folder: Path) -> AbstractContextManager[bool]:
        if folder.name == OLD:
            shutil.rmtree(folder)
        return uses.unless_held(folder)

    monkeypatch.setattr(collection, "unless_held", removed_now)
    assert left(root) == ["b", "c"]
    add(root, OLD, age_s=7200)
    with pytest.raises(UsageError, match="no toolchain begins with 'aaaa'"):
        collection.find(root, "aaaa")


def test_what_is_being_made_is_not_waited_for(root: Path) -> None:
    partial, tree = root / f"{OLD}.partial-1-x", root / "builds" / "family" / "tree"
    for folder in (partial, tree):
        folder.mkdir(parents=True)
    os.utime(tree, (time.time() - 7200,) * 2)
    with file_lock(root / f"{OLD}.lock"), file_lock(tree.parent / "lock"):
        collecting = threading.Thread(target=collected, args=(root,), kwargs={"max_age_s": 3600}, daemon=True)
        collecting.start()
        collecting.join(60)
        assert not collecting.is_alive()
        assert left(root) == ["b", "c", "a"]
        assert partial.exists()
        assert tree.exists()
    collected(root, max_age_s=3600)
    assert left(root) == ["b", "c"]
    assert not partial.exists()
    assert not tree.exists()


def test_the_record_of_an_upload_goes_with_its_toolchain(root: Path) -> None:
    folder = add(root, "c" * 64, age_s=100)
    record = folder.with_name(f"{folder.name}.archive")
    record.touch()
    assert collected(root, max_age_s=50)
    assert not record.exists()


def test_what_was_removed_is_made_again(root: Path) -> None:
    collected(root, max_bytes=0)
    assert add(root, OLD, age_s=0).is_dir()
    assert left(root) == ["a"]


def test_the_service_collects_by_itself(root: Path, tmp_path: Path) -> None:
    """Hourly, within its limits, and nothing that a campaign runs on."""
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    with database.transaction() as session:
        toolchain = Toolchain(digest=OLD, backend="tvm", provisioner="overlay", label="", python="")
        toolchain.versions, toolchain.requirements, toolchain.created_at = {}, [], now()
        session.add(toolchain)
        session.flush()
        running = CampaignState.RUNNING.value
        campaign = Campaign(target="octo/tvm", head="1" * 40, trigger="push", state=running)
        campaign.created_at = campaign.updated_at = now()
        made, _ = campaigns.create(session, campaign)
        made.head_toolchain = OLD
    dependencies = Dependencies(
        database=database,
        handle_intent=lambda _session, _intent: None,
        start=lambda _session, _intent: None,
        load_config=lambda _target, _commit: None,
        data_dir=tmp_path,
        artifacts=Artifacts("", tmp_path),
        retention_policy=RetentionPolicy(toolchains=timedelta(seconds=30)),
    )
    tree = root / "builds" / "f" / ("1" * 40)
    tree.mkdir(parents=True)
    (tree.parent / "lock").touch()
    os.utime(tree, (0, 0))
    done = next(task for task in list_tasks() if task.name == "toolchains").run(
        TaskContext(dependencies, now())
    )
    assert done.note.startswith("2 toolchains removed"), done.note
    assert left(root) == ["a"]
    assert not tree.exists()


def test_why_names_the_campaigns_that_tested_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = Database(load_settings().database_url)
    database.migrate()
    with database.transaction() as session:
        for digest in (OLD, NEWER):
            row = Toolchain(digest=digest, backend="tvm", provisioner="overlay", label="", python="")
            row.versions, row.requirements, row.created_at = {}, [], now()
            session.add(row)
        session.flush()
        for head, base in ((OLD, NEWER), (NEWER, NEWER)):
            done = Campaign(target="octo/tvm", head=head[:40], base=base[:40], trigger="push", state="done")
            done.created_at = done.updated_at = now()
            made, _ = campaigns.create(session, done)
            made.head_toolchain, made.base_toolchain = head, base
    database.close()
    with pytest.raises(SystemExit):
        main(["toolchains", "why", "aaaa"])
    out = capsys.readouterr().out
    assert "head of campaign 1 of octo/tvm, commit aaaaaaaaaaaa: done" in out
    assert "campaign 2" not in out
    with pytest.raises(SystemExit):
        main(["toolchains", "why", "bbbb", "--json"])
    tested = json.loads(capsys.readouterr().out)["campaigns"]
    sides = [(one["campaign"], one["side"]) for one in tested]
    assert sides == [(2, "head"), (2, "base"), (1, "base")]


def test_the_commands(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["toolchains", *arguments])
        assert ended.value.code == 0
        return capsys.readouterr().out

    listed = run("list").splitlines()
    assert [line.split()[0][0] for line in listed] == ["b", "c", "a"]
    assert listed[0].endswith("  tinyc b, ffffffffffff")
    assert listed[1].endswith("  failed  tinyc c, ffffffffffff")
    assert [one["digest"] for one in json.loads(run("list", "--json"))["toolchains"]] == [NEWER, FAILED, OLD]
    assert "tinyc of commit ffff" in run("why", "aaaa")
    failed = run("why", "cccc")
    assert "ImportError: libadd.so" in failed
    assert re.search(r"^tried .*: pip install tinyc==1\nwith tinyc of commit f{40}$", failed, re.MULTILINE)
    assert run("gc", "--max-age", "1h", "--dry-run").split()[0] == OLD[:16]
    assert json.loads(run("gc", "--max-age", "1h", "--json"))["removed"][0]["digest"] == OLD
    assert left(root) == ["b", "c"]
    with pytest.raises(UsageError, match="no toolchain begins with 'aaaa'"):
        collection.find(root, "aaaa")
