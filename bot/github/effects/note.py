"""A comment on one of our issues that is kept up to date."""

from __future__ import annotations

from bot.github.effects.comment import Sticky
from bot.github.effects.kind import kind


@kind
class Note(Sticky):
    """As the one comment of a pull request, on an issue: made once, then edited in place."""

    name = "note"
    permission = "issues=write"
