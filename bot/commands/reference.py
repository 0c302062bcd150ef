"""The table of all commands for docs/commands.md: `python -m bot.commands.reference`."""

from __future__ import annotations

import sys

from bot.commands.asking import Place
from bot.commands.registry import Action, Need, actions


def table() -> str:
    """Every command with what it does, where it may be said and by whom, as a Markdown table."""
    head = ["command", "what it does", "where", "who"]
    rows = [head, ["---"] * len(head), *(_row(action) for action in actions().values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(action: Action) -> list[str]:
    places = (
        "everywhere"
        if len(action.places) == len(Place)
        else ", ".join(sorted(place.value for place in action.places))
    )
    who = "write access" if action.need is Need.WRITER else "triage, or the pull request's author"
    return [f"`{action.verb.usage}`", action.verb.help, places, who]


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
