"""Isra's de-duplication: the same message and stack, exactly or nearly."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from fuzzing.deduplicate.strategies.base import Failure, register_strategy

#: From which similarity on two messages are one (released script).
SIMILAR = 0.8


@register_strategy("isra-exact")
def by_equal_text(failures: Sequence[Failure]) -> list[str]:
    """The message and the stack, letter by letter."""
    return [repr(_text(failure)) for failure in failures]


@register_strategy("isra")
def by_similar_text(failures: Sequence[Failure]) -> list[str]:
    """The first failure before it with the same stack and a message at least SIMILAR.

    Which failures come first makes a difference, as it does in the script.
    """
    first: dict[tuple[str, ...], list[str]] = {}
    labels = []
    for failure in failures:
        message, *stack = _text(failure)
        seen = first.setdefault(tuple(stack), [])
        near = next((one for one in seen if _is_similar(one, message)), None)
        if near is None:
            seen.append(near := message)
        labels.append(repr((near, *stack)))
    return labels


def _is_similar(one: str, other: str) -> bool:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return one == other or (matcher.real_quick_ratio() >= SIMILAR and matcher.ratio() >= SIMILAR)


def _text(failure: Failure) -> tuple[str, ...]:
    """What the script compares; the summary where there is no message, as for wrong results."""
    seen = failure.outcome.evidence
    return (seen.message or failure.outcome.summary, seen.error or seen.signal, *seen.traceback)
