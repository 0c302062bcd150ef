"""Names that are registered elsewhere, read without importing what registers them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import fuzzing
from bot.config import names
from fuzzing.generate.graph_search import rewards
from fuzzing.migrate import source_parts, sources
from fuzzing.migrate.recorders import base as recorders
from fuzzing.prioritize import strategies


def test_strategies_are_those_that_are_registered() -> None:
    assert names.strategies() == strategies.names()


def test_sources_are_those_that_are_registered() -> None:
    assert names.sources() == sources.names()
    for name in sources.names():
        known = sources.get(name)
        assert names.source_libraries()[name] == known.library
        assert names.source_requirements(name) == (known.library, *known.needs.split())


def test_a_source_is_divided_where_its_function_can_leave_work_out() -> None:
    counts = {names.source_parts(name) for name in names.sources()}
    assert counts == {1, names.PARTS}
    assert names.source_parts("torch-opinfo") == names.PARTS
    assert names.source_parts("onnx-node-tests") == 1
    assert names.source_parts("no-such-source") == 1
    last = source_parts.Part.parse(f"{names.PARTS}/{names.PARTS}")
    assert last.contains("x") or any(
        source_parts.Part(n, names.PARTS).contains("x") for n in range(1, names.PARTS)
    )


def test_the_seed_of_generated_sources_is_their_default() -> None:
    generated = [name for name in names.sources() if names.is_generated(name)]
    defaults = {inspect.signature(sources.get(name).migrate).parameters["seed"].default for name in generated}
    assert generated
    assert defaults == {names.DEFAULT_SEED}


def test_rewards_are_those_that_are_registered() -> None:
    assert names.rewards() == rewards.names()


def test_recorded_libraries_are_those_that_have_a_recorder() -> None:
    assert names.recorded_libraries() == recorders.names()
    assert names.check_library_name("torch") == "torch"
    with pytest.raises(ValueError, match="did you mean 'torch'"):
        names.check_library_name("troch")


def test_no_library_is_imported_for_it() -> None:
    code = (
        "from bot.config import names; import sys; names.strategies(), names.sources(); "
        "print([one for one in ('torch', 'onnx', 'keras', 'fuzzing.migrate') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_default_sources_are_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "source_libraries", lambda: {"torch-opinfo": "torch", "x": "jax"})
    assert names.default_sources("torch") == ("torch-opinfo",)
    assert names.default_sources("onnx") == ()
    assert names.default_sources("jax") == ("x",), "a library that is not in the table: all it has"


def test_a_new_file_is_a_new_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Law 4: nothing else is edited."""
    (tmp_path / "migrate").mkdir()
    (tmp_path / "migrate" / "mine.py").write_text(
        'NAME = "mine"\n'
        '@sources.register_source(NAME, library="lib", needs="pytest absl-py")\n'
        "def migrate(*, part=None):\n    pass\n"
    )
    monkeypatch.setattr(fuzzing, "__path__", [str(tmp_path)])
    names._sources.cache_clear()
    try:
        assert names._sources().keys() == {"mine"}
        assert names.source_requirements("mine") == ("lib", "pytest", "absl-py")
        assert names.source_parts("mine") == names.PARTS
    finally:
        names._sources.cache_clear()
