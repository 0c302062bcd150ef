"""A comment on one of our issues that is updated in place."""

from __future__ import annotations

from bot.github.effects.comment import Sticky
from bot.github.effects.kind import kind


@kind
class Note(Sticky):
    """Like the sticky comment, on an issue."""

    name = "note"
    permission = "issues=write"
