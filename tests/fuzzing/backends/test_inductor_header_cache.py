"""What inductor's workers share survives any death of theirs; headers here are a few bytes of text."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzzing.backends.inductor.header_cache import HeaderCache

HEADER, TEXT = "abc.h.gch", "abc.h"


class Isa:
    """As inductor's VecISA, which counts how often it is asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked = 0

    def build_arch_flags(self) -> str:
        return "-mavx2"

    def build_macro(self) -> list[str]:
        return ["CPU_CAPABILITY_AVX2"]


def probe(isa: Isa, code: str) -> bool:
    isa.asked += 1
    return isa.answer


def worker(root: Path, name: str) -> HeaderCache:
    return HeaderCache(root / "cache" / "here", root / name)


def make_header(root: Path, name: str, data: bytes = b"compiled") -> None:
    (root / name / TEXT).write_text("#include <all>")
    (root / name / HEADER).write_bytes(data)


def published(tmp_path: Path) -> Path:
    """A folder to which one worker has published its header."""
    first = worker(tmp_path, "first")
    assert not first.link_published()
    make_header(tmp_path, "first")
    assert first.is_new()
    with first.lock():
        first.publish()
    assert not first.is_new()
    return tmp_path / "cache" / "here"


def test_a_header_is_made_once(tmp_path: Path) -> None:
    published(tmp_path)
    second = worker(tmp_path, "second")
    assert second.link_published()
    assert (tmp_path / "second" / HEADER).read_bytes() == b"compiled"
    assert (tmp_path / "second" / TEXT).is_file()
    assert not second.is_new()


def test_a_header_of_another_name_is_published_beside_it(tmp_path: Path) -> None:
    published(tmp_path)
    second = worker(tmp_path, "second")
    second.link_published()
    (tmp_path / "second" / "def.h").write_text("")
    (tmp_path / "second" / "def.h.gch").write_bytes(b"other")
    assert second.is_new()
    second.publish()
    third = worker(tmp_path, "third")
    assert third.link_published()
    assert {path.name for path in (tmp_path / "third").iterdir()} == {HEADER, TEXT, "def.h", "def.h.gch"}


@pytest.mark.parametrize("damage", ["cut short", "gone", "unnamed", "no manifest", "torn manifest"])
def test_what_is_not_whole_is_never_used_and_is_made_anew(tmp_path: Path, damage: str) -> None:
    shared = published(tmp_path)
    if damage == "cut short":
        (shared / HEADER).write_bytes(b"comp")
    elif damage == "gone":
        (shared / HEADER).unlink()
        (shared / TEXT).unlink()
    elif damage == "unnamed":
        (shared / "manifest.json").write_text(json.dumps({"headers": {}, "probes": []}))
    elif damage == "no manifest":
        (shared / "manifest.json").unlink()
    else:
        (shared / "manifest.json").write_text('{"headers": {"abc.h')
    second = worker(tmp_path, "second")
    second.link_published()
    assert not (tmp_path / "second" / HEADER).exists()
    make_header(tmp_path, "second", b"compiled again")
    second.publish()
    third = worker(tmp_path, "third")
    assert third.link_published()
    assert (tmp_path / "third" / HEADER).read_bytes() == b"compiled again"


def test_leftovers_of_the_killed_are_removed(tmp_path: Path) -> None:
    shared = published(tmp_path)
    (shared / "left.h.gch").write_bytes(b"half")
    (shared / "manifest.draft").write_text("{")
    second = worker(tmp_path, "second")
    second.link_published()
    second.publish()
    assert {path.name for path in shared.iterdir()} == {HEADER, TEXT, "manifest.json", "lock"}


KILLED = """
import os, signal, sys
from pathlib import Path
from fuzzing.backends.inductor import header_cache

kept = header_cache.HeaderCache(Path(sys.argv[1], "cache", "here"), Path(sys.argv[1], "doomed"))
Path(sys.argv[1], "doomed", "abc.h").write_text("#include <all>")
Path(sys.argv[1], "doomed", "abc.h.gch").write_bytes(b"compiled")

def half(source, target):
    target.write_bytes(source.read_bytes()[:3])
    os.kill(os.getpid(), signal.SIGKILL)

header_cache._copy = half
with kept.lock():
    kept.publish()
"""


def test_a_kill_in_the_middle_of_publishing_frees_the_lock_and_harms_nobody(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root)
    assert done.returncode == -signal.SIGKILL
    survivor = worker(tmp_path, "survivor")
    assert not survivor.link_published()
    make_header(tmp_path, "survivor")
    with survivor.lock():
        survivor.publish()
    heir = worker(tmp_path, "heir")
    assert heir.link_published()
    assert (tmp_path / "heir" / HEADER).read_bytes() == b"compiled"


def test_a_yes_about_an_instruction_set_is_remembered_by_all(tmp_path: Path) -> None:
    first, second, isa = worker(tmp_path, "first"), worker(tmp_path, "second"), Isa(answer=True)
    assert first.memoize_probe(probe)(isa, "code")
    assert first.memoize_probe(probe)(isa, "code")
    first.publish()
    second.link_published()
    assert second.memoize_probe(probe)(isa, "code")
    assert isa.asked == 1
    assert second.memoize_probe(probe)(isa, "other code")
    assert isa.asked == 2


def test_a_no_is_asked_again(tmp_path: Path) -> None:
    cache, isa = worker(tmp_path, "first"), Isa(answer=False)
    assert not cache.memoize_probe(probe)(isa, "code")
    isa.answer = True
    assert cache.memoize_probe(probe)(isa, "code")


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cache = HeaderCache()
    assert not cache.link_published()
    with cache.lock():
        cache.publish()
    assert not cache.is_new()
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_nothing_is_shared_and_no_case_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = worker(tmp_path, "first")
    make_header(tmp_path, "first")
    (tmp_path / "cache" / "here" / HEADER).mkdir()  # where a file is wanted
    first.publish()
    assert not first.is_new()
    assert "not shared" in capsys.readouterr().err


def test_old_toolchains_are_forgotten(tmp_path: Path) -> None:
    for age, name in enumerate(["newest", "new", "old", "oldest"]):
        cache = HeaderCache(tmp_path / "cache" / name, tmp_path / name)
        cache.publish()
        os.utime(tmp_path / "cache" / name / "manifest.json", (10**9 - age, 10**9 - age))
    last = HeaderCache(tmp_path / "cache" / "last", tmp_path / "last")
    last.publish()
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {"newest", "new", "last"}
