"""The evidence in one changed file: hints, each a spelling of an operator with a weight and an explanation.

If the file binds operators to functions itself (`symbols.Registration`), those bindings are used; if the
table is in another file, the names of the functions are taken as spellings of operators, since converters are
mostly named after what they convert. Functions that call a touched one count too, less with each call and
with each further operator that one helper serves.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from fuzzing.prioritize.change import cpp_outline, python_outline
from fuzzing.prioritize.change.areas import ROLES, Area, area_of
from fuzzing.prioritize.change.diff import FileChange
from fuzzing.prioritize.change.symbols import Outline, ReachedSymbol, UseGraph

#: A hint's spelling is an operator's, a file's (which may hold a family of operators), or a part of a name.
WHOLE, FILE, WORD = "whole", "file", "word"

#: Factors of each kind of evidence, relative to a touched function that is registered for the operator.
#: Estimates; see docs/change-aware.md.
_CALL_FACTOR = 0.9  # for each call between the touched function and the operator's
_NAMED_FACTOR = 0.8  # the function is only named like the operator
_MENTIONED_FACTOR = 0.8  # the touched function of a pass or of a test mentions the operator
_STEM_WEIGHT = 0.5  # the file is named like the operator, and there is nothing better
_GUESS_WEIGHT = 0.2  # a name on a changed line, or a folder
#: Weight of each operator of a frontend for a change in code that all of them pass through.
_SHARED_WEIGHT = 0.1

_PYTHON = frozenset({".py", ".pyi"})
_CPP = frozenset({".cpp", ".cc", ".cxx", ".c", ".hpp", ".h", ".hxx", ".cu", ".cuh", ".inl", ".mm"})
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,60}")
_MOST_NAMES = 300  # identifiers of changed lines that are examined
#: Common words that are also operators' names; ignored when alone on a changed line.
_COMMON_TEXT = """
    max min abs size shape range cast constant where identity split add and not or xor mod pow sum mean
    equal less greater neg log exp round floor ceil input output tensor int float bool double string
    vector const auto return data type index item copy to view sort unique reverse expand pad clip
    repeat tile if loop scan optional sequence all any len print isinstance slice concat reshape squeeze
    select std var norm full empty zeros ones fill t stack set get dim numel result value name default
    self cls none true false complex real bernoulli
"""
_COMMON = frozenset(_COMMON_TEXT.split())


@dataclass(frozen=True)
class ChangedLine:
    """A changed line of the file at head, and the file's role (`areas.ROLES`)."""

    path: str
    line: int
    role: str


@dataclass(frozen=True)
class OperatorHint:
    """A touched place that `spelling` names.

    weight     in (0, 1]
    frontends  the libraries of the possible operators; empty: all
    place      the first changed line behind it; None if that is gone at head, or a whole file is meant
    """

    spelling: str
    weight: float
    reason: str
    frontends: frozenset[str] = frozenset()
    degree: str = WHOLE
    place: ChangedLine | None = None


@dataclass(frozen=True)
class FileEvidence:
    """All evidence in one file.

    guesses    used only if no hint names a known operator
    frontends  weights of all operators of a frontend; used if the file is `shared`, or if no file of the
               change names an operator
    """

    hints: tuple[OperatorHint, ...] = ()
    guesses: tuple[OperatorHint, ...] = ()
    passes: Mapping[str, float] = field(default_factory=dict)
    frontends: Mapping[str, float] = field(default_factory=dict)
    shared: bool = False
    reason: str = ""
    pass_places: Mapping[str, ChangedLine] = field(default_factory=dict)


def collect_evidence(file: FileChange) -> FileEvidence:
    """The evidence in a changed file; none, if only comments differ or its path is irrelevant."""
    area = area_of(file.path)
    if ROLES[area.role] == 0 or file.binary:
        return FileEvidence()
    gone, come = file.changed()
    sides = [
        _Side.of(text, lines, path, at_head=text is file.new)
        for text, lines, path in ((file.new, come, file.path), (file.old, gone, file.old_path or file.path))
        if text is not None
    ]
    known = file.new is not None or file.old is not None
    if known and not any(side.lines for side in sides):
        return FileEvidence()  # comments, blanks, docstrings
    return _Reader(file.path, area, sides).evidence()


@dataclass(frozen=True)
class _Side:
    """One side of a change: its outline, if the language is known, and the changed lines that hold code."""

    outline: Outline | None
    lines: frozenset[int]
    text: str
    at_head: bool

    @classmethod
    def of(cls, text: str, lines: frozenset[int], path: str, *, at_head: bool) -> _Side:
        suffix = PurePosixPath(path).suffix.lower()
        outline = None
        if lines and suffix in _PYTHON:
            outline = python_outline.outline(text)
        elif lines and suffix in _CPP:
            outline = cpp_outline.outline(text)
        return cls(outline, lines if outline is None else lines & outline.code, text, at_head)


class _Reader:
    """Reads one file of an area."""

    def __init__(self, path: str, area: Area, sides: list[_Side]) -> None:
        self._path, self._area, self._sides = path, area, sides
        self._role = ROLES[area.role]

    def evidence(self) -> FileEvidence:
        hints: dict[tuple[str, str], OperatorHint] = {}
        passes: dict[str, float] = {}
        pass_places: dict[str, ChangedLine] = {}
        for side in self._sides:
            if side.outline is not None and side.lines:
                for hint in self._structure(side.outline, side, passes, pass_places):
                    key = hint.spelling, hint.degree
                    if key not in hints or hints[key].weight < hint.weight:
                        hints[key] = hint
        return FileEvidence(
            hints=tuple(hints.values()),
            guesses=tuple(self._guesses()),
            passes=passes,
            frontends=dict.fromkeys(sorted(self._area.frontends), _SHARED_WEIGHT * self._role),
            shared=self._area.shared,
            reason=f"{self._path} was changed; it names no operator",
            pass_places=pass_places,
        )

    def _structure(
        self, outline: Outline, side: _Side, passes: dict[str, float], pass_places: dict[str, ChangedLine]
    ) -> Iterator[OperatorHint]:
        """Hints from definitions and registrations."""
        lines = side.lines
        for entry in outline.registrations:
            hit = sorted(line for line in lines if entry.first <= line <= entry.last)
            if hit:
                reason = f"{self._where(hit)}: the registration of {entry.operator} was changed"
                yield self._hint(entry.operator, 1.0, reason, place=self._place(side, hit))
        reached = UseGraph(outline).reached(lines)
        if self._area.role in ("pass", "test"):
            yield from self._mentioned_hints(reached, side, passes, pass_places)
        bound: dict[str, set[str]] = defaultdict(set)
        for entry in outline.registrations:
            for symbol in entry.symbols:
                bound[symbol].add(entry.operator)
        nearest: dict[tuple[int, int], list[tuple[ReachedSymbol, str]]] = defaultdict(list)
        for one in reached:
            for spelling in sorted(_served_operators(one, bound)):
                nearest[id(one.via), one.level].append((one, spelling))
        for (_, level), found in nearest.items():
            weight = _CALL_FACTOR**level / math.sqrt(len({spelling for _, spelling in found}))
            for one, spelling in found:
                named = spelling == one.symbol.name and spelling not in bound
                reason = self._explain_reached(one, "" if named else spelling)
                place = self._place(side, one.lines)
                yield self._hint(spelling, weight * (_NAMED_FACTOR if named else 1.0), reason, place=place)

    def _mentioned_hints(
        self,
        reached: list[ReachedSymbol],
        side: _Side,
        passes: dict[str, float],
        pass_places: dict[str, ChangedLine],
    ) -> Iterator[OperatorHint]:
        """Hints for the operators that a touched pass or test mentions."""
        for one in reached:
            if one.level:
                continue
            place = self._place(side, one.lines)
            if self._area.role == "pass":
                label = one.symbol.owner or one.symbol.name
                passes[label] = self._role
                if place is not None:
                    pass_places.setdefault(label, place)
            weight = _MENTIONED_FACTOR / math.sqrt(max(1, len(one.symbol.names)))
            for spelling in sorted(one.symbol.names):
                reason = f"{self._where(one.lines)}: {_label(one)}, which mentions {spelling}, was changed"
                yield self._hint(spelling, weight, reason, place=place)

    def _guesses(self) -> Iterator[OperatorHint]:
        """Hints without structure: the file's name, the folders', names on changed lines."""
        path = PurePosixPath(self._path)
        stem = path.name.partition(".")[0]
        reason = f"{self._path}: the file has this name"
        first = next((side for side in self._sides if side.at_head), None)
        place = None if first is None else self._place(first, sorted(first.lines)[:1])
        yield self._hint(stem, _STEM_WEIGHT, reason, FILE, place)
        yield self._hint(stem, _STEM_WEIGHT, reason, WORD, place)
        for folder in path.parts[-3:-1]:
            yield self._hint(folder, _GUESS_WEIGHT, f"{self._path}: a folder is called so", WORD)
        seen: set[str] = set()
        for side in self._sides:
            content = side.text.split("\n")
            for line in sorted(side.lines):
                for spelling in _IDENTIFIER.findall(content[line - 1] if line <= len(content) else ""):
                    if spelling.lower() in _COMMON or spelling in seen or len(seen) >= _MOST_NAMES:
                        continue
                    seen.add(spelling)
                    reason = f"{self._path}, line {line}: {spelling} is named there"
                    yield self._hint(spelling, _GUESS_WEIGHT, reason, place=self._place(side, [line]))

    def _hint(
        self, spelling: str, weight: float, reason: str, degree: str = WHOLE, place: ChangedLine | None = None
    ) -> OperatorHint:
        return OperatorHint(spelling, weight * self._role, reason, self._area.frontends, degree, place)

    def _place(self, side: _Side, lines: Sequence[int]) -> ChangedLine | None:
        """The first of these lines, if they are at head."""
        return ChangedLine(self._path, min(lines), self._area.role) if side.at_head and lines else None

    def _explain_reached(self, one: ReachedSymbol, operator: str = "") -> str:
        """The explanation for a reached symbol, and the operator registered with it, if any."""
        label = _label(one)
        whose = f"{operator}'s {_ROLE_NOUNS[self._area.role]} {label}" if operator else label
        if one.level == 0:
            return f"{self._where(one.lines)}: {whose} was changed"
        via = ".".join(filter(None, (one.via.owner, one.via.name)))
        return f"{self._where(one.lines)}: {via} was changed, which {whose} uses"

    def _where(self, lines: Iterable[int]) -> str:
        return f"{self._path}, {_lines(sorted(lines))}"


def _served_operators(one: ReachedSymbol, bound: Mapping[str, set[str]]) -> set[str]:
    """The operators that a symbol is registered for; its own name if there are none."""
    registered = set().union(*(bound.get(name, ()) for name in (one.symbol.name, one.symbol.owner) if name))
    name = one.symbol.name
    return registered or ({name} if name and not (name.startswith("__") and name.endswith("__")) else set())


_ROLE_NOUNS = {
    "converter": "converter",
    "kernel": "kernel",
    "pass": "pass",
    "test": "test",
    "other": "function",
}


def _label(one: ReachedSymbol) -> str:
    return ".".join(filter(None, (one.symbol.owner, one.symbol.name)))


def _lines(lines: list[int]) -> str:
    """`line 5`, `lines 5-9`: from the first to the last."""
    first, last = lines[0], lines[-1]
    return f"line {first}" if first == last else f"lines {first}-{last}"
