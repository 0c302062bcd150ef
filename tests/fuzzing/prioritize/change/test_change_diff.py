"""Reading changes and histories that strangers wrote: limits, malformed input, lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.errors import UsageError
from fuzzing.prioritize.change import Change, FileChange, Hunk, diff, read
from fuzzing.prioritize.change.history import History

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["files", "path", "old", "new", "hunks", "old_path"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def test_a_change_is_read(tmp_path: Path) -> None:
    reported = {
        "base": "a" * 40,
        "head": "b" * 40,
        "truncated": True,
        "files": [
            {
                "path": "f.py",
                "old_path": "g.py",
                "old": "a\n",
                "new": "b\n",
                "hunks": [[1, 1, 1, 1]],
                "binary": False,
            },
            {"path": "x.bin", "old_path": None, "old": None, "new": None, "hunks": [], "binary": True},
        ],
    }
    (tmp_path / "change.json").write_text(json.dumps(reported))
    change = read(tmp_path / "change.json")
    assert change.truncated
    assert change.base == "a" * 40
    assert change.files[0] == FileChange("f.py", "g.py", "a\n", "b\n", (Hunk(1, 1, 1, 1),))
    assert change.files[1].binary


@pytest.mark.parametrize(
    "reported",
    [
        None,
        {},
        {"files": 3},
        {"files": [{}]},
        {"files": [{"path": "a", "hunks": [[1, 2, 3]]}]},
        {"files": [{"path": "a", "hunks": [[1, 2, 3, -1]]}]},
        {"files": [{"path": "a", "hunks": [[1, 2, 3, 10**30]]}]},
        {"files": [{"path": "a", "hunks": "abcd"}]},
    ],
)
def test_what_is_no_change_is_refused(reported: Any) -> None:
    with pytest.raises(UsageError, match="no change"):
        Change.from_json(reported)


@given(JSON)
def test_any_json_is_a_change_or_refused(reported: Any) -> None:
    try:
        change = Change.from_json(reported)
    except UsageError:
        return
    for file in change.files:
        file.changed()


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    for name in ("none.json", "deep.json"):
        with pytest.raises(UsageError, match="cannot read the change"):
            read(tmp_path / name)


def test_what_is_too_large_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "MAX_FILES", 2)
    monkeypatch.setattr(diff, "MAX_TEXT", 10)
    files = [{"path": f"{n}.py", "new": "x" * n} for n in (5, 11, 7)]
    change = Change.from_json({"files": files})
    assert [file.new for file in change.files] == ["xxxxx", None]
    assert change.truncated


def test_the_lines_that_differ_are_told_without_context() -> None:
    old = "a\nb\nc\nd\ne\nf"
    new = "a\nB\nc\nd\nnew\ne\nf"
    assert lines(FileChange("f", None, old, new, (Hunk(1, 6, 1, 7),))) == ([2], [2, 5])
    assert lines(FileChange("f", None, old, new)) == ([2], [2, 5])
    assert lines(FileChange("f", None, old, None)) == ([1, 2, 3, 4, 5, 6], [])
    assert lines(FileChange("f", None, None, None, (Hunk(3, 1, 3, 2),))) == ([3], [3, 4])
    assert lines(FileChange("f", None, old, new, (Hunk(2, 1, 2, 1),))) == ([2], [2])


def lines(file: FileChange) -> tuple[list[int], list[int]]:
    gone, come = file.changed()
    return sorted(gone), sorted(come)


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_what_is_left_of_both_sides_is_the_same(old: list[str], new: list[str]) -> None:
    gone, come = FileChange("f", None, "\n".join(old), "\n".join(new)).changed()
    before = "\n".join(old).split("\n")
    after = "\n".join(new).split("\n")
    kept = [text for line, text in enumerate(before, 1) if line not in gone]
    assert kept == [text for line, text in enumerate(after, 1) if line not in come]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"id": "a"}',
        '{"id": "a", "operator": "b", "runs": -1, "findings": 0, "last_finding_days": null, "seconds": 1}',
        '{"id": "a", "operator": "b", "runs": 1, "findings": NaN, "last_finding_days": null, "seconds": 1}',
        '{"id": "a", "operator": "b", "runs": 1, "findings": 0, "last_finding_days": "x", "seconds": 1}',
    ],
)
def test_what_is_no_history_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="line 1 of the history"):
        History.from_lines([line])
