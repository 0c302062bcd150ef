"""Packs: what was kept is there again, or nothing is, whatever happened to the file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.execute import record_file
from fuzzing.execute.record_file import RecordFile

NAMES = st.text("abcdef0123456789", min_size=1, max_size=70)
RECORDS = st.lists(st.tuples(NAMES, st.binary(max_size=200)), max_size=12)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "pack")


@given(RECORDS)
def test_the_last_record_of_a_name_is_found_at_once_and_later(records: list[tuple[str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = RecordFile(f"{folder}/pack")
        for name, data in records:
            kept.put(name, data)
        for found in (kept, RecordFile(f"{folder}/pack")):
            assert {name: found.get(name) for name, _ in records} == dict(records)
            assert found.get("another") is None


@given(RECORDS, st.data())
def test_of_a_damaged_file_nothing_wrong_is_read(
    records: list[tuple[str, bytes]], draw: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pack")
        path.touch()
        for name, data in records:
            RecordFile(str(path)).put(name, data)
        whole = path.read_bytes()
        begin = draw.draw(st.integers(0, len(whole)))
        end = draw.draw(st.integers(begin, len(whole)))
        path.write_bytes(whole[:begin] + draw.draw(st.binary(max_size=50)) + whole[end:])
        allowed = {(name, data) for name, data in records}
        found = RecordFile(str(path))
        for name, _ in records:
            kept = found.get(name)
            assert kept is None or (name, kept) in allowed
        found.put("new", b"of today")
        assert found.get("new") == b"of today"


def test_what_a_killed_writer_left_hides_none_of_the_records_behind_it_for_long(path: str) -> None:
    RecordFile(path).put("first", b"1" * 100)
    size = Path(path).stat().st_size
    RecordFile(path).put("torn", b"2" * 100)
    os.truncate(path, size + 60)
    for name in ("third", "fourth", "fifth"):
        RecordFile(path).put(name, name.encode())
    found = RecordFile(path)
    assert (found.get("first"), found.get("torn"), found.get("fifth")) == (b"1" * 100, None, b"fifth")
    names = ("torn", "third", "fourth")
    for name in names:  # as whoever misses them does
        found.put(name, name.encode())
    assert [RecordFile(path).get(name) for name in names] == [name.encode() for name in names]


def test_a_file_that_begins_with_something_else_is_used_behind_it(path: str) -> None:
    Path(path).write_bytes(bytes(200_000))
    RecordFile(path).put("name", b"data")
    assert RecordFile(path).get("name") == b"data"


def test_several_processes_add_to_one_pack(path: str) -> None:
    script = (
        "import sys\nfrom fuzzing.execute.record_file import RecordFile\n"
        "kept = RecordFile(sys.argv[1])\n"
        "for number in range(200):\n    kept.put(f'{sys.argv[2]}{number}', sys.argv[2].encode() * number)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, path, name]) for name in ("a", "b", "c")]
    assert [writer.wait(600) for writer in writers] == [0, 0, 0]
    found = RecordFile(path)
    for name in ("a", "b", "c"):
        assert [found.get(f"{name}{number}") for number in range(200)] == [
            name.encode() * number for number in range(200)
        ]


def test_what_is_too_large_is_not_kept(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "MAX_DATA", 10)
    kept = RecordFile(path)
    kept.put("large", bytes(11))
    kept.put("small", bytes(10))
    assert (kept.get("large"), kept.get("small")) == (None, bytes(10))


@pytest.mark.parametrize("thing", ["folder", "pipe", "link", "nowhere"])
def test_where_no_file_can_be_there_is_none(path: str, thing: str) -> None:
    if thing == "folder":
        Path(path).mkdir()
    elif thing == "pipe":
        os.mkfifo(path)  # to open it would wait for a writer
    elif thing == "link":
        Path(path).symlink_to("elsewhere")
    else:
        path = f"{path}/in/no/folder"
    kept = RecordFile(path)
    kept.put("name", b"data")
    assert kept.get("name") is None
    assert not Path(path).parent.joinpath("elsewhere").exists()


def test_a_file_that_is_cut_while_it_is_open_loses_records_and_no_more(path: str) -> None:
    kept = RecordFile(path)
    kept.put("name", bytes(100))
    os.truncate(path, 50)
    assert kept.get("name") is None
