"""Mistakes in a configuration, with their positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.errors import ConfigError

Path = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake. line, column are 1-based, 0 where unknown; key is dotted, "" for the whole file."""

    line: int
    column: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{place}{self.key + ' ' if self.key else 'the file '}{self.message}"


class InvalidConfigError(ConfigError):
    """The configuration is invalid; `problems` lists every mistake in the order of the file.

    line, column and key are those of the first mistake.
    """

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        first = self.problems[0]
        count = len(self.problems)
        head = f"{name} has {'a mistake' if count == 1 else f'{count} mistakes'}:"
        super().__init__("\n  ".join([head, *map(str, self.problems)]))
        self.line, self.column, self.key = first.line, first.column, first.key


def format_path(path: Path) -> str:
    """A path in the form `toolchain.extra[0]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
