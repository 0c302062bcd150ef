"""`bisect`: the commit and the release in which a bug began, and the release in which it ended, if it did."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

from bot.bisection.commits import sentence
from bot.bisection.journal import Journal
from bot.bisection.probing import Probing, Question
from bot.bisection.releases import Range, releases
from bot.bisection.rule import Rule
from bot.bisection.search import bisect as search
from bot.bisection.telling import lines, told
from bot.campaigns.attend import attend
from bot.campaigns.services import OnEvent
from bot.errors import RefusalError
from bot.jobs import blaming, running
from bot.jobs.doing import Doing
from bot.jobs.registry import kind
from bot.jobs.running import Known
from bot.locks import locked
from bot.reports import text
from bot.store import bugs, campaigns
from bot.store.models import Bug
from bot.toolchains.installer import Installer
from fuzzing import backends
from fuzzing.cases import Corpus
from fuzzing.execute.shard import Shard

#: Ours: how far back is looked where whoever asks names no releases. Calendar versions count years.
YEARS = 3


@kind("bisect")
def bisect(doing: Doing) -> None:
    """Asks when it began; and when it ended, where the newest release does not show it."""
    with doing.database.reading() as session:
        known = running.known(session, doing)
        toolchain = campaigns.toolchain(session, known.campaign.head_toolchain or "")
    package = known.config.toolchain.package or backends.get(known.config.backend).package
    if toolchain.provisioner != "release" or package not in toolchain.versions:
        raise RefusalError(f"its builds are no releases of {package} but made by {toolchain.provisioner!r}")
    wanted = _range(doing, package, toolchain.versions[package])
    since = attend(doing, lambda on_event, stop: _ask(doing, known, wanted, on_event, stop, fixed_by=False))
    answers = {"since": since}
    brought = None if doing.errand.arguments.get("releases") else blaming.brought(doing, known)
    if _gone(since):
        answers["until"] = attend(
            doing, lambda on_event, stop: _ask(doing, known, wanted, on_event, stop, fixed_by=True)
        )
    with doing.transaction() as (session, job):
        facts = answers | ({"commits": brought} if brought else {})
        bugs.learn(session, session.get_one(Bug, known.bug.id), "bisection", facts)
        said = ". ".join(
            [*([sentence(brought)] if brought else []), *(lines(one)[0] for one in answers.values())]
        )
        shown = "\n\n".join(text.fence("\n".join(lines(one))) for one in answers.values())
        doing.done(session, job, said, answer=f"{text.plain(said)}\n\n{shown}", **facts)


def _range(doing: Doing, package: str, version: str) -> Range:
    asked = str(doing.errand.arguments.get("releases") or "")
    if asked:
        return Range.parse(f"{package}:{asked}")
    major = int(version.partition(".")[0])
    oldest = major - YEARS if major > 2000 else 0
    return Range.parse(f"{package}:{oldest}..{version}")


def _ask(
    doing: Doing, known: Known, wanted: Range, on_event: OnEvent, stop: threading.Event, *, fixed_by: bool
) -> dict[str, Any]:
    def say(line: str) -> None:
        on_event({"note": line})

    began = time.monotonic()
    question = replace(_question(doing, known, wanted.package), fixed_by=fixed_by)
    folder = doing.settings.data_dir / "bisections"
    folder.mkdir(parents=True, exist_ok=True)
    found = releases(wanted, Installer(folder), folder / "releases")
    ordered = found[::-1] if fixed_by else found
    journal = Journal(folder, question.identity)
    with locked(journal.path.with_suffix(".lock")):
        runner = _Stopped(doing, stop)
        probing = Probing(question, ordered, doing.settings.data_dir, journal, runner, say)
        answer = search(len(ordered), probing, Rule())
    return told(question, wanted, ordered, answer, probing, time.monotonic() - began)


def _question(doing: Doing, known: Known, package: str) -> Question:
    corpus, config = doing.corpus, known.config
    return Question(
        corpus=corpus,
        case=Corpus(corpus).get(known.case),
        backend=config.backend,
        package=package,
        device=config.device,
        options=dict(config.options),
        profile=config.profile,
    )


def _gone(answer: dict[str, Any]) -> bool:
    """Whether the newest release that was tried passes."""
    rows = answer["probed"]
    return bool(rows) and rows[-1]["bad"] == 0 and rows[-1]["good"] > 0


class _Stopped:
    """The service's runner, which ends with the job."""

    def __init__(self, doing: Doing, stop: threading.Event) -> None:
        self._runner, self._stop = doing.services.runner, stop

    def run(self, shard: Shard, on_event: OnEvent, _stop: threading.Event, /) -> None:
        """Runs a shard until the job's own end."""
        self._runner.run(shard, on_event, self._stop)
