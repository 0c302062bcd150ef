"""Annotations of check runs: a finding beside the changed line that likely caused it.

The plan has these lines: `python -m fuzzing.prioritize --touched` lists, for each operator and pass that a
change touches, changed lines at head (docs/change-aware.md). A finding without such a line gets no
annotation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.reports import text
from bot.reports.report import Group
from bot.reports.templates import pluralize

MAX_TITLE = 255  # of an annotation, and 64 KB of its message: GitHub's REST API, checks
_MESSAGE = 4_000  # ours: what is read beside a line of a diff
_MAX_PATH = 1_000  # characters; ours
_MIN_NAME_LENGTH = 6  # letters; shorter names of passes match too many words of a message
_LETTERS = re.compile(r"[^a-z0-9]")
#: Roles of files as words; a compiler's tests are left out, since they do not cause its bugs.
_ROLES = {"converter": "converter", "kernel": "kernel", "pass": "pass", "other": "code"}


@dataclass(frozen=True)
class ChangedLine:
    """A changed line at head, and why a finding is shown there."""

    path: str
    line: int
    why: str


class TouchedCode:
    """The operators and passes that a change touches, as stored with a ranking."""

    def __init__(self, touched: Iterable[Mapping[str, Any]]) -> None:
        self._operators: dict[str, list[ChangedLine]] = {}
        self._passes: dict[str, list[ChangedLine]] = {}
        for one in touched:
            if "operator" in one:
                name = str(one["operator"])
                self._operators[name] = list(_changed_lines(one, f" of {name}"))
            elif "pass" in one:
                name = str(one["pass"])
                self._passes[name] = list(_changed_lines(one, f" {name}"))

    def changed_line(self, group: Group) -> ChangedLine | None:
        """The line that most likely caused a group of findings; None if the diff names none."""
        outcome = group.example.outcome
        component = _normalize_name(outcome.evidence.component) if outcome is not None else ""
        for name, changed_lines in self._passes.items():
            if (
                changed_lines
                and len(_normalize_name(name)) >= _MIN_NAME_LENGTH
                and _normalize_name(name) in component
            ):
                return changed_lines[0]
        operators = dict.fromkeys([group.example.operator, *(row.operator for row in group.shown)])
        return next(
            (changed_line for name in operators for changed_line in self._operators.get(name, ())), None
        )


def build_annotations(
    groups: Sequence[Group], touched_code: TouchedCode, command: Callable[[Group], str], *, gate: bool
) -> list[dict[str, Any]]:
    """The annotations of these groups, at most one each, in the format of GitHub's API.

    command  the command that reproduces a finding, "" for none
    gate     whether a finding fails the check
    """
    made = []
    for group in groups:
        changed_line = touched_code.changed_line(group)
        if changed_line is not None:
            made.append(_annotation(group, changed_line, command(group), "failure" if gate else "warning"))
    return made


def _annotation(group: Group, changed_line: ChangedLine, command: str, level: str) -> dict[str, Any]:
    head, base = group.example.head_runs, group.example.base_runs
    lines = [
        f"{pluralize(group.cases, 'case')} of {group.example.operator or 'several operators'} "
        f"{'fails' if group.cases == 1 else 'fail'} at head only: "
        f"{head.failed} of {head.runs} runs at head, {base.failed} of {base.runs} at base.",
        f"Shown here because {changed_line.why}.",
        *([f"Reproduce: {command}"] if command else []),
    ]
    # Shown without Markdown; mentions and links are broken as in a title.
    message = "\n".join(text.title(line, _MESSAGE // len(lines)) for line in lines)
    return {
        "path": changed_line.path,
        "start_line": changed_line.line,
        "end_line": changed_line.line,
        "annotation_level": level,
        "title": text.title(group.title, MAX_TITLE),
        "message": message,
    }


def _changed_lines(one: Mapping[str, Any], owner: str) -> Iterator[ChangedLine]:
    for place in one.get("places", ()):
        role = _ROLES.get(str(place["role"]))
        path = str(place["path"])
        # GitHub refuses the whole check run for a path that is not valid text.
        if role is not None and path.isprintable() and "\ufffd" not in path and len(path) <= _MAX_PATH:
            yield ChangedLine(path, int(place["line"]), f"the {role}{owner} was changed on this line")


def _normalize_name(name: str) -> str:
    return _LETTERS.sub("", name.lower())
