"""Annotations: a finding told beside the changed line that it comes from, as far as the diff tells.

Which lines those are was found when the plan was made: `python -m fuzzing.prioritize --touched` names, for
each operator and pass that a change touches, changed lines at head (docs/change-aware.md says how). A
finding whose operator nothing in the diff serves gets none: better no line than a wrong one.
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
_MIN_NAME_LENGTH = 6  # letters of a pass's name that may be looked for in a sentence
_LETTERS = re.compile(r"[^a-z0-9]")
#: What a file does, in the words of a sentence; a compiler's own tests are not where its bugs come from.
_ROLES = {"converter": "converter", "kernel": "kernel", "pass": "pass", "other": "code"}


@dataclass(frozen=True)
class ChangedLine:
    """A changed line at head, and why a finding is told there."""

    path: str
    line: int
    why: str


class TouchedCode:
    """What a change touches, as a ranking keeps it."""

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
        """The line that a group of findings most likely comes from; None where the diff does not tell."""
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
    """The annotations of these groups, one each at most, as GitHub's API describes them.

    command  the line that shows a finding again, "" for none
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
        f"{'fails' if group.cases == 1 else 'fail'} since this change: "
        f"{head.failed} of {head.runs} runs at head, {base.failed} of {base.runs} at base.",
        f"Told here because {changed_line.why}.",
        *([f"Again: {command}"] if command else []),
    ]
    # Shown as it is, without Markdown; what mentions or links all the same is broken as in a title.
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
        # A name that git could not spell, or nobody can read, would have GitHub refuse the whole check run.
        if role is not None and path.isprintable() and "\ufffd" not in path and len(path) <= _MAX_PATH:
            yield ChangedLine(path, int(place["line"]), f"the {role}{owner} was changed on this line")


def _normalize_name(name: str) -> str:
    return _LETTERS.sub("", name.lower())
