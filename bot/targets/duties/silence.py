"""Bugs that nothing shows any more are put away, once a long silence and their programs agree."""

from __future__ import annotations

from datetime import timedelta

from bot.bugs import silence as rule
from bot.store import bugs
from bot.targets.duties import Done, Work, duty

#: Bugs looked at in one transaction: others want to write, too.
AT_ONCE = 100


@duty("silence", every=timedelta(days=1))
def silence(work: Work) -> Done:
    """Looks at every bug that was not seen for a while."""
    last, away = 0, 0
    while True:
        work.look()
        with work.world.database.transaction() as session:
            quiet = bugs.quiet_since(session, work.at - rule.SHORTEST, last, AT_ONCE)
            away += sum(rule.look(session, bug, work.at) for bug in quiet)
            last = quiet[-1].id if quiet else last
        if len(quiet) < AT_ONCE:
            return Done(f"{away} bugs put away" if away else "nothing to put away")
