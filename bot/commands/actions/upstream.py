"""`/assay upstream`: releases what is held, so that it is sent."""

from __future__ import annotations

from bot.bugs import filing
from bot.commands.asking import Asked, Place, Receipt, refused
from bot.commands.registry import action
from bot.reports.templating import counted
from bot.store import Session, bugs, outbox


@action(
    "upstream",
    "Releases the report that is held about this; on a pull request, all that its campaign holds.",
    places=frozenset({Place.BUG, Place.PULL}),
)
def release(session: Session, asked: Asked) -> Receipt:
    """Lets held effects go out."""
    held = outbox.held_about(
        session, asked.target, bug_id=asked.bug.id if asked.bug else None, pull=asked.number
    )
    if not held:
        return refused("Nothing is held about this.")
    for effect in held:
        if effect.kind == outbox.ISSUE:  # once more on the newest commit before it goes out
            bug = bugs.of_id(session, effect.bug_id)
            filing.ask(session, effect.key, asked.target, bug, asked.at, asked.author, asked.number)
        else:
            outbox.release(session, effect.key)
    return Receipt(at_work=True, why=f"{counted(len(held), 'report')} released")
