"""What jobs run: a few cases in fresh processes, on the build of a commit, a release or a campaign."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bot.bisection.commits import Revision, revisions
from bot.bugs.verdicts import RUNS, Tally, tally
from bot.campaigns.attend import Sink, attend
from bot.campaigns.building import build, row
from bot.campaigns.provenance import origin
from bot.campaigns.services import Read
from bot.campaigns.shards import written
from bot.campaigns.signing import alike
from bot.config import CONFIG_PATH, RepositoryConfig
from bot.config.defaults import PIN_FILES
from bot.config.sections import exact_pin
from bot.errors import ConfigError, RefusalError, RunnerError
from bot.jobs.doing import Doing
from bot.store import campaigns, findings, retests
from bot.store.campaigns import Session
from bot.store.models import Bug, Campaign
from bot.store.outcomes import CacheKey
from fuzzing import backends
from fuzzing.outcomes import Outcome
from fuzzing.triage.kinship import kinship

_PIN = "requirements.txt"


@dataclass(frozen=True)
class Place:
    """A build to run cases on.

    commit  the target's commit that it is of, "" for a release that nobody pinned
    """

    toolchain: str
    python: str
    label: str
    commit: str = ""


@dataclass(frozen=True)
class Known:
    """A bug, the campaign that saw it last, and its case: the reduced one, or one as it was found."""

    bug: Bug
    campaign: Campaign
    config: RepositoryConfig
    case: str


def known(session: Session, doing: Doing) -> Known:
    """The bug that the job is about. Raises RefusalError where there is nothing to run."""
    assert doing.errand.bug_id is not None
    bug = session.get_one(Bug, doing.errand.bug_id)
    campaign = session.get(Campaign, bug.campaign_id) if bug.campaign_id is not None else None
    case = bug.case_id or findings.case_of(session, bug.id)
    if campaign is None or not case:
        raise RefusalError("there is no failing program of it to run: the campaign that found it is gone")
    return Known(bug, campaign, RepositoryConfig.from_json(campaign.config), case)


def at_head(doing: Doing, campaign: Campaign) -> Place:
    """The build that a campaign tested; made again where it is gone from the disk."""
    digest = campaign.head_toolchain
    if digest is None:
        raise RefusalError(f"campaign {campaign.id} has no build: it ended before it had one")
    with doing.database.reading() as session:
        known = campaigns.toolchain(session, digest)
    if Path(known.python).exists():
        return Place(digest, known.python, known.label, campaign.head)
    return at_commit(doing, campaign, campaign.head)


def at_base(doing: Doing, campaign: Campaign) -> Place | None:
    """The build that a campaign compared with, made again where it is gone; None where it had none."""
    if campaign.base_toolchain is None:
        return None
    with doing.database.reading() as session:
        known = campaigns.toolchain(session, campaign.base_toolchain)
    if Path(known.python).exists():
        return Place(known.digest, known.python, known.label, campaign.base)
    return at_commit(doing, campaign, campaign.base)


def at_commit(doing: Doing, campaign: Campaign, commit: str) -> Place:
    """The build of a commit of the campaign's repository. Raises as the provisioner does."""
    read = partial(doing.services.repositories.read, campaign.target, commit)
    config = attend(doing, lambda *_: _config(doing, campaign, read))
    return _made(doing, config, read, commit)


def _config(doing: Doing, campaign: Campaign, read: Read) -> Any:
    """The repository's own words at a commit; where it had none yet, those that the campaign went by."""
    return doing.services.own_config(read) or doing.services.restore_config(campaign.config)


def at_release(doing: Doing, campaign: Campaign, release: str) -> Place:
    """The build of a released version, as if the campaign's repository pinned it, all else as at its head."""
    config = RepositoryConfig.from_json(campaign.config)
    package = config.toolchain.package or backends.get(config.backend).package
    with doing.database.reading() as session:
        told = campaigns.toolchain(session, campaign.head_toolchain or "").requirements
    others = [
        str(pin) for pin in told if exact_pin(Requirement(str(pin))) and _name(str(pin)) != _name(package)
    ]
    text = "\n".join([f"{package}=={release}", *others]).encode()
    pinned = config.model_copy(update={"toolchain": config.toolchain.model_copy(update={"pin": _PIN})})
    return _made(doing, pinned, lambda path: text if path == _PIN else None, "")


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def commits(doing: Doing, campaign: Campaign) -> list[Revision]:
    """The commits from the campaign's base to its head that change what is built, those two included."""
    config = RepositoryConfig.from_json(campaign.config)
    paths = tuple(dict.fromkeys((CONFIG_PATH, config.toolchain.pin, *PIN_FILES)))
    files = doing.services.repositories
    changing = attend(doing, lambda *_: files.commits(campaign.target, campaign.base, campaign.head, paths))
    return revisions([campaign.base, *changing], partial(_built, doing, campaign))


def _built(doing: Doing, campaign: Campaign, commit: str) -> tuple[str, str] | None:
    doing.look()
    read = partial(doing.services.repositories.read, campaign.target, commit)
    try:
        spec: Any = doing.services.resolve(_config(doing, campaign, read), read)
    except ConfigError:  # a commit that says nothing we understand
        return None
    return spec.digest, spec.label


def same(doing: Doing, known: Known, outcome: Outcome) -> bool:
    """Whether an outcome shows the bug: the symptom that its signature was made of."""
    if not outcome.verdict.accuses:
        return False
    about = origin(doing.corpus, outcome.case)
    raw = doing.services.sign(outcome, about.operator, about.frontend)
    if raw.key == known.bug.signature:
        return True
    # Of a case that was reduced; others go by the key alone.
    return "signature" in known.bug.facts and alike(raw.fields, known.bug.facts["signature"])


def akin(doing: Doing, known: Known, outcome: Outcome) -> bool:
    """Whether an outcome that is not the bug's symptom may show it in other words, as other builds do."""
    if not outcome.verdict.accuses or "signature" not in known.bug.facts:
        return False
    about = origin(doing.corpus, outcome.case)
    raw = doing.services.sign(outcome, about.operator, about.frontend)
    return bool(kinship(raw.fields, known.bug.facts["signature"]))


def _made(doing: Doing, config: Any, read: Read, commit: str) -> Place:
    services = doing.services
    ready = build(doing, services, doing.settings.data_dir, config, read)
    with doing.database.transaction() as session:
        campaigns.record_toolchain(session, row(ready, services.clock.now()))
    return Place(ready.digest, str(ready.python), ready.spec.label, commit)


def run(
    doing: Doing, config: RepositoryConfig, place: Place, cases: Sequence[str], repeats: int
) -> dict[str, list[Outcome]]:
    """The outcomes of each case, each run in a process of its own. Raises RunnerError if some are missing."""
    shard = _shard(doing, config, place, cases, fresh=True, repeats=repeats)
    heard = _Heard()
    attend(doing, lambda on_event, stop: doing.services.runner.run(shard, on_event, stop), heard)
    missing = [case for case in cases if len(heard.outcomes[case]) < repeats]
    if missing:
        raise RunnerError(
            f"{len(missing)} of {len(cases)} cases were not run {repeats} times on {place.label}"
        )
    return dict(heard.outcomes)


def control(session: Session, known: Known) -> str:
    """A case that must pass on every healthy build: the first that passed where the bug was seen last."""
    key = CacheKey.of(known.campaign.head_toolchain or "", known.campaign.config)
    return retests.control(session, known.campaign.id, key, known.case)


def tallied(doing: Doing, known: Known, control: str, place: Place) -> Tally:
    """Runs the bug's case, and beside it one that must pass, in fresh processes on a build."""
    seen = run(doing, known.config, place, [known.case], RUNS)[known.case]
    beside = run(doing, known.config, place, [control], 1)[control] if control else []
    shows = [same(doing, known, outcome) for outcome in seen]
    worded = [not shown and akin(doing, known, one) for one, shown in zip(seen, shows, strict=True)]
    return tally(seen, shows, beside, worded)


def tool(
    doing: Doing, config: RepositoryConfig, place: Place, case: str, module: str, *arguments: str
) -> list[dict[str, Any]]:
    """The events of a data-plane program that takes a shard of one case; its progress is told."""
    shard = _shard(doing, config, place, [case], fresh=False, repeats=1)
    heard = _Events(doing, module)
    with tempfile.TemporaryDirectory(prefix="assay-job-") as folder:
        given = [written(shard, Path(folder) / "shard.json"), *arguments]
        attend(doing, lambda on_event, stop: doing.services.run_tool(module, given, on_event, stop), heard)
    return heard.events


def _shard(
    doing: Doing,
    config: RepositoryConfig,
    place: Place,
    cases: Sequence[str],
    *,
    fresh: bool,
    repeats: int,
) -> Any:
    return doing.services.make_shard(
        config,
        corpus=str(doing.corpus),
        cases=tuple(cases),
        backend=config.backend,
        toolchain=place.toolchain,
        python=place.python,
        device=config.device,
        profile=config.profile,
        options=dict(config.options),
        workers=1,
        fresh=fresh,
        repeats=repeats,
        ablate=False,
        budget_s=None,
    )


class _Events(Sink):
    """Keeps what a program says, and passes it on as progress."""

    def __init__(self, doing: Doing, title: str) -> None:
        self._doing, self._title = doing, title
        self.events: list[dict[str, Any]] = []

    def add(self, event: dict[str, Any]) -> None:
        """Takes one event."""
        self.events.append(event)
        self._doing.progress(len(self.events), 0, f"{self._title}: {event.get('event', '')}")


class _Heard(Sink):
    """Collects the outcomes of a shard."""

    def __init__(self) -> None:
        self.outcomes: defaultdict[str, list[Outcome]] = defaultdict(list)

    def add(self, event: dict[str, Any]) -> None:
        """Takes one outcome; other events say nothing here."""
        if event.get("event") == "outcome":
            outcome = Outcome.from_json(event.get("outcome", {}))
            self.outcomes[outcome.case].append(outcome)
