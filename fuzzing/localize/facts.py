"""Facts of a localization, each with its evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    """What one method found.

    what       the method: `ablation`, `passes`, `last_pass`, `stage`, `converter`, `subgraph`
    found      the compiler's names of the location; () if the method found none
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
