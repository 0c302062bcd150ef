"""The last step of registering the App: a code for a key, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import manifest
from bot.errors import UsageError
from bot.github.registering import register
from tests.bot.github.site import Routes, Site

MADE = {"id": 5, "html_url": "https://github.com/apps/assay", "pem": "PEM\n", "webhook_secret": "s3cret"}
ROUTES: Routes = {"/app-manifests/c0de/conversions": (201, {}, MADE)}


def test_a_code_is_exchanged_for_key_and_secret() -> None:
    with Site(ROUTES) as site:
        made = register(site.url, "c0de")
        assert (made.id, made.private_key, made.webhook_secret) == (5, "PEM\n", "s3cret")
        assert "PEM" not in repr(made)
        with pytest.raises(UsageError, match="good once and for an hour"):
            register(site.url, "../other")
        assert site.seen[-1][1] == "/app-manifests/..%2Fother/conversions"


def test_the_key_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    key = tmp_path / "app.pem"
    with Site(ROUTES) as site:
        asked = ["--code", "c0de", "--key-file", str(key)]
        env = {"ASSAY_GITHUB_API_URL": site.url, "ASSAY_DATA_DIR": str(tmp_path)}
        done = CliRunner().invoke(manifest.command, asked, env=env, standalone_mode=False)
        assert done.stdout.splitlines() == [
            "export ASSAY_GITHUB_APP_ID=5",
            f"export ASSAY_GITHUB_PRIVATE_KEY_FILE={key}",
            "export ASSAY_WEBHOOK_SECRET=s3cret",
        ]
        assert (key.read_text(), key.stat().st_mode & 0o777) == ("PEM\n", 0o600)
        again = CliRunner().invoke(manifest.command, asked, env=env, standalone_mode=False)
        assert isinstance(again.exception, UsageError)
        assert len(site.seen) == 1, "a code that was good once is not spent for nothing"


def test_a_key_that_cannot_be_kept_costs_no_code(tmp_path: Path) -> None:
    with Site(ROUTES) as site:
        env = {"ASSAY_GITHUB_API_URL": site.url, "ASSAY_DATA_DIR": str(tmp_path)}
        asked = ["--code", "c0de", "--key-file", str(tmp_path / "nowhere" / "app.pem")]
        done = CliRunner().invoke(manifest.command, asked, env=env, standalone_mode=False)
        assert isinstance(done.exception, UsageError)
        assert "the code is still good" in str(done.exception)
        assert not site.seen


def test_a_code_that_is_refused_leaves_no_empty_key(tmp_path: Path) -> None:
    key = tmp_path / "app.pem"
    with Site(ROUTES) as site:
        env = {"ASSAY_GITHUB_API_URL": site.url, "ASSAY_DATA_DIR": str(tmp_path)}
        asked = ["--code", "stale", "--key-file", str(key)]
        done = CliRunner().invoke(manifest.command, asked, env=env, standalone_mode=False)
        assert isinstance(done.exception, UsageError)
        assert not key.exists()
