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
from bot.commands.job_reply import post_job_reply
from bot.config import parse_config
from bot.jobs.job_queue import JobQueue
from bot.jobs.registry import Lane
from bot.settings import Settings
from bot.store import Database, jobs, outcomes
from bot.store.models import Bug, Campaign, CampaignCase, Classification, Finding, Retest, Toolchain
from bot.store.outcomes import CacheKey
from bot.wiring.campaigns import campaign_services
from bot.worker import Worker
from fuzzing.outcomes import Outcome, Phase, Verdict
from tests.bot.campaigns import fakes
from tests.scenarios import fake_toolchain
from tests.support.crash_points import (
    Killer,
    make_tables,
    print_result,
    rows,
    run_until_complete,
    silence_logs,
)
from tests.support.postgres import addresses

TARGET, START = "octo/compiler", datetime(2026, 11, 20, 12, tzinfo=UTC)
CONFIG = fake_toolchain.configured().encode()
FAILING, PASSING = fakes.IDS["Add_regressed"], fakes.IDS["Abs_fine"]


def prepare(url: str) -> None:
    """A bug that passed on one commit and is to be asked about on another, by somebody in its issue."""
    make_tables(url)
    database = Database(url)
    config, bad = parse_config(CONFIG).to_json(), fakes.digest_of(fake_toolchain.BAD)
    times = {"first_seen": START, "last_seen": START}
    with database.transaction() as session:
        session.add(_toolchain(fake_toolchain.BAD))
        session.add(_toolchain(fake_toolchain.OTHER))
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
        session.add(Finding(campaign_id=1, classification=Classification.REGRESSION.value, **case))
        session.add(CampaignCase(campaign_id=1, rank=0, case_id=PASSING))
        outcomes.record(session, [passed(PASSING, CacheKey.of(bad, config))], START)
        session.add(_proof(fakes.digest_of(fake_toolchain.OTHER)))
        arguments = {"purpose": "fix", "commit": "c" * 40, "number": 7}
        jobs.enqueue(session, "retest", TARGET, "k", START, bug_id=1, arguments=arguments, requested_by="ada")
    database.close()


def _toolchain(release: str) -> Toolchain:
    made = Toolchain(digest=fakes.digest_of(release), backend="openvino", provisioner="release")
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
    made.runs, made.failed, made.control_passed, made.at = 3, 0, True, START
    return made


def services(settings: Settings) -> Services:
    """Stand-ins; commit c pins the good release, and those after it, a and b, the bad one."""
    replaced = fake_toolchain.fake_services(settings.data_dir)
    pins = {"c": fake_toolchain.GOOD, "a": fake_toolchain.BAD, "b": fake_toolchain.BAD}
    files = {
        sha * 40: {fakes.CONFIG: CONFIG, fakes.PIN: f"openvino=={pin}\n".encode()}
        for sha, pin in pins.items()
    }
    return campaign_services(settings, **(replaced | {"repositories": fakes.Repositories(files)}))


def live(folder: Path, url: str, killer: Killer) -> None:
    """One life of a worker: until nothing is due."""
    settings = Settings(data_dir=folder, workers=1)
    made = services(settings)
    database = Database(url)
    killer.arm(database)
    worker = Worker(JobQueue(database, settings, made, Lane.LONG, reply=post_job_reply))
    worker.start(free_other_leases=True)
    while worker.run_once():
        pass
    database.close()


def main(folder: Path) -> None:
    """Until a life has no commit of that number any more."""
    silence_logs()
    killers = [Killer()]
    with addresses() as address:
        while killers:
            killer = killers.pop(0)
            there = folder / killer.name.replace(" ", "-")
            there.mkdir()
            prepare(url := address(there))
            lives = run_until_complete(partial(live, there, url), killer, most=2)
            print_result(killer, lives, rows(url))
            if killer.moment == "never":
                killers += [Killer(moment, 1) for moment in ("before commit", "after commit")]
            elif lives > 1:
                killers.append(Killer(killer.moment, killer.number + 1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
