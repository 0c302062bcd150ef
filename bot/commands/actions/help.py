"""`/assay help`: what can be said."""

from __future__ import annotations

from bot.commands.asking import Asked, Receipt
from bot.commands.registry import Need, action, actions
from bot.store import Session


@action("help", "Lists the commands.", need=Need.READER)
def tell(_session: Session, asked: Asked) -> Receipt:
    """The commands that make sense here, with their help."""
    here = [each for each in actions().values() if asked.place in each.places]
    rows = [f"| `{each.verb.usage}` | {each.verb.help} |" for each in here]
    return Receipt("\n".join(["| command | what it does |", "| --- | --- |", *rows]))
