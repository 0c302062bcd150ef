"""Does one job again and again, killed with SIGKILL at each of its commits; prints what is left.

    python -m tests.bot.jobs.killing FOLDER

prints one JSON object a line: {"killed": "never" | "before commit 3" | …, "lives": N, "rows": {…}}.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bot.campaigns.services import Services
from bot.compose.campaigns import campaign_services
from bot.config import parse_config
from bot.jobs.registry import Lane
from bot.jobs.worker import Worker
from bot.settings import Settings
from bot.store import Database, jobs, outcomes
from bot.store.models import Bug, Campaign, CampaignCase, Finding, Retest, Standing, Toolchain
from bot.store.outcomes import CacheKey
from fuzzing.outcomes import Outcome, Phase, Verdict
from tests.bot.campaigns import standins
from tests.scenarios import toolchain
from tests.support.killing import Killer, be_quiet, make_tables, rows, survive, tell
from tests.support.postgres import addresses

TARGET, START = "octo/compiler", datetime(2026, 11, 20, 12, tzinfo=UTC)
CONFIG = toolchain.configured().encode()
FAILING, PASSING = standins.IDS["Add_regressed"], standins.IDS["Abs_fine"]


def prepare(url: str) -> None:
    """A bug that passed on one commit and is to be asked about on another, by somebody in its issue."""
    make_tables(url)
    database = Database(url)
    config, bad = parse_config(CONFIG).to_json(), standins.digest_of(toolchain.BAD)
    times = {"first_seen": START, "last_seen": START}
    with database.transaction() as session:
        session.add(_toolchain(toolchain.BAD))
        session.add(_toolchain(toolchain.OTHER))
        session.flush()
        campaign = Campaign(target=TARGET, head="a" * 40, ref="refs/heads/main", trigger="push", state="done")
        campaign.config, campaign.head_toolchain, campaign.base = config, bad, "c" * 40
        campaign.created_at = campaign.updated_at = START
        session.add(campaign)
        session.add(
            Bug(target=TARGET, signature="s", title="Add", state="fixed", issue=7, campaign_id=1, **times)
        )
        session.flush()
        case = {"case_id": FAILING, "signature": "s", "bug_id": 1, "verdict": "crash"}
        session.add(Finding(campaign_id=1, standing=Standing.REGRESSION.value, **case))
        session.add(CampaignCase(campaign_id=1, rank=0, case_id=PASSING))
        outcomes.record(session, [passed(PASSING, CacheKey.of(bad, config))], START)
        session.add(_proof(standins.digest_of(toolchain.OTHER)))
        arguments = {"purpose": "fix", "commit": "c" * 40, "number": 7}
        jobs.ask(session, "retest", TARGET, "k", START, bug_id=1, arguments=arguments, asked_by="ada")
    database.close()


def _toolchain(release: str) -> Toolchain:
    made = Toolchain(digest=standins.digest_of(release), backend="openvino", provisioner="release")
    made.label, made.python, made.versions, made.requirements = f"openvino {release}", "/nowhere", {}, []
    made.created_at = START
    return made


def passed(case: str, key: CacheKey) -> Outcome:
    """A case that passed."""
    return Outcome(
        case=case,
        backend=key.backend,
        toolchain=key.toolchain,
        device=key.device,
        verdict=Verdict.PASS,
        phase=Phase.RUN,
        summary="",
        durations={},
        configuration=key.configuration,
    )


def _proof(digest: str) -> Retest:
    made = Retest(bug_id=1, number=0, purpose="fix", commit="b" * 40, toolchain=digest)
    made.runs, made.failed, made.healthy, made.at = 3, 0, True, START
    return made


def services(settings: Settings) -> Services:
    """Stand-ins; commit c pins the good release, and those after it, a and b, the bad one."""
    replaced = toolchain.replaced(settings.data_dir)
    pins = {"c": toolchain.GOOD, "a": toolchain.BAD, "b": toolchain.BAD}
    files = {
        sha * 40: {standins.CONFIG: CONFIG, standins.PIN: f"openvino=={pin}\n".encode()}
        for sha, pin in pins.items()
    }
    return campaign_services(settings, **(replaced | {"repositories": standins.Repositories(files)}))


def live(folder: Path, url: str, killer: Killer) -> None:
    """One life of a worker: until nothing is due."""
    settings = Settings(data_dir=folder, workers=1)
    made = services(settings)
    database = Database(url)
    killer.arm(database)
    worker = Worker(database, settings, made, Lane.LONG)
    worker.start(steal=True)
    while worker.run_once():
        pass
    database.close()


def main(folder: Path) -> None:
    """Until a life has no commit of that number any more."""
    be_quiet()
    killers = [Killer()]
    with addresses() as address:
        while killers:
            killer = killers.pop(0)
            there = folder / killer.name.replace(" ", "-")
            there.mkdir()
            prepare(url := address(there))
            lives = survive(partial(live, there, url), killer, most=2)
            tell(killer, lives, rows(url))
            if killer.moment == "never":
                killers += [Killer(moment, 1) for moment in ("before commit", "after commit")]
            elif lives > 1:
                killers.append(Killer(killer.moment, killer.number + 1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
