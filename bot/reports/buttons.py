"""The buttons of check runs; `bot.pulls.check_run_actions` handles presses.

GitHub's limits (REST API, checks, `actions`): three buttons, 20 characters of label and of identifier, 40 of
description. Some servers respond to longer ones with a 5xx, so they are checked here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta

from bot.errors import InternalError

MAX_BUTTONS = 3
#: How long a muted operator stays muted: about one release.
MUTE_FOR = timedelta(days=30)


@dataclass(frozen=True)
class Button:
    """One button; GitHub sends `identifier` when it is pressed."""

    label: str
    description: str
    identifier: str

    def __post_init__(self) -> None:
        if len(self.label) > 20 or len(self.description) > 40 or len(self.identifier) > 20:
            raise InternalError(f"a label, description or identifier is too long for GitHub: {self}")


RERUN = Button("Re-run", "Test this commit again", "rerun")
REDUCE = Button("Reduce further", "Make the failing cases smaller", "reduce")
FILE = Button("File reports", "Approve the issues that are held", "file")
MUTE = Button("Mute operators", f"Silence them here for {MUTE_FOR.days} days", "mute")


def actions(buttons: Iterable[Button]) -> list[dict[str, str]]:
    """The buttons as a check run's `actions`."""
    given = [asdict(button) for button in buttons]
    if len(given) > MAX_BUTTONS:
        raise InternalError(f"a check run has {MAX_BUTTONS} buttons at most, not {len(given)}")
    return given
