"""Composition: the rooms plugged into one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.artifacts import Artifacts
from bot.campaigns.services import Services
from bot.config import RepositoryConfig
from bot.errors import SettingsError
from bot.github.dry_run import DryRunSink
from bot.github.live_sink import GitHubSink
from bot.settings import Settings, load_settings
from bot.store import Database
from bot.toolchains.policy import ToolchainPolicy
from bot.wiring import campaigns, github
from bot.wiring.service import service
from fuzzing.execute.limits import Limits
from fuzzing.execute.shard import Shard


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_DATA_DIR", str(tmp_path / "data"))
    return load_settings()


def test_every_part_of_a_campaign_is_there_and_can_be_replaced(settings: Settings) -> None:
    services = campaigns.campaign_services(settings)
    assert isinstance(services, Services)
    parts = vars(services)
    assert all(part is not None for name, part in parts.items() if name not in ("corpus", "sample"))
    assert services.corpus is None, "the data folder's own, until `assay run --cases` names another"
    assert services.sample is None, "all cases, until `assay run --sample` draws some"
    marked = campaigns.campaign_services(settings, reports="replaced")
    assert vars(marked)["reports"] == "replaced"
    assert marked.config_of is services.config_of
    with pytest.raises(TypeError):
        campaigns.campaign_services(settings, no_such_part=print)


def test_a_configuration_survives_the_database(settings: Settings) -> None:
    services = campaigns.campaign_services(settings)
    config = RepositoryConfig(version=1, backend="openvino")
    assert services.restore_config(config.to_json()) == config


def test_limits_of_a_configuration_reach_the_shard() -> None:
    config = RepositoryConfig.model_validate(
        {"version": 1, "backend": "openvino", "limits": {"run": 1.5, "memory": 1 << 30}}
    )
    shard = campaigns.make_shard(
        config, corpus="c", cases=("a",), backend="openvino", toolchain="d", python="p"
    )
    assert isinstance(shard, Shard)
    assert shard.limits == Limits(run_s=1.5, memory_bytes=1 << 30)


def test_patience_multiplies_time_and_memory_and_nothing_else() -> None:
    config = RepositoryConfig.model_validate(
        {"version": 1, "backend": "onnxruntime", "limits": {"run": 7.0, "memory": 1 << 30}}
    )
    fields: dict[str, Any] = {
        "corpus": "c",
        "cases": ("a",),
        "backend": "onnxruntime",
        "toolchain": "d",
        "python": "p",
    }
    usual = campaigns.make_shard(config, **fields)
    patient = campaigns.make_shard(config, **fields, limit_factor=3.0)
    assert usual.limits == Limits(run_s=7.0, memory_bytes=1 << 30)
    assert patient.limits == Limits(
        run_s=21.0,
        memory_bytes=3 << 30,
        import_s=3 * Limits.import_s,
        convert_s=3 * Limits.convert_s,
        compile_s=3 * Limits.compile_s,
        file_bytes=Limits.file_bytes,
    )


def test_artifacts_of_two_campaigns_lie_apart(tmp_path: Path) -> None:
    artifacts = Artifacts("", tmp_path)
    assert artifacts.folder(1) != artifacts.folder(2)
    assert artifacts.folder(1).is_relative_to(tmp_path)


def test_a_rehearsal_never_holds_what_could_reach_github(settings: Settings) -> None:
    sink, _, dry_run = github.make_sinks(settings, None)
    assert sink is dry_run
    assert isinstance(sink, DryRunSink)


def test_live_effects_go_to_github_and_rehearsed_ones_do_not(settings: Settings) -> None:
    live = settings.model_copy(update={"github_mode": "live", "github_token": SecretStr("t0ken")})
    sink, _, dry_run = github.make_sinks(live, github.connect_github(live, None))
    assert isinstance(sink, GitHubSink)
    assert isinstance(dry_run, DryRunSink)


def test_a_key_file_that_cannot_be_read_names_its_variable(settings: Settings, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    app = settings.model_copy(
        update={"github_mode": "live", "github_app_id": "1", "github_private_key_file": key}
    )
    with pytest.raises(SettingsError, match="ASSAY_GITHUB_PRIVATE_KEY_FILE: cannot read"):
        github.connect_github(app, None)
    key.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=str(key)):
        github.connect_github(app, None)
    key.write_text("PEM")
    credentials = github._credentials(app)
    assert credentials is not None
    assert credentials.private_key == "PEM"


def test_a_service_has_its_campaigns_and_its_publisher(settings: Settings) -> None:
    settings.data_dir.mkdir(parents=True)
    database = Database(settings.database_url)
    try:
        database.migrate()
        parts = service(settings, database)
        names = {one.name for one in parts.backgrounds}
        assert names == {
            "campaigns",
            "publisher",
            "jobs-quick",
            "jobs-long",
            "commands",
            "periodic-tasks",
            "check-runs",
        }
    finally:
        database.close()


def test_the_service_makes_toolchains_under_the_operators_policy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    original = campaigns.campaign_services

    def capture(settings: Settings, **fields: Any) -> Any:
        given.update(fields)
        return original(settings, **fields)

    monkeypatch.setattr("bot.wiring.service.campaign_services", capture)
    settings.data_dir.mkdir(parents=True)
    database = Database(settings.database_url)
    try:
        database.migrate()
        service(settings, database)
    finally:
        database.close()
    policy = ToolchainPolicy("landlock", data_dir=settings.data_dir)
    assert given["resolve"].__self__ == given["provision"].__self__ == policy
