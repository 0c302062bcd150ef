"""The command line finds its commands without importing them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli import FOLDER, cli, find_commands, main
from bot.errors import InternalError

HEAVY = ("fastapi", "sqlalchemy", "numpy", "uvicorn", "pydantic", "structlog", "jinja2", "github", "rich")

PROBE = f"""
import sys
from bot.cli import main
try:
    main(["--help"])
finally:
    loaded = set(sys.modules)
    heavy = [name for name in {HEAVY!r} if name in loaded]
    commands = [name for name in loaded if name.startswith("bot.cli.") and name != "bot.cli.exits"]
    print("HEAVY", heavy + commands)
"""


def test_help_imports_no_command_and_nothing_heavy() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=600, check=True
    ).stdout
    assert "HEAVY []" in shown
    for name, (_, line) in find_commands(FOLDER).items():
        assert name in shown
        assert line.split(":")[0] in " ".join(shown.split())


@pytest.mark.parametrize("module", ["github", "alembic", "fastapi", "torch"])
def test_a_command_imports_no_more_than_it_needs(module: str) -> None:
    program = f"import sys, bot.cli.campaigns.run, bot.cli.cases.reduce; print({module!r} in sys.modules)"
    argv = [sys.executable, "-c", program]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "False\n"


def test_every_command_has_one_line_of_help_and_imports() -> None:
    known = find_commands(FOLDER)
    assert "serve" in known
    for name, (_, line) in known.items():
        assert line.endswith("."), f"{name}: {line!r}"
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.get_short_help_str(200), f"{name} has no help"


def test_commands_are_files_that_bind_command(tmp_path: Path) -> None:
    (tmp_path / "make_tea.py").write_text('"""Make tea.\n\nSlowly."""\nimport not_there\ncommand = 1\n')
    (tmp_path / "kitchen").mkdir()
    (tmp_path / "kitchen" / "brew.py").write_text('"""Brew."""\ndef command() -> None: ...\n')
    (tmp_path / "helper.py").write_text('"""No command."""\ncommands = []\n')
    (tmp_path / "_private.py").write_text('"""Hidden."""\ncommand = 1\n')
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "shared.py").write_text('"""No command either."""\ncommand = 1\n')
    assert find_commands(tmp_path) == {
        "make-tea": ("make_tea", "Make tea."),
        "brew": ("kitchen.brew", "Brew."),
    }


def test_two_commands_of_one_name_are_an_error(tmp_path: Path) -> None:
    for folder in ("kitchen", "garden"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "brew.py").write_text('"""Brew."""\ncommand = 1\n')
    with pytest.raises(InternalError, match=r"'brew'.*garden\.brew.*kitchen\.brew"):
        find_commands(tmp_path)


@pytest.mark.parametrize("name", ["nothing_like_it", "*", "/etc/passwd", "../common/options", ""])
def test_what_is_no_command_is_a_wrong_usage(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name])
    assert left.value.code == 2
    assert f"No such command {name!r}" in capsys.readouterr().err


def test_a_misspelt_command_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["serv"])
    assert left.value.code == 2
    assert "did you mean 'serve'?" in capsys.readouterr().err
