"""Symbols of documented shapes, and their values in one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fuzzing.generate.docter.expressions import ExpressionError, UnboundError, evaluate
from fuzzing.generate.docter.record import Definition


class Scope(Mapping[str, Any]):
    """Parameters' values, symbols bound so far, and symbol definitions.

    A parameter that is None is ignored: a symbol of its name is free.

    explicit  the parameters that the call itself gives
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        definitions: tuple[Definition, ...],
        explicit: frozenset[str] = frozenset(),
    ) -> None:
        self.explicit = explicit
        self.values_ = {name: value for name, value in values.items() if value is not None}
        self.symbols: dict[str, Any] = {}
        self._definitions = {item.symbol: item.expression for item in definitions}

    def fork(self) -> Scope:
        """A copy with its own bindings."""
        other = Scope(self.values_, (), self.explicit)
        other._definitions = self._definitions
        other.symbols = dict(self.symbols)
        return other

    def __getitem__(self, name: str) -> Any:
        if name in self.symbols:
            return self.symbols[name]
        if name in self.values_:
            return self.values_[name]
        if name in self._definitions:
            try:
                return evaluate(self._definitions[name], self)
            except (UnboundError, ExpressionError):
                pass
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        yield from {**self.values_, **self.symbols}

    def __len__(self) -> int:
        return len({**self.values_, **self.symbols})


Lengths = tuple[int, ...]


def match_pattern(tokens: tuple[str, ...], lengths: Lengths, scope: Scope) -> Scope | None:
    """The bindings under which a pattern gives `lengths`; None if there are none.

    A token that cannot be computed yet (it has an unbound symbol inside an expression) fits anything.
    """
    if not tokens:
        return scope if not lengths else None
    head, rest = tokens[0], tokens[1:]
    if head.startswith("*"):
        return _match_star(head, rest, lengths, scope)
    if not lengths:
        return None
    bound = match_token(head, lengths[0], scope)
    return None if bound is None else match_pattern(rest, lengths[1:], bound)


def _match_star(head: str, rest: tuple[str, ...], lengths: Lengths, scope: Scope) -> Scope | None:
    known = resolve_star(head, scope)
    if known is not None:
        return match_pattern(rest, lengths[len(known) :], scope) if lengths[: len(known)] == known else None
    for count in range(len(lengths) - sum(not token.startswith("*") for token in rest), -1, -1):
        forked = scope.fork()
        forked.symbols[head] = lengths[:count]
        found = match_pattern(rest, lengths[count:], forked)
        if found is not None:
            return found
    return None


def resolve_star(head: str, scope: Scope) -> Lengths | None:
    """The value of `*name`: bound before, or a parameter that holds a list; None if it is free."""
    if head in scope.symbols:
        bound: Lengths = scope.symbols[head]
        return bound
    value = scope.values_.get(head[1:]) if len(head) > 1 else None
    if isinstance(value, (list, tuple)):
        return tuple(value)
    return (value,) if isinstance(value, int) else None


def match_token(token: str, length: int, scope: Scope) -> Scope | None:
    """The bindings under which one token is `length`; None if there are none."""
    try:
        value = evaluate(token, scope)
    except UnboundError:
        if not token.isidentifier():
            return scope
        forked = scope.fork()
        forked.symbols[token] = length
        return forked
    except ExpressionError:
        return scope
    if isinstance(value, (list, tuple)) or not isinstance(value, (int, float)):
        return scope
    return scope if value == length else None


def is_broadcastable(lengths: Lengths, to: Lengths) -> bool:
    """Whether a tensor of `lengths` broadcasts to a shape without enlarging it."""
    tail = to[len(to) - len(lengths) :]
    return len(lengths) <= len(to) and all(
        have in (1, want) for have, want in zip(lengths, tail, strict=True)
    )
