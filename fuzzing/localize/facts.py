"""What a localization tells: small facts, each with how it was got."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    """One thing that is known of where a failure is.

    what       the way that found it: `ablation`, `passes`, `last_pass`, `stage`, `converter`, `subgraph`
    found      names of what is to blame, in the compiler's own words; () if this way could not tell
    how        what was done and what it showed, as a sentence
    runs       how often the compiler was run for it
    confirmed  whether processes of their own agree; None for what was noted, not tried
    """

    what: str
    found: tuple[str, ...]
    how: str
    runs: int = 0
    confirmed: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The fact as JSON."""
        return asdict(self)
