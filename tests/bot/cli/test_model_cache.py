"""The cases that were made of models: there while somebody uses them, and for a time after that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.cli.common.model_cache import IDLE_DAYS, REPLACED_DAYS, ModelCache
from bot.errors import InfrastructureError

NAME = "nets"


@pytest.fixture
def model_cache(tmp_path: Path) -> ModelCache:
    return ModelCache(tmp_path / "data")


def use(model_cache: ModelCache, origin: Path, *cases: str) -> Path:
    """A command that makes a set of these cases, uses it and ends."""
    with model_cache.new_set(origin) as folder:
        (folder / NAME).mkdir()
        with model_cache.store(folder, cases) as kept:
            assert (kept / NAME).is_dir()
            return kept


def age(folder: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(folder / "used", (then, then))


def left(model_cache: ModelCache) -> set[Path]:
    return {one for one in model_cache._root.iterdir() if one.is_dir()}


def test_the_same_cases_of_the_same_models_are_one_set(model_cache: ModelCache, tmp_path: Path) -> None:
    first = use(model_cache, tmp_path / "a", "1", "2")
    (first / "answers").touch()
    assert use(model_cache, tmp_path / "a", "2", "1") == first
    assert (first / "answers").exists(), "what was learnt of it stays"
    other, changed = use(model_cache, tmp_path / "b", "1", "2"), use(model_cache, tmp_path / "a", "1")
    assert left(model_cache) == {first, other, changed}
    assert len(left(model_cache)) == 3


def test_what_nobody_used_for_long_is_removed_and_told(
    model_cache: ModelCache, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, young = use(model_cache, tmp_path / "old", "1"), use(model_cache, tmp_path / "young", "1")
    age(old, IDLE_DAYS + 0.1)
    age(young, IDLE_DAYS - 0.1)
    assert left(model_cache) == {old, young}
    new = use(model_cache, tmp_path / "new", "1")
    assert left(model_cache) == {young, new}
    result = f"removed the cases of {tmp_path / 'old'}, not used for {IDLE_DAYS} days\n"
    assert capsys.readouterr().err == result


def test_what_a_newer_state_replaced_goes_sooner_and_in_silence(
    model_cache: ModelCache, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    origin = tmp_path / "a"
    before, between = use(model_cache, origin, "1"), use(model_cache, origin, "2")
    other = use(model_cache, tmp_path / "b", "1")
    for folder, days in (before, REPLACED_DAYS + 0.1), (between, REPLACED_DAYS - 0.1), (other, 5):
        age(folder, days)
    now = use(model_cache, origin, "3")
    assert left(model_cache) == {between, other, now}
    assert capsys.readouterr().err == ""


def test_using_a_set_again_keeps_it(model_cache: ModelCache, tmp_path: Path) -> None:
    kept, named = use(model_cache, tmp_path / "a", "1"), use(model_cache, tmp_path / "b", "1")
    for folder in (kept, named):
        age(folder, IDLE_DAYS + 1)
    with model_cache.hold(named / NAME):  # by `--corpus`, as a report has it
        use(model_cache, tmp_path / "a", "1")
    use(model_cache, tmp_path / "c", "1")
    assert {kept, named} < left(model_cache)


def test_a_folder_that_is_no_set_is_left_as_it_is(model_cache: ModelCache, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    with model_cache.hold(tmp_path / "corpus"), model_cache.hold(tmp_path / "nowhere"):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["corpus"]


HOLDER = """
import sys, time
from pathlib import Path
from bot.cli.common.model_cache import ModelCache
model_cache = ModelCache(Path(sys.argv[1]))
with model_cache.new_set(Path(sys.argv[2])) as folder:
    (folder / "nets").mkdir()
    if sys.argv[3] == "making":
        print(folder, flush=True)
        time.sleep(3600)
    with model_cache.store(folder, ["1"]) as kept:
        print(kept, flush=True)
        time.sleep(3600)
"""


@pytest.mark.parametrize("at", ["making", "using"])
def test_a_running_command_keeps_its_set_and_a_killed_one_leaves_nothing(
    model_cache: ModelCache, tmp_path: Path, at: str
) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "data"), str(tmp_path / "a"), at]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        age(held, IDLE_DAYS + 1)
        use(model_cache, tmp_path / "a", "2")
        assert (held / NAME).is_dir()
        holder.kill()
    use(model_cache, tmp_path / "b", "1")
    assert not held.exists()
    assert all(one.name[0] != "." for one in left(model_cache))


def test_what_a_killed_removal_left_is_removed(model_cache: ModelCache, tmp_path: Path) -> None:
    kept = use(model_cache, tmp_path / "a", "1")
    half, bare = model_cache._root / ".gone-1", model_cache._root / ".gone-2"
    for folder in (half, bare):
        (folder / "nets").mkdir(parents=True)
    (half / "used").touch()
    use(model_cache, tmp_path / "a", "1")
    assert left(model_cache) == {kept}


def test_a_set_without_a_note_counts_from_now_on(model_cache: ModelCache, tmp_path: Path) -> None:
    use(model_cache, tmp_path / "a", "1")
    plain = model_cache._root / "0123456789abcdef"
    plain.mkdir()
    use(model_cache, tmp_path / "a", "1")
    assert plain in left(model_cache)
    age(plain, IDLE_DAYS + 1)
    use(model_cache, tmp_path / "a", "1")
    assert plain not in left(model_cache)


def test_a_data_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with (
        pytest.raises(InfrastructureError, match="check ASSAY_DATA_DIR"),
        ModelCache(tmp_path / "data").new_set(tmp_path / "a"),
    ):
        pass
