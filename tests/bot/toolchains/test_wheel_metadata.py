"""Metadata of a hostile wheel: whatever it holds, the probe answers, or the toolchain is refused."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.errors import ProvisionError
from bot.toolchains import installer, probe_script
from bot.toolchains.installer import Installer
from bot.toolchains.probe import ProbeResult, parse_answer
from tests.support.wheels import make_wheel

PYTHON = Path("/toolchain/bin/python")
FILES = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "direct_url.json")
#: Pieces of the files' grammar, and what breaks their readers.
PIECES = st.sampled_from([
    *(b"Metadata-Version: 2.1\n", b"Name: a", b"Name: ", b"Version: ", b"\n", b"\r", b"\n\n", b" ", b"\0"),
    *(b"\xff\xfe", b"\xed\xa0\x80", b"1.0", b"9" * 5000, b"=?utf-8?b?", b"?=", b"../" * 50, b"a=b:c\n"),
    *(b"[console_scripts]\n", b",sha256=,\n", b"{" * 2000, b"Name: \xc3\xa4\n", b"(" * 500, b"\x1b[31m"),
    b"a" * 20_000,
])  # fmt: skip
TEXTS = st.lists(PIECES | st.binary(max_size=20), max_size=12).map(b"".join)


def read(folder: Path) -> ProbeResult | None:
    """What the service makes of the distributions in a folder; None if it refuses them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder)])
        answer = {"python": "3.11.7", "packages": probe_script.packages(), "content": "", "sources": []}
    return parse_or_refuse(json.dumps(answer))


def parse_or_refuse(answer: str) -> ProbeResult | None:
    try:
        return parse_answer(answer, PYTHON)
    except ProvisionError as error:
        reason = str(error)
    assert len(reason) < 1000
    return None


@settings(max_examples=50, deadline=None)
@given(files=st.dictionaries(st.sampled_from(FILES), TEXTS, min_size=1))
def test_any_metadata_is_read_or_refused(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "a-1.dist-info"
        dist.mkdir()
        for name, content in files.items():
            (dist / name).write_bytes(content)
        found = read(Path(folder))
    assert found is None or all(len(word) <= 4096 for pair in found.packages.items() for word in pair)


@pytest.mark.parametrize(
    "name",
    [
        "a\nb-1.dist-info",
        "A-1.dist-info",
        "-.dist-info",
        ".dist-info",
        "a-\x1b[31m.dist-info",
        "ä-1.dist-info",
    ],
)
def test_odd_names_of_folders_hide_no_other_distribution(tmp_path: Path, name: str) -> None:
    for one in (name, "good-1.dist-info"):
        (tmp_path / one).mkdir()
    (tmp_path / "good-1.dist-info" / "METADATA").write_text("Name: good\nVersion: 1\n")
    found = read(tmp_path)
    assert found is not None
    assert found.packages == {"good": "1"}


@settings(max_examples=100, deadline=None)
@given(answer=st.text(max_size=200) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["python", "packages", "content", "sources", "x"]), inner, max_size=5),
    max_leaves=8,
).map(json.dumps))  # fmt: skip
def test_any_answer_of_a_toolchain_is_read_or_refused(answer: str) -> None:
    parse_or_refuse(answer)


@settings(max_examples=100, deadline=None)
@given(text=TEXTS.map(lambda raw: raw.decode(errors="replace")))
def test_any_output_of_the_installer_is_read(text: str) -> None:
    assert all(key and isinstance(hashes, list) for key, hashes in installer._read_hashes(text).items())
    assert len(installer.reason(text).splitlines()) <= 2


@pytest.mark.parametrize(
    "name",
    [
        "../../../../escaped",
        "/tmp/assay-escaped",
        "a\nb.py",
        "..\\escaped",
        "A/../../../../../escaped",
        "con",
    ],
)
def test_a_wheel_with_odd_names_leaves_nothing_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    index, home = tmp_path / "index", tmp_path / "home"
    for folder in (index, home):
        folder.mkdir()
    make_wheel(index, "odd", "1", extra_files={name: b"escaped"})
    monkeypatch.setenv("UV_FIND_LINKS", str(index))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    made = Installer(home)
    python = made.make_venv(home / "venv")
    with contextlib.suppress(ProvisionError):
        made.install(python, ("odd==1",))
    outside = [path for path in tmp_path.rglob("*escaped*") if not path.is_relative_to(home / "venv")]
    assert [path for path in outside if not path.is_relative_to(tmp_path / "cache")] == []
    assert name != "con" or list((home / "venv").rglob(name)), "a plain name is installed"
    assert not Path("/tmp/assay-escaped").exists()
