"""The object store is stopped in the middle of a campaign, and started again when its upload has failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.artifacts import Artifacts
from bot.bugs.publication import CampaignPublisher
from bot.errors import InfrastructureError
from tests.bot.campaigns.killing import World, standin_world
from tests.bot.campaigns.restarts import run_campaign
from tests.support.object_store import Store, serving

STOPPED_AT = 20  # the run of a case
FAILURES = 2


class Upload:
    """Uploads, and starts the store again after so many failures."""

    def __init__(self, store: Store, artifacts: Artifacts) -> None:
        self._store, self._artifacts = store, artifacts
        self.failed = 0

    def __call__(self, campaign: int) -> None:
        try:
            self._artifacts.publish(campaign)
        except InfrastructureError:
            self.failed += 1
            if self.failed == FAILURES:
                self._store.start()
            raise


def make_world(folder: Path, store: Store) -> tuple[World, Upload]:
    """The stand-ins' world, with reports in the store below the folder's name."""
    folder.mkdir()
    world, artifacts = standin_world(folder), Artifacts(f"s3://reports/{folder.name}", folder)
    upload = Upload(store, artifacts)
    reports = CampaignPublisher(folder / "corpus", artifacts.folder, upload=upload)
    return replace(world, services=replace(world.services, reports=reports)), upload


def test_a_restart_of_the_object_store_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0
    with serving(monkeypatch) as store:

        def before_run() -> None:
            nonlocal runs
            runs += 1
            if runs == STOPPED_AT:
                store.stop()

        found, uploads = {}, {}
        for name in ("calm", "disturbed"):
            world, uploads[name] = make_world(tmp_path / name, store)
            if name == "disturbed":
                world.before_run(before_run)
            found[name] = run_campaign(world, f"sqlite:///{tmp_path / name}/assay.db", FAILURES)
        stored = store.keys()
    names = [sorted(key.partition("/")[2] for key in stored if key.startswith(f"{name}/")) for name in found]
    assert (uploads["calm"].failed, uploads["disturbed"].failed) == (0, FAILURES)
    assert found["calm"]["outcomes"]
    assert found["disturbed"] == found["calm"]
    assert names[0] == names[1]
    assert any(name.endswith("report.html") for name in names[0])
