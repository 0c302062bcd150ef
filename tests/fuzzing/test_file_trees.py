"""Trees of files that a hostile program made are removed and measured, however it made them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.file_trees import MIN_ENTRY_BYTES, discard_tree, remove_tree, tree_bytes

LIMIT = 1 << 20


def make_deep(root: Path, levels: int) -> None:
    """Folders in folders, by relative names: their path is longer than the kernel opens."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("last", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


@pytest.mark.parametrize("levels", [1, 1_100, 5_000])
def test_folders_of_any_depth_are_removed(tmp_path: Path, levels: int) -> None:
    root = tmp_path / "root"
    root.mkdir()
    make_deep(root, levels)
    remove_tree(root)
    assert not root.exists()


def test_what_a_link_names_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "link").symlink_to(kept)
    (root / "inner" / "link").symlink_to(kept)
    remove_tree(root)
    assert (kept / "file").read_text() == "mine"
    with pytest.raises(NotADirectoryError):
        remove_tree(_link(tmp_path / "top", kept))
    assert (kept / "file").exists()


def _link(place: Path, to: Path) -> Path:
    place.symlink_to(to)
    return place


def test_closed_folders_are_removed(tmp_path: Path) -> None:
    inner = tmp_path / "root" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0)
    inner.parent.chmod(0)
    remove_tree(tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_nothing_there_is_nothing_to_do(tmp_path: Path) -> None:
    remove_tree(tmp_path / "none")
    discard_tree(tmp_path / "none")
    assert tree_bytes(tmp_path / "none", LIMIT) == 0


NAMES = st.sampled_from(["a", "b", "1", "2", "3", "é", " ", "-"])


@given(st.lists(st.lists(NAMES, min_size=1, max_size=5), max_size=12))
@settings(max_examples=40, deadline=None)
def test_trees_of_any_names_are_removed(
    tmp_path_factory: pytest.TempPathFactory, paths: list[list[str]]
) -> None:
    root = tmp_path_factory.mktemp("any") / "root"
    for path in paths:
        root.joinpath(*path).mkdir(parents=True, exist_ok=True)
        (root.joinpath(*path) / "file").touch()
    remove_tree(root)
    assert not root.exists()


def test_sizes_are_those_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(os.urandom(200_000))
    (tmp_path / "hole").touch()
    os.truncate(tmp_path / "hole", 1 << 40)
    found = tree_bytes(tmp_path, LIMIT)
    assert 200_000 + 2 * MIN_ENTRY_BYTES <= found < LIMIT
    assert tree_bytes(tmp_path, 100_000) > 100_000


def test_many_names_and_hidden_ones_exceed_every_limit(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number}").touch()
    assert tree_bytes(tmp_path, LIMIT) > LIMIT
    deep = tmp_path / "deep"
    deep.mkdir()
    make_deep(deep, 3_000)
    assert tree_bytes(deep, 1 << 40) > 1 << 40
    remove_tree(deep)
