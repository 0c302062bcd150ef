"""The buttons of our check runs. Who presses one is checked, and what it does is done, by
`bot.pulls.check_run_actions`.

GitHub's bounds (REST API, checks, `actions`): at most three, a label of 20 characters, a description of 40,
an identifier of 20; longer ones are refused with a 5xx by some servers, so they are checked here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta

from bot.errors import InternalError

MAX_BUTTONS = 3
#: How long a muted operator is silent: long enough for a release, short enough to be met again.
MUTE_FOR = timedelta(days=30)


@dataclass(frozen=True)
class Button:
    """One of them; `identifier` comes back when it is pressed."""

    label: str
    description: str
    identifier: str

    def __post_init__(self) -> None:
        if len(self.label) > 20 or len(self.description) > 40 or len(self.identifier) > 20:
            raise InternalError(f"GitHub takes no button as long as {self}")


RERUN = Button("Re-run", "Test this commit again", "rerun")
REDUCE = Button("Reduce further", "Make the failing cases smaller", "reduce")
FILE = Button("File reports", "Release the issues that are held", "file")
MUTE = Button("Mute operators", f"Silence them here for {MUTE_FOR.days} days", "mute")


def actions(buttons: Iterable[Button]) -> list[dict[str, str]]:
    """The buttons as a check run's `actions`."""
    given = [asdict(button) for button in buttons]
    if len(given) > MAX_BUTTONS:
        raise InternalError(f"a check run has {MAX_BUTTONS} buttons at most, not {len(given)}")
    return given
