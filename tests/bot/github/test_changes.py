"""Changes between commits of real repositories, within limits."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import UsageError
from bot.github import changes
from bot.github.changes import read_local_change, resolve_range
from bot.github.diffs import parse_unified_diff
from fuzzing.prioritize.change.diff import Change
from fuzzing.prioritize.change.touched import find_touched_operators
from tests.bot.github.test_repositories import Upstream

SOME = ["a", "b", "c", "", "@@ -1 +1 @@", "--- a/x", "diff --git a b"]
LINES = st.lists(st.sampled_from(SOME), max_size=12)


def change(upstream: Upstream, base: str, head: str) -> dict[str, dict[str, Any]]:
    """Path → what is told of it."""
    return {file["path"]: file for file in read_local_change(upstream.folder, base, head)["files"]}


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "code")


def test_a_file_that_was_moved_as_it_was(upstream: Upstream) -> None:
    base = upstream.commit(src__resize_cc="code\n")
    (upstream.folder / "op").mkdir()
    upstream.git("mv", "src/resize.cc", "op/resize.cc")
    [file] = change(upstream, base, upstream.commit()).values()
    assert (file["path"], file["old_path"]) == ("op/resize.cc", "src/resize.cc")
    assert (file["old"], file["new"], file["hunks"]) == ("code\n", "code\n", [])


def test_names_as_git_would_quote_them(upstream: Upstream) -> None:
    base = upstream.commit()
    names = ["ü b.py", "a\tb.py", 'quo"te.py', "a*.py", "-x.py", "d/..e.py"]
    (upstream.folder / "d").mkdir()
    for name in names:
        (upstream.folder / name).write_text("1\n")
    middle = upstream.commit()
    for name in names:
        (upstream.folder / name).write_text("1\n2\n")
    found = change(upstream, middle, upstream.commit())
    assert found.keys() == set(names)
    assert all(file["hunks"] == [[1, 0, 2, 1]] for file in found.values())
    assert change(upstream, base, middle).keys() == set(names)


def test_what_is_no_file_and_what_is_no_text(upstream: Upstream) -> None:
    base = upstream.commit()
    (upstream.folder / "link").symlink_to("/etc/passwd")
    (upstream.folder / "data.bin").write_bytes(b"a\0b")
    (upstream.folder / "latin.py").write_bytes(b"# \xfc\n")
    found = change(upstream, base, upstream.commit())
    assert found.keys() == {"data.bin", "latin.py"}
    data = found["data.bin"]
    assert (data["binary"], data["new"], data["hunks"]) == (True, None, [])
    assert found["latin.py"]["new"] == "# \ufffd\n"


def test_too_many_files_leave_the_sources(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_FILES", 2)
    base = upstream.commit()
    head = upstream.commit(a_md="1\n", b_json="1\n", c_py="1\n", z_cc="1\n")
    reported = read_local_change(upstream.folder, base, head)
    assert [file["path"] for file in reported["files"]] == ["c.py", "z.cc"]
    assert reported["truncated"] is True


def test_too_many_bytes_leave_the_names(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_FILE_BYTES", 6)
    monkeypatch.setattr(changes, "MAX_BYTES", 12)
    base = upstream.commit()
    head = upstream.commit(a_md="12345\n", b_py="123456\n", c_py="1234\n", d_py="5678\n")
    reported = read_local_change(upstream.folder, base, head)
    assert {file["path"]: file["new"] for file in reported["files"]} == {
        "a.md": None,
        "b.py": None,
        "c.py": "1234\n",
        "d.py": "5678\n",
    }
    assert reported["truncated"] is True


def test_a_range_of_a_repository(upstream: Upstream) -> None:
    base, head = upstream.commit(a_py="1\n"), upstream.commit(a_py="2\n")
    assert resolve_range(upstream.folder, "HEAD~1..HEAD") == (base, head)
    assert resolve_range(upstream.folder, f"{base[:8]}..trunk") == (base, head)


@pytest.mark.parametrize("text", ["HEAD", "..HEAD", "HEAD..", "HEAD...HEAD~1", "nope..HEAD", "--help..HEAD"])
def test_no_ranges(text: str, upstream: Upstream) -> None:
    upstream.commit()
    with pytest.raises(UsageError, match=r"BASE\.\.HEAD|has no commit"):
        resolve_range(upstream.folder, text)


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no commit HEAD"):
        resolve_range(tmp_path, "HEAD..HEAD")


def diff(folder: Path, old: list[str], new: list[str], context: int) -> str:
    for name, lines in (("old", old), ("new", new)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "op.py").write_text("".join(f"{line}\n" for line in lines))
    command = ["git", "diff", "--no-index", f"-U{context}", "old/op.py", "new/op.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@settings(max_examples=60, deadline=None)
@given(old=LINES, new=LINES)
def test_a_diff_tells_the_same_lines_with_any_context(
    old: list[str], new: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Hunks are those of `git diff -U0`, and the text has every line that they touch at its number."""
    if old == new:
        return
    folder = tmp_path_factory.getbasetemp()
    tight = parse_unified_diff(diff(folder, old, new, 0))["files"][0]
    wide = parse_unified_diff(diff(folder, old, new, 3))["files"][0]
    gone = {at for start, count, _, _ in wide["hunks"] for at in range(start, start + count)}
    come = {at for _, _, start, count in wide["hunks"] for at in range(start, start + count)}
    for side, touched, lines in (("old", gone, old), ("new", come, new)):
        shown = (wide[side] or "").split("\n")
        assert all(shown[at - 1] == lines[at - 1] for at in touched)
    kept_old = [line for at, line in enumerate(old, 1) if at not in gone]
    kept_new = [line for at, line in enumerate(new, 1) if at not in come]
    assert kept_old == kept_new, "what is not touched is the same on both sides"
    assert tight["hunks"] == wide["hunks"]


GIT = """\
commit 1234
diff --git a/src/op/resize.cpp b/src/op/resize.cpp
index 1..2 100644
--- a/src/op/resize.cpp
+++ b/src/op/resize.cpp
@@ -40,3 +40,4 @@ namespace ov {
 keep
-old line
+new line
+another
 keep too
diff --git a/old.py b/new.py
similarity index 100%
rename from old.py
rename to new.py
diff --git a/lib dir/lib.so b/lib dir/lib.so
Binary files a/lib dir/lib.so and b/lib dir/lib.so differ
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1,2 +0,0 @@
-one
-two
\\ No newline at end of file
"""


def test_what_git_prints() -> None:
    reported = parse_unified_diff(GIT)
    resize, moved, binary, gone = reported["files"]
    assert (resize["path"], resize["old_path"]) == ("src/op/resize.cpp", None)
    assert resize["hunks"] == [[41, 1, 41, 2]]
    assert resize["new"].split("\n")[39:43] == ["keep", "new line", "another", "keep too"]
    assert resize["new"].split("\n")[:39] == [*[""] * 38, "namespace ov {"]
    assert (moved["path"], moved["old_path"], moved["hunks"]) == ("new.py", "old.py", [])
    assert (moved["old"], moved["new"]) == (None, None)
    assert (binary["path"], binary["old_path"], binary["binary"]) == ("lib dir/lib.so", None, True)
    assert (gone["path"], gone["old"], gone["new"]) == ("gone.py", "one\ntwo\n", None)
    assert gone["hunks"] == [[1, 2, 0, 0]]


def test_a_plain_diff_of_two_files() -> None:
    text = "--- op.py\t2026-01-01\n+++ op.py\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n"
    text += "--- b.py\n+++ b.py\n@@ -0,0 +1 @@\n+c\n"
    first, second = parse_unified_diff(text)["files"]
    assert (first["path"], first["hunks"]) == ("op.py", [[1, 1, 1, 1]])
    assert (second["path"], second["hunks"]) == ("b.py", [[0, 0, 1, 1]])


@pytest.mark.parametrize(
    ("text", "helps"),
    [
        ("", "git diff BASE HEAD"),
        ("hello\n", "git diff BASE HEAD"),
        ("--- a\n+++ a\n@@ -1,3 +1,3 @@\n x\n", "breaks off inside a hunk"),
        ("--- a\n+++ a\n@@ -9999999 +1 @@\n-x\n", "begins behind line"),
    ],
)
def test_no_diffs(text: str, helps: str) -> None:
    with pytest.raises(UsageError, match=helps):
        parse_unified_diff(text)


def test_the_heading_of_a_hunk_is_the_line_before_it() -> None:
    """Without a repository nothing else says in which class or function a change is."""
    text = (
        "--- a/onnx_frontend.py\n+++ b/onnx_frontend.py\n"
        "@@ -40,3 +40,3 @@ class Softmax(OnnxOpConverter):\n     a = 1\n-    b = 2\n+    b = 3\n     c = 4\n"
        "@@ -43,1 +43,1 @@ class Softmax(OnnxOpConverter):\n-    d = 5\n+    d = 6\n"
    )
    [file] = parse_unified_diff(text)["files"]
    for side in ("old", "new"):
        lines = file[side].split("\n")
        assert lines[38] == "class Softmax(OnnxOpConverter):"
        assert lines[39] == "    a = 1"
        assert lines[41] == "    c = 4", "a line that is known stays"
    change = Change.from_json({"files": [file]})
    touched = find_touched_operators(change, ["Softmax", "LogSoftmax", "Conv"])
    assert max(touched.operators, key=touched.operators.__getitem__) == "Softmax"
    bare = Change.from_json(parse_unified_diff(text.replace(" class Softmax(OnnxOpConverter):", "")))
    assert "Softmax" not in find_touched_operators(bare, ["Softmax", "LogSoftmax", "Conv"]).operators
