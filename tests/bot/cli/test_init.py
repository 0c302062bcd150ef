"""`assay init` writes what Assay does anyway."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli.setup import init
from bot.config import parse_config
from bot.config.defaults import default_config, preset
from bot.config.layouts import layouts
from bot.errors import UsageError


@pytest.mark.parametrize("layout", layouts(), ids=lambda one: one.backend)
def test_a_compilers_repository_is_recognized(layout: object, tmp_path: Path) -> None:
    known = next(one for one in layouts() if one is layout)
    (tmp_path / known.marker).parent.mkdir(parents=True)
    (tmp_path / known.marker).touch()
    printed = CliRunner().invoke(init.command, [str(tmp_path)], standalone_mode=False).output
    assert parse_config(printed.encode()) == preset(known)


def test_a_pin_is_recognized_and_a_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["onnxruntime==1.24.1"]\n')
    CliRunner().invoke(init.command, [str(tmp_path), "--write"], standalone_mode=False)
    written = (tmp_path / ".github/assay.yml").read_bytes()
    expected = default_config(
        lambda path: (tmp_path / path).read_bytes() if path == "pyproject.toml" else None
    )
    assert parse_config(written) == expected
    with pytest.raises(UsageError, match="exists"):
        CliRunner().invoke(init.command, [str(tmp_path)], standalone_mode=False, catch_exceptions=False)


def test_nothing_is_recognized(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no known compiler's repository"):
        CliRunner().invoke(init.command, [str(tmp_path)], standalone_mode=False, catch_exceptions=False)
