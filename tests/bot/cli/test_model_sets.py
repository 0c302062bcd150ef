"""The cases that were made of models: there while somebody uses them, and for a time after that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.cli._models import IDLE_DAYS, REPLACED_DAYS, Shelf
from bot.errors import InfrastructureError

NAME = "nets"


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "data")


def use(shelf: Shelf, origin: Path, *cases: str) -> Path:
    """A command that makes a set of these cases, uses it and ends."""
    with shelf.begun(origin) as folder:
        (folder / NAME).mkdir()
        with shelf.kept(folder, cases) as kept:
            assert (kept / NAME).is_dir()
            return kept


def age(folder: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(folder / "used", (then, then))


def left(shelf: Shelf) -> set[Path]:
    return {one for one in shelf._root.iterdir() if one.is_dir()}


def test_the_same_cases_of_the_same_models_are_one_set(shelf: Shelf, tmp_path: Path) -> None:
    first = use(shelf, tmp_path / "a", "1", "2")
    (first / "answers").touch()
    assert use(shelf, tmp_path / "a", "2", "1") == first
    assert (first / "answers").exists(), "what was learnt of it stays"
    other, changed = use(shelf, tmp_path / "b", "1", "2"), use(shelf, tmp_path / "a", "1")
    assert left(shelf) == {first, other, changed}
    assert len(left(shelf)) == 3


def test_what_nobody_used_for_long_is_removed_and_told(
    shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, young = use(shelf, tmp_path / "old", "1"), use(shelf, tmp_path / "young", "1")
    age(old, IDLE_DAYS + 0.1)
    age(young, IDLE_DAYS - 0.1)
    assert left(shelf) == {old, young}
    new = use(shelf, tmp_path / "new", "1")
    assert left(shelf) == {young, new}
    told = f"removed the cases of {tmp_path / 'old'}, not used for {IDLE_DAYS} days\n"
    assert capsys.readouterr().err == told


def test_what_a_newer_state_replaced_goes_sooner_and_in_silence(
    shelf: Shelf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    origin = tmp_path / "a"
    before, between = use(shelf, origin, "1"), use(shelf, origin, "2")
    other = use(shelf, tmp_path / "b", "1")
    for folder, days in (before, REPLACED_DAYS + 0.1), (between, REPLACED_DAYS - 0.1), (other, 5):
        age(folder, days)
    now = use(shelf, origin, "3")
    assert left(shelf) == {between, other, now}
    assert capsys.readouterr().err == ""


def test_using_a_set_again_keeps_it(shelf: Shelf, tmp_path: Path) -> None:
    kept, named = use(shelf, tmp_path / "a", "1"), use(shelf, tmp_path / "b", "1")
    for folder in (kept, named):
        age(folder, IDLE_DAYS + 1)
    with shelf.holding(named / NAME):  # by `--corpus`, as a report has it
        use(shelf, tmp_path / "a", "1")
    use(shelf, tmp_path / "c", "1")
    assert {kept, named} < left(shelf)


def test_a_folder_that_is_no_set_is_left_as_it_is(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    with shelf.holding(tmp_path / "corpus"), shelf.holding(tmp_path / "nowhere"):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["corpus"]


HOLDER = """
import sys, time
from pathlib import Path
from bot.cli._models import Shelf
shelf = Shelf(Path(sys.argv[1]))
with shelf.begun(Path(sys.argv[2])) as folder:
    (folder / "nets").mkdir()
    if sys.argv[3] == "making":
        print(folder, flush=True)
        time.sleep(3600)
    with shelf.kept(folder, ["1"]) as kept:
        print(kept, flush=True)
        time.sleep(3600)
"""


@pytest.mark.parametrize("at", ["making", "using"])
def test_a_running_command_keeps_its_set_and_a_killed_one_leaves_nothing(
    shelf: Shelf, tmp_path: Path, at: str
) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "data"), str(tmp_path / "a"), at]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        age(held, IDLE_DAYS + 1)
        use(shelf, tmp_path / "a", "2")
        assert (held / NAME).is_dir()
        holder.kill()
    use(shelf, tmp_path / "b", "1")
    assert not held.exists()
    assert all(one.name[0] != "." for one in left(shelf))


def test_what_a_killed_removal_left_is_removed(shelf: Shelf, tmp_path: Path) -> None:
    kept = use(shelf, tmp_path / "a", "1")
    half, bare = shelf._root / ".gone-1", shelf._root / ".gone-2"
    for folder in (half, bare):
        (folder / "nets").mkdir(parents=True)
    (half / "used").touch()
    use(shelf, tmp_path / "a", "1")
    assert left(shelf) == {kept}


def test_a_set_without_a_note_counts_from_now_on(shelf: Shelf, tmp_path: Path) -> None:
    use(shelf, tmp_path / "a", "1")
    plain = shelf._root / "0123456789abcdef"
    plain.mkdir()
    use(shelf, tmp_path / "a", "1")
    assert plain in left(shelf)
    age(plain, IDLE_DAYS + 1)
    use(shelf, tmp_path / "a", "1")
    assert plain not in left(shelf)


def test_a_data_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with (
        pytest.raises(InfrastructureError, match="check ASSAY_DATA_DIR"),
        Shelf(tmp_path / "data").begun(tmp_path / "a"),
    ):
        pass
