"""Definitions in a source file, and which of them a change reaches; shared by Python and C++.

A file's outline lists its symbols (functions, methods, classes, tables) with their lines and the names they
mention, and its registrations: places where a symbol is bound to an operator, such as `ONNX_OP("Resize", …,
resize)` or `"conv2d.default": self._conv2d`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

#: Largest number of calls between a changed line and an operator's function. A helper of a helper counts;
#: beyond that nearly every function of a frontend would.
LEVELS = 2


@dataclass(frozen=True)
class Symbol:
    """A definition.

    name      its own name; "" for an anonymous place
    owner     the class it belongs to; "" if none
    first     its first line, counted from 1, decorators included; `last` its last one
    mentions  the names in it: "f", "self.f" of its own class, "A.f" of another
    bases     the classes it derives from
    names     possible operator names in its body: strings, `aten.mm`, `v1::MatMul`
    """

    name: str
    owner: str
    first: int
    last: int
    mentions: frozenset[str] = frozenset()
    bases: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    is_class: bool = False
    is_test: bool = False


@dataclass(frozen=True)
class Registration:
    """Binds `operator`, in the source's spelling, to the named symbols, on these lines."""

    operator: str
    symbols: frozenset[str]
    first: int
    last: int


@dataclass(frozen=True)
class Outline:
    """A source file: symbols, registrations, and the lines that hold more than comments."""

    symbols: tuple[Symbol, ...]
    registrations: tuple[Registration, ...]
    code: frozenset[int]


@dataclass(frozen=True)
class ReachedSymbol:
    """A symbol that a change reaches: the lines changed in `via`, which is `level` calls below it."""

    symbol: Symbol
    level: int
    via: Symbol
    lines: tuple[int, ...]


class UseGraph:
    """Uses between the symbols of one file, by name."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self._free: dict[str, list[int]] = defaultdict(list)
        self._owned: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._methods: dict[str, list[int]] = defaultdict(list)
        self._classes: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(outline.symbols):
            if one.owner:
                self._owned[one.owner, one.name].append(place)
                self._methods[one.name].append(place)
            else:
                self._free[one.name].append(place)
            if one.is_class:
                self._classes[one.name].append(place)
        self._users: dict[int, set[int]] = defaultdict(set)
        for place, one in enumerate(outline.symbols):
            for used in self._uses(one):
                if used != place:
                    self._users[used].add(place)

    def _uses(self, one: Symbol) -> Iterator[int]:
        for base in one.bases:
            yield from self._free.get(base, ())
        for mention in one.mentions:
            before, _, name = mention.rpartition(".")
            if not before:
                yield from self._free.get(name, ())
            elif before == "self":
                yield from self._inherited(one.owner or one.name, name)
            elif before in self._classes:
                yield from self._owned.get((before, name), ())
            elif len(self._methods.get(name, ())) == 1:
                yield from self._methods[name]

    def _inherited(self, owner: str, name: str) -> list[int]:
        """The method `name` of `owner`, or of its nearest base that has one."""
        seen: set[str] = set()
        waiting = [owner]
        while waiting:
            current = waiting.pop(0)
            if current in seen:
                continue
            seen.add(current)
            if (current, name) in self._owned:
                return self._owned[current, name]
            for place in self._classes.get(current, ()):
                waiting.extend(self.outline.symbols[place].bases)
        return []

    def used(self, symbol: Symbol) -> Iterator[list[Symbol]]:
        """The symbol, then what it uses, and so on, LEVELS calls deep."""
        front = [self.outline.symbols.index(symbol)]
        seen: set[int] = set()
        for _ in range(LEVELS + 1):
            yield [self.outline.symbols[place] for place in front]
            seen |= set(front)
            below = {used for place in front for used in self._uses(self.outline.symbols[place])}
            front = sorted(below - seen)

    def reached(self, lines: frozenset[int]) -> list[ReachedSymbol]:
        """The symbols that changes on `lines` reach, nearest first; a method's class has its level."""
        symbols = self.outline.symbols
        ordered = sorted(lines)
        found: dict[int, ReachedSymbol] = {}
        front: dict[int, ReachedSymbol] = {}
        for place, one in enumerate(symbols):
            hit = ordered[bisect_left(ordered, one.first) : bisect_right(ordered, one.last)]
            if hit:
                front[place] = ReachedSymbol(one, 0, one, tuple(hit))
        for level in range(1, LEVELS + 2):
            found |= front
            if level <= LEVELS:
                front = self._above(front, found, level)
        return list(found.values())

    def _above(
        self, front: dict[int, ReachedSymbol], found: dict[int, ReachedSymbol], level: int
    ) -> dict[int, ReachedSymbol]:
        """The users of `front` that are not in `found`."""
        symbols = self.outline.symbols
        above: dict[int, ReachedSymbol] = {}
        for place, one in front.items():
            for user in sorted(self._users.get(place, ())):
                owners = self._classes.get(symbols[user].owner, ()) if symbols[user].owner else ()
                for new in (user, *owners):
                    if new not in found and new not in above:
                        above[new] = ReachedSymbol(symbols[new], level, one.via, one.lines)
        return above
