"""Counts the steps of a backtracking search, so that tests need no clock.

`re` has no counter of its own, so this module interprets what `re` parses. It tries alternatives in the order
in which `re` does, at every position of the text, without `re`'s optimizations for literal prefixes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

Next = Callable[[int], int | None]


@cache
def _parse(pattern: str, flags: int) -> tuple[int, list[Any]]:
    parsed = _parser.parse(pattern, flags)
    return parsed.state.flags, list(parsed)


class TooManyStepsError(Exception):
    """A search takes more steps than were allowed."""


class StepCounter:
    """Searches a text for all matches of a pattern and counts attempts to match one character or position.

    Raises TooManyStepsError beyond `limit` steps.
    """

    def __init__(self, pattern: str, flags: int, text: str, limit: int) -> None:
        self.flags, self.nodes = _parse(pattern, flags)
        self.text, self.limit, self.steps = text, limit, 0
        self.groups: dict[int, tuple[int, int]] = {}

    def run(self) -> int:
        """The steps of a search for all matches, as `re.sub` does."""
        place = 0
        while place <= len(self.text):
            end = self.match(self.nodes, place, lambda at: at)
            place = place + 1 if end is None else max(end, place + 1)
        return self.steps

    def match(self, nodes: Sequence[Any], at: int, then: Next) -> int | None:
        """Where a match of `nodes` and of what follows ends; None if there is no match."""
        if not nodes:
            return then(at)
        self.steps += 1
        if self.steps > self.limit:
            raise TooManyStepsError
        (kind, value), rest = nodes[0], nodes[1:]
        following: Next = lambda end: self.match(rest, end, then)  # noqa: E731
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            return self._repeat(kind, value, at, following)
        if kind is sre.BRANCH:
            return self._first(value[1], at, following)
        if kind is sre.SUBPATTERN:
            return self._group(value, at, following)
        if kind is sre.ATOMIC_GROUP:
            end = self.match(list(value), at, lambda end: end)
            return None if end is None else following(end)
        if kind in (sre.ASSERT, sre.ASSERT_NOT):
            return following(at) if self._assert(value, at) is (kind is sre.ASSERT) else None
        if kind is sre.GROUPREF:
            start, end = self.groups.get(value, (0, 0))
            same = self.text.startswith(self.text[start:end], at)
            return following(at + end - start) if same else None
        if kind is sre.AT:
            return following(at) if self._at(value, at) else None
        return following(at + 1) if self._character(kind, value, at) else None

    def _first(self, branches: Sequence[Any], at: int, then: Next) -> int | None:
        for branch in branches:
            if (end := self.match(list(branch), at, then)) is not None:
                return end
        return None

    def _group(self, value: Any, at: int, then: Next) -> int | None:
        number, added, removed, nodes = value
        before = self.flags

        def close(end: int) -> int | None:
            if number is not None:
                self.groups[number] = (at, end)
            self.flags = before
            return then(end)

        self.flags = (before | added) & ~removed
        found = self.match(list(nodes), at, close)
        self.flags = before
        return found

    def _repeat(self, kind: Any, value: Any, at: int, then: Next) -> int | None:
        least, most, nodes = value
        nodes = list(nodes)
        most = sys.maxsize if most is sre.MAXREPEAT else most
        if kind is sre.POSSESSIVE_REPEAT:
            count = 0
            while count < most and (end := self.match(nodes, at, lambda end: end)) is not None:
                if end == at:
                    break
                at, count = end, count + 1
            return then(at) if count >= least else None
        return self._again(nodes, kind is sre.MAX_REPEAT, (least, most), at, then)

    def _again(
        self, nodes: list[Any], greedy: bool, left: tuple[int, int], at: int, then: Next
    ) -> int | None:
        least, most = left

        def more() -> int | None:
            return self.match(
                nodes,
                at,
                lambda end: (
                    None
                    if end == at and least <= 0
                    else self._again(nodes, greedy, (least - 1, most - 1), end, then)
                ),
            )

        if least > 0:
            return more()
        if most <= 0:
            return then(at)
        if greedy:
            return found if (found := more()) is not None else then(at)
        return found if (found := then(at)) is not None else more()

    def _assert(self, value: Any, at: int) -> bool:
        direction, nodes = value
        if direction > 0:
            return self.match(list(nodes), at, lambda end: end) is not None
        low, high = nodes.getwidth()
        return any(
            self.match(list(nodes), at - width, lambda end: end if end == at else None) is not None
            for width in range(low, min(high, at) + 1)
        )

    def _at(self, where: Any, at: int) -> bool:
        text, lines = self.text, bool(self.flags & sre.SRE_FLAG_MULTILINE)
        if where in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            return at == 0 or (lines and where is sre.AT_BEGINNING and text[at - 1] == "\n")
        if where in (sre.AT_END, sre.AT_END_STRING):
            if at == len(text) or where is sre.AT_END_STRING:
                return at == len(text)
            return text[at] == "\n" if lines else text[at:] == "\n"
        edge = (at > 0 and _is_word(text[at - 1])) != (at < len(text) and _is_word(text[at]))
        return edge is (where is sre.AT_BOUNDARY)

    def _character(self, kind: Any, value: Any, at: int) -> bool:
        if at >= len(self.text):
            return False
        char = self.text[at]
        if kind is sre.ANY:
            return char != "\n" or bool(self.flags & sre.SRE_FLAG_DOTALL)
        if kind is sre.IN:
            return self._in(value, char)
        same = self._equal(char, value)
        return not same if kind is sre.NOT_LITERAL else same

    def _equal(self, char: str, code: int) -> bool:
        if self.flags & sre.SRE_FLAG_IGNORECASE:
            return char.lower() == chr(code).lower()
        return ord(char) == code

    def _in(self, items: Sequence[Any], char: str) -> bool:
        negated = items[0][0] is sre.NEGATE
        return negated is not any(self._is_one_of(kind, value, char) for kind, value in items[negated:])

    def _is_one_of(self, kind: Any, value: Any, char: str) -> bool:
        if kind is sre.RANGE:
            options = {char, char.swapcase()} if self.flags & sre.SRE_FLAG_IGNORECASE else {char}
            return any(value[0] <= ord(option) <= value[1] for option in options if len(option) == 1)
        if kind is sre.CATEGORY:
            name = str(value)
            found = (
                char.isdigit() if "DIGIT" in name else char.isspace() if "SPACE" in name else _is_word(char)
            )
            return found is not ("_NOT_" in name)
        return self._equal(char, value)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def count_steps(pattern: str, flags: int, text: str, limit: int) -> int:
    """The steps that a search for all matches of `pattern` takes in `text`; `limit` + 1 where it takes more.

    The recursion is some frames deep for each character, so texts have a few hundred characters at most.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        return StepCounter(pattern, flags, text, limit).run()
    except TooManyStepsError:
        return limit + 1
    finally:
        sys.setrecursionlimit(before)
