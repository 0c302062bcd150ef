"""The whole way, nothing stood in for: a signed push to `assay serve`, real releases, rendered reports."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest

from bot import demo
from bot.artifacts import Artifacts
from bot.campaigns.plan.catalog import catalog_path
from bot.config import RepositoryConfig, ToolchainConfig
from bot.runners.reproducer_run import Ending, try_script
from bot.store import Database, campaigns, findings, inbox, now, outbox
from bot.store.counts import campaigns_by_state, effects_by_state
from bot.store.models import CampaignState
from bot.store.progress import CampaignProgress
from fuzzing.cases import Corpus
from tests.support import live_service
from tests.support.live_service import BASE, HEAD, REGRESSED, wait_for

pytestmark = pytest.mark.network

#: Nothing here ends because time is over, however busy the machine is.
CONFIG = demo.CONFIG.replace("budget: 4m", "budget: 20m").replace("budget: 1m", "budget: 10m")
CAMPAIGN_S = 2 * 30 * 60.0  # twice those budgets
#: So many of the source's tests are the cases; AffineGrid's are among the first twenty-five.
FIRST = 100
UNINSTALLABLE = "1.2.3"


@dataclass(frozen=True)
class House:
    """A service at work in a data folder."""

    data_dir: Path
    running: demo.RunningService
    database: Database

    def push(self, before: str, after: str, release: str = HEAD) -> str:
        return demo.deliver(self.running, demo.DemoRepository(before, after, "", release))

    def end_of(self, delivery: str) -> CampaignProgress:
        """Waits for the campaign's end, but not between two tries of a step."""

        def look() -> CampaignProgress | None:
            self._hurry(delivery)
            return live_service.ended(self.database, delivery)

        found = wait_for(look, "the campaign's end", 0.1, CAMPAIGN_S)
        assert found is not None
        return found

    def _hurry(self, delivery: str) -> None:
        there = live_service.seen(self.database, delivery)
        if there is None or there.state.ended:
            return
        with self.database.transaction() as session:
            campaign = campaigns.get(session, there.campaign)
            if campaign.owner == "" and campaign.lease_until is not None:
                campaign.lease_until = now()

    def outbox(self, campaign: int) -> dict[str, dict[str, Any]]:
        """The campaign's effects as they would be sent: key → request."""
        with self.database.reading() as session:
            keys = [f"{one.kind}-{one.key}" for one in outbox.of_campaign(session, campaign)]
        texts = live_service.outbox(self.data_dir)
        return {key: json.loads(texts[f"{key}.json"]) for key in keys}

    def ready(self) -> int:
        return httpx.get(f"{self.running.url}/readyz", timeout=600).status_code

    def kept(self) -> list[Any]:
        """What there is: deliveries, campaigns, effects, files."""
        with self.database.reading() as session:
            rows = [inbox.counts(session), campaigns_by_state(session), effects_by_state(session)]
        return [*rows, live_service.outbox(self.data_dir)]


@contextmanager
def house(data_dir: Path, repositories: Path) -> Iterator[House]:
    with (
        demo.service(data_dir, repositories, data_dir / "log") as running,
        live_service.rows(data_dir) as database,
    ):
        yield House(data_dir, running, database)


@dataclass(frozen=True)
class Whole:
    """A service whose first campaign has ended, and that campaign."""

    house: House
    stage: demo.DemoRepository
    delivery: str
    seen: CampaignProgress

    @property
    def artifacts(self) -> Path:
        return Artifacts("", self.house.data_dir).folder(self.seen.campaign)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    root = tmp_path_factory.mktemp("whole")
    stage = demo.make_repository(root / "repositories", BASE, HEAD, CONFIG)
    (root / "data").mkdir()
    known = live_service.migrate(root / "library")
    live_service.write_catalogue(root / "library", root / "data", list(known.values())[:FIRST])
    with house(root / "data", root / "repositories") as inhabited:
        delivery = demo.deliver(inhabited.running, stage)
        yield Whole(inhabited, stage, delivery, inhabited.end_of(delivery))


def test_a_push_becomes_reports_of_what_it_broke(whole: Whole) -> None:
    assert (whole.seen.state, whole.seen.reason) == (CampaignState.DONE, "")
    with whole.house.database.reading() as session:
        standings = {
            one.case_id: one.classification for one in findings.of_campaign(session, whole.seen.campaign)
        }
    corpus = Corpus(whole.house.data_dir / "corpus")
    told = {
        origin.test: classification
        for case_id, classification in standings.items()
        if not (origin := corpus.get(case_id).provenance).is_reduced
    }
    assert {test for test, classification in told.items() if classification == "regression"} == REGRESSED

    effects = whole.house.outbox(whole.seen.campaign)
    assert sorted(key.split("-")[0] for key in effects) == ["check_run", "issue", "issue"]
    assert len(live_service.outbox(whole.house.data_dir)) == 6, "each as a request and as a text, no more"
    for key, effect in effects.items():
        kind = key.split("-")[0]
        assert effect["method"] == "POST"
        assert effect["path"] == f"/repos/{demo.TARGET}/{'issues' if kind == 'issue' else 'check-runs'}"
    run = next(one["body"] for key, one in effects.items() if key.startswith("check_run"))
    assert (run["head_sha"], run["status"], run["conclusion"]) == (whole.stage.head, "completed", "neutral")
    assert run["output"]["title"].startswith("2 new bugs: 4 of ")
    assert all(f"`{test}`" in run["output"]["text"] for test in REGRESSED)
    issues = [one["body"] for key, one in effects.items() if key.startswith("issue")]
    assert all("AffineGrid" in issue["body"] for issue in issues)
    assert all("Reduced by Assay: " in issue["body"] for issue in issues)
    assert all("at head before this was written" in issue["body"] for issue in issues)
    assert all(f"pip install openvino=={HEAD}" in issue["body"] for issue in issues)


def test_the_reproducers_tell_the_two_releases_apart(whole: Whole, tmp_path: Path) -> None:
    report = json.loads((whole.artifacts / "report.json").read_bytes())
    new = [group for group in report["groups"] if group["classification"] == "regression"]
    scripts = [whole.artifacts / group["guarded"] for group in new]
    short = [whole.artifacts / group["reproducer"] for group in new]
    assert len(scripts) == 2
    with whole.house.database.reading() as session:
        campaign = campaigns.get(session, whole.seen.campaign)
        digests = [campaign.head_toolchain, campaign.base_toolchain]
        chains = [campaigns.toolchain(session, digest) for digest in digests if digest]
    pythons = {chain.label: chain.python for chain in chains}
    issues = [
        text for name, text in live_service.outbox(whole.house.data_dir).items() if name.endswith(".md")
    ]
    for script in short:
        assert any(script.read_text() in issue for issue in issues), "an issue carries the very script"
        for release, shown in ((HEAD, True), (BASE, False)):
            status = try_script(script.read_text(), pythons[f"openvino {release}"], Ending("RuntimeError"))
            assert (status == 1) is shown, release
    for script in scripts:
        for release, status in ((HEAD, 1), (BASE, 0)):
            command = [pythons[f"openvino {release}"], "-I", str(script)]
            done = subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
            )
            assert done.returncode == status, f"{release}: {done.stdout}{done.stderr}"


def test_wrong_and_repeated_requests_change_nothing(whole: Whole) -> None:
    inhabited = whole.house
    before = inhabited.kept()
    forger = replace(inhabited.running, secret="not the secret")
    with pytest.raises(HTTPError) as refused:
        demo.deliver(forger, whole.stage)
    refused.value.close()
    assert refused.value.code == 401
    demo.deliver(inhabited.running, whole.stage, whole.delivery)
    assert inhabited.kept() == before
    # GitHub's own "Redeliver" keeps the id; a doubled event has another one, and is read and dropped.
    doubled = demo.deliver(inhabited.running, whole.stage)

    def all_read() -> bool:
        with inhabited.database.reading() as session:
            return inbox.backlog(session)[0] == 0

    wait_for(all_read, "the inbox to be read")
    assert live_service.seen(inhabited.database, doubled) is None
    assert inhabited.kept()[1:] == before[1:]


@pytest.fixture
def prepared(whole: Whole, tmp_path: Path) -> Path:
    """A data folder with the releases installed, and a corpus of three cases."""
    corpus, data_dir = whole.house.data_dir / "corpus", tmp_path / "data"
    data_dir.mkdir()
    (data_dir / "toolchains").symlink_to(whole.house.data_dir / "toolchains")
    lines = map(json.loads, catalog_path(corpus, live_service.SOURCE).read_text().splitlines())
    live_service.write_catalogue(corpus, data_dir, [line["id"] for line in lines if "id" in line][:3])
    return data_dir


def pinned(release: str) -> dict[str, str]:
    return {demo.PIN_FILE: f"openvino=={release}\n"}


@pytest.mark.slow
def test_a_release_that_cannot_be_installed_is_not_the_compilers_fault(
    prepared: Path, tmp_path: Path
) -> None:
    config = {demo.CONFIG_FILE: CONFIG}
    commits = [
        ("First", config | pinned(BASE)),
        ("Gone", config | pinned(UNINSTALLABLE)),
        ("Mended", config | pinned(HEAD)),
    ]
    first, gone, mended = demo.make_commits(tmp_path / "repositories", commits)
    with house(prepared, tmp_path / "repositories") as inhabited:
        failed = inhabited.end_of(inhabited.push(first, gone))
        assert failed.state is CampaignState.FAILED
        assert f"openvino {UNINSTALLABLE} cannot be installed" in failed.reason
        (run,) = inhabited.outbox(failed.campaign).values()
        check_untested(run, gone)
        summary = run["body"]["output"]["summary"]
        assert f"openvino=={UNINSTALLABLE}" in summary
        assert f"To fix: {demo.PIN_FILE}" in summary
        assert "releases nearby that can be installed: 202" in summary
        assert inhabited.ready() == 200

        done = inhabited.end_of(inhabited.push(first, mended))
        assert (done.state, done.reason) == (CampaignState.DONE, "")
        (run,) = inhabited.outbox(done.campaign).values()
        assert (run["body"]["head_sha"], run["body"]["conclusion"]) == (mended, "success")
        assert len(live_service.outbox(prepared)) == 4
        assert inhabited.ready() == 200


def check_untested(request: dict[str, Any], head: str) -> None:
    """A check run that blames nobody but the machine or the configuration."""
    body = request["body"]
    assert request["path"].endswith("/check-runs")
    assert (body["head_sha"], body["conclusion"]) == (head, "neutral")
    assert body["output"]["title"] == "Could not test this commit"
    told = "".join(body["output"].values())
    assert "The compiler was not tested" in told
    assert not any(word in told.lower() for word in ("crash", "wrong result", "regress", "bug", "broke"))


@pytest.mark.slow
def test_a_repository_without_configuration_gets_the_default(prepared: Path, tmp_path: Path) -> None:
    commits = [("First", pinned(HEAD)), ("Second", pinned(HEAD) | {"readme": ""})]
    first, second = demo.make_commits(tmp_path / "repositories", commits)
    with house(prepared, tmp_path / "repositories") as inhabited:
        delivery = inhabited.push(first, second)

        def running() -> CampaignProgress | None:
            found = live_service.seen(inhabited.database, delivery)
            return found if found and found.done else None

        # Not to its end: the default's generators use all of the default's five minutes.
        there = wait_for(running, "the first results", 0.1, CAMPAIGN_S)
        assert there is not None
        with inhabited.database.reading() as session:
            campaign = campaigns.get(session, there.campaign)
        config = campaign.config
    toolchain = ToolchainConfig(pin=demo.PIN_FILE)
    assert config == RepositoryConfig(version=1, backend="openvino", toolchain=toolchain).to_json()
    assert (config["budget"], config["repeats"], config["reports"]["mode"]) == (300, 3, "dry-run")
    assert (campaign.head, campaign.state) == (second, CampaignState.RUNNING.value)


@pytest.mark.slow
def test_a_broken_configuration_is_quoted_by_line_and_key(prepared: Path, tmp_path: Path) -> None:
    broken = CONFIG.replace("budget: 20m", "budgte: 20m", 1)
    line = broken.splitlines().index("budgte: 20m") + 1
    commits = [
        ("First", {demo.CONFIG_FILE: CONFIG} | pinned(HEAD)),
        ("Slip", {demo.CONFIG_FILE: broken} | pinned(HEAD)),
    ]
    first, slip = demo.make_commits(tmp_path / "repositories", commits)
    with house(prepared, tmp_path / "repositories") as inhabited:
        failed = inhabited.end_of(inhabited.push(first, slip))
        assert failed.state is CampaignState.FAILED
        (run,) = inhabited.outbox(failed.campaign).values()
        assert inhabited.ready() == 200
    check_untested(run, slip)
    summary = run["body"]["output"]["summary"]
    assert f"{demo.CONFIG_FILE} has a mistake" in summary
    assert f"line {line}, column 1: budgte" in summary
    assert "budget" in summary, "and says what was meant"
