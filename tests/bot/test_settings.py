"""Settings: where they come from, who wins, and what their errors say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.errors import SettingsError
from bot.settings import check_service_settings, load_settings, settings_table


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("ASSAY_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_defaults() -> None:
    settings = load_settings()
    assert settings.database_url == f"sqlite:///{settings.data_dir}/assay.db"
    assert settings.data_dir.is_absolute()
    assert settings.github_mode == "dry-run"
    assert settings.max_body_bytes == 25 * 1024 * 1024
    assert settings.webhook_secrets == ()
    assert settings.workers >= 1


def test_there_is_a_worker_for_each_processor_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container or `taskset` may leave few of a machine's: more workers only import more compilers."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 5, 7})
    assert load_settings().workers == 3


def test_arguments_over_variables_over_file_over_defaults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "assay.toml").write_text('port = 1\nworkers = 7\nhost = "filehost"\n')
    monkeypatch.setenv("ASSAY_PORT", "2")
    monkeypatch.setenv("ASSAY_HOST", "envhost")
    settings = load_settings(port=3, host=None)
    assert (settings.port, settings.host, settings.workers) == (3, "envhost", 7)


def test_the_file_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.toml"
    file.write_text('data_dir = "data"\n')
    monkeypatch.setenv("ASSAY_CONFIG", str(file))
    settings = load_settings()
    assert settings.data_dir == tmp_path / "data"
    assert settings.database_url == f"sqlite:///{tmp_path}/data/assay.db"


def test_both_secrets_are_known_while_rotating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", "new")
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET_PREVIOUS", "old")
    assert load_settings().webhook_secrets == (b"new", b"old")


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("ASSAY_PORT", "http", ["ASSAY_PORT", "'http'", "integer", "0 to 65535"]),
        ("ASSAY_PORT", "70000", ["ASSAY_PORT", "'70000'", "65535"]),
        ("ASSAY_GITHUB_MODE", "dry", ["ASSAY_GITHUB_MODE", "'dry'", "dry-run", "live"]),
        ("ASSAY_GIT_URL", "ext::sh -c true", ["ASSAY_GIT_URL", "ext::sh", "https"]),
        ("ASSAY_DATA_DIR", "a?b", ["ASSAY_DATA_DIR", "'a?b'"]),
        ("ASSAY_MAX_BODY_BYTES", "99999999999", ["ASSAY_MAX_BODY_BYTES", "26214400"]),
    ],
)
def test_errors_name_variable_value_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, parts: list[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    for part in parts:
        assert part in str(caught.value)
    assert "a setting is wrong" in str(caught.value), "no second error may follow from the first"


def test_every_problem_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_PORT", "x")
    monkeypatch.setenv("ASSAY_WORKERS", "0")
    with pytest.raises(SettingsError, match="2 settings are wrong") as caught:
        load_settings()
    assert "ASSAY_PORT" in str(caught.value)
    assert "ASSAY_WORKERS" in str(caught.value)


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASSAY_DATABASE_URL", "mysql://me:hunter2@host/db")
    (tmp_path / "assay.toml").write_text('webhook_secret = ["hunter2"]\n')
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert "ASSAY_DATABASE_URL" in str(caught.value)
    assert "ASSAY_WEBHOOK_SECRET" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.__context__)
    monkeypatch.delenv("ASSAY_DATABASE_URL")
    assert "hunter3" not in repr(load_settings(webhook_secret="hunter3"))


def test_a_misspelt_variable_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRT", "x")
    with pytest.raises(SettingsError, match=r"did you mean ASSAY_WEBHOOK_SECRET\?"):
        load_settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"prot = 1", "did you mean 'port'"),
        (b"port 1", "not TOML"),
        (b"port = 1\n\xff", "cannot be read"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "assay.toml").write_bytes(text)
    with pytest.raises(SettingsError, match=message):
        load_settings()


def test_a_named_file_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CONFIG", "/nowhere/assay.toml")
    with pytest.raises(SettingsError, match=r"/nowhere/assay\.toml"):
        load_settings()


def test_serving_needs_a_secret_and_live_needs_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", "")
    with pytest.raises(SettingsError, match="set it to the secret"):
        check_service_settings(load_settings())
    with pytest.raises(SettingsError, match="ASSAY_GITHUB_APP_ID"):
        check_service_settings(load_settings(webhook_secret="s", github_mode="live"))
    check_service_settings(load_settings(webhook_secret="s", github_mode="live", github_token="t"))
    check_service_settings(load_settings(webhook_secret="s"))


def test_polling_needs_no_secret_but_somebody_to_ask_as(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_WATCH", "octo/compiler, octo/other")
    assert load_settings().watch == ("octo/compiler", "octo/other")
    with pytest.raises(SettingsError, match="no credentials for GitHub"):
        check_service_settings(load_settings())
    check_service_settings(load_settings(github_token="t"))


@pytest.mark.parametrize("names", ["compiler", "octo/compiler/x", "octo/com piler", "../x"])
def test_what_is_polled_must_be_repositories(monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    monkeypatch.setenv("ASSAY_WATCH", names)
    with pytest.raises(SettingsError, match="is no repository; allowed: owner/name"):
        load_settings()


def test_a_fork_belongs_to_one_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_PROPOSAL_FORKS", "octo/compiler=bots/compiler, octo/other=bots/other")
    settings = load_settings()
    assert [settings.proposal_fork(one) for one in ("Octo/Other", "bots/other")] == ["bots/other", ""]


@pytest.mark.parametrize("pairs", ["octo/compiler", "octo/compiler=", "o/n=O/N", "o/n=../x", "=o/n"])
def test_what_is_no_repository_and_its_fork(pairs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_PROPOSAL_FORKS", pairs)
    with pytest.raises(SettingsError, match="ASSAY_PROPOSAL_FORKS"):
        load_settings()


def test_a_file_lists_what_is_polled(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('watch = ["octo/compiler"]\n')
    assert load_settings().watch == ("octo/compiler",)


def test_the_page_on_installing_has_every_setting() -> None:
    page = (Path(__file__).parents[2] / "docs" / "install.md").read_text(encoding="utf-8")
    assert page.partition("bot/settings.py -->\n")[2].partition("\n<!-- end")[0] == settings_table()
