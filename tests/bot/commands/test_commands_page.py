"""docs/commands.md says what the commands say of themselves."""

from __future__ import annotations

from pathlib import Path

from bot.commands.reference import render_table

PAGE = (Path(__file__).parents[3] / "docs" / "commands.md").read_text(encoding="utf-8")


def test_the_table_is_that_of_the_commands() -> None:
    start = PAGE.index("| command |")
    assert PAGE[start : PAGE.index("\n\n<!-- end of table -->")] == render_table()
