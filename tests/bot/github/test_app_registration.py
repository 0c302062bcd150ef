"""The last step of registering the App: a code for a key, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli.setup import manifest
from bot.errors import UsageError
from bot.github.app_registration import register
from tests.bot.github.outbox_kit import Clock
from tests.github.double import GitHubDouble


def test_a_code_is_exchanged_for_key_and_secret(tmp_path: Path) -> None:
    with GitHubDouble(tmp_path) as github:
        code = github.manifest_code()
        made = register(github.url, code)
        assert str(made.id) == github.app_id
        assert (made.private_key, made.webhook_secret) == (github.private_key, github.secret)
        assert "PRIVATE KEY" not in repr(made)
        for known in (code, "../other"):
            with pytest.raises(UsageError, match="good once and for an hour"):
                register(github.url, known)
        assert github.seen[-1].path == "/app-manifests/..%2Fother/conversions"


def test_a_code_is_good_for_an_hour(tmp_path: Path) -> None:
    clock = Clock()
    with GitHubDouble(tmp_path, clock) as github:
        code = github.manifest_code()
        clock.advance(hours=1)
        with pytest.raises(UsageError, match="register again"):
            register(github.url, code)


def test_the_key_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    key = tmp_path / "app.pem"
    with GitHubDouble(tmp_path, secret="s3cret") as github:
        requested = ["--code", github.manifest_code(), "--key-file", str(key)]
        env = {"ASSAY_GITHUB_API_URL": github.url, "ASSAY_DATA_DIR": str(tmp_path)}
        done = CliRunner().invoke(manifest.command, requested, env=env, standalone_mode=False)
        assert done.stdout.splitlines() == [
            f"export ASSAY_GITHUB_APP_ID={github.app_id}",
            f"export ASSAY_GITHUB_PRIVATE_KEY_FILE={key}",
            "export ASSAY_WEBHOOK_SECRET=s3cret",
        ]
        assert (key.read_text(), key.stat().st_mode & 0o777) == (github.private_key, 0o600)
        again = CliRunner().invoke(manifest.command, requested, env=env, standalone_mode=False)
        assert isinstance(again.exception, UsageError)
        assert len(github.seen) == 1, "a code that was good once is not spent for nothing"


def test_a_key_that_cannot_be_kept_costs_no_code(tmp_path: Path) -> None:
    with GitHubDouble(tmp_path) as github:
        env = {"ASSAY_GITHUB_API_URL": github.url, "ASSAY_DATA_DIR": str(tmp_path)}
        requested = ["--code", github.manifest_code(), "--key-file", str(tmp_path / "nowhere" / "app.pem")]
        done = CliRunner().invoke(manifest.command, requested, env=env, standalone_mode=False)
        assert isinstance(done.exception, UsageError)
        assert "the code is still valid" in str(done.exception)
        assert not github.seen


def test_a_code_that_is_refused_leaves_no_empty_key(tmp_path: Path) -> None:
    key = tmp_path / "app.pem"
    with GitHubDouble(tmp_path) as github:
        env = {"ASSAY_GITHUB_API_URL": github.url, "ASSAY_DATA_DIR": str(tmp_path)}
        requested = ["--code", "stale", "--key-file", str(key)]
        done = CliRunner().invoke(manifest.command, requested, env=env, standalone_mode=False)
        assert isinstance(done.exception, UsageError)
        assert not key.exists()
