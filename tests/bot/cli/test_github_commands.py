"""`assay doctor --github`, `assay manifest`, `assay status`: the App as its operator meets it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from bot.cli.exits import exit_code
from bot.cli.service import delete, outbox, pause, resume
from bot.cli.setup import doctor, manifest
from bot.store import Database
from bot.store.models import Target
from tests.github.double import GitHubDouble


@dataclass
class CommandResult:
    """What a command left, run within this process: to start one takes seconds."""

    code: int
    out: str
    err: str


def assay(
    folder: Path, command: click.Command, *argv: str | Path, env: dict[str, str] | None = None
) -> CommandResult:
    requested = {"ASSAY_DATA_DIR": str(folder), **(env or {})}
    done = CliRunner().invoke(command, [str(one) for one in argv], env=requested, standalone_mode=False)
    if done.exception is not None:
        code = exit_code(done.exception)
        assert code is not None, done.exc_info
        return CommandResult(code, done.stdout, str(done.exception))
    return CommandResult(int(done.return_value), done.stdout, done.stderr)


def result(ran: CommandResult) -> Any:
    return json.loads(ran.out)


def app(github: GitHubDouble, folder: Path) -> dict[str, str]:
    key = folder / "key.pem"
    key.write_text(github.private_key)
    return {
        "ASSAY_GITHUB_API_URL": github.url,
        "ASSAY_GITHUB_APP_ID": github.app_id,
        "ASSAY_GITHUB_PRIVATE_KEY_FILE": str(key),
    }


def test_the_doctor_names_what_the_app_lacks(tmp_path: Path) -> None:
    with GitHubDouble(tmp_path) as github:
        github.repository("octo/compiler")
        env = app(github, tmp_path)
        ran = assay(tmp_path / "data", doctor.command, "--github", "--json", env=env)
        shown = assay(tmp_path / "data", doctor.command, "--github", env=env)
        token = assay(
            tmp_path / "data",
            doctor.command,
            "--github",
            env={"ASSAY_GITHUB_API_URL": github.url, "ASSAY_GITHUB_TOKEN": github.token("octo")},
        )
    health = result(ran)
    points = {point["name"]: point for point in health["check_results"]}
    assert points["permission checks"]["state"] == "ok"
    assert points["webhook"]["state"] == "missing"
    assert (health["well"], ran.code) == (False, 1)
    assert health["installations"][0]["repositories"] == ["octo/compiler"]
    assert shown.code == 1
    assert any(line.startswith("webhook") and "no address" in line for line in shown.out.splitlines())
    assert "installed by octo: 1 repository" in shown.out
    assert token.code == 0
    assert "no check runs" in token.out


def test_the_doctor_needs_somebody_to_sign_in_as(tmp_path: Path) -> None:
    ran = assay(tmp_path, doctor.command, "--github")
    assert ran.code == 2
    assert "set ASSAY_GITHUB_APP_ID" in ran.err


def test_the_manifest_and_its_page(tmp_path: Path) -> None:
    ran = assay(tmp_path, manifest.command, "--url", "https://assay.example.org")
    made = json.loads(ran.out)
    assert made["hook_attributes"]["url"] == "https://assay.example.org/webhooks/github"
    page = tmp_path / "register.html"
    ran = assay(
        tmp_path,
        manifest.command,
        *("--url", "https://assay.example.org", "--organization", "acme", "--page", page),
        env={"ASSAY_GITHUB_API_URL": "https://git.acme.example/api/v3"},
    )
    assert ran.code == 0, ran.err
    text = page.read_text()
    assert 'action="https://git.acme.example/organizations/acme/settings/apps/new"' in text
    assert "&quot;default_permissions&quot;" in text
    assert assay(tmp_path, manifest.command).code == 2


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (pause.command, []),
        (resume.command, []),
        (outbox.command, []),
        (outbox.command, ["retry", "--all"]),
        (delete.command, ["octo/compiler", "--yes"]),
    ],
)
@pytest.mark.parametrize("url", ["", "sqlite:///{}/else/where.db"])
def test_where_there_is_no_database_none_is_made(
    tmp_path: Path, command: click.Command, words: list[str], url: str
) -> None:
    """The service has another data folder: a pause recorded here would stop nobody."""
    env = {"ASSAY_DATABASE_URL": url.format(tmp_path)} if url else {}
    ran = assay(tmp_path / "data", command, *words, env=env)
    assert (ran.code, ran.out) == (2, "")
    assert "no service database at " in ran.err
    assert "set ASSAY_DATA_DIR to its data folder, or start `assay serve` once" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_pause_and_resume(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    database.close()
    ran = assay(tmp_path, pause.command, "--target", "octo/compiler", "--reason", "too loud")
    assert ran.out.startswith("paused: octo/compiler, since ")
    assert ran.out.endswith(": too loud\n")
    ran = assay(tmp_path, pause.command, "--json")
    assert [one["target"] for one in result(ran)["paused"]] == ["all", "octo/compiler"]
    assert assay(tmp_path, resume.command).code == 0
    ran = assay(tmp_path, resume.command)
    assert (ran.code, "publishing as a whole is not paused" in ran.err) == (2, True)
    assert assay(tmp_path, resume.command, "--target", "octo/compiler").out == (
        "nothing is paused: effects are sent\n"
    )


def test_pause_finds_a_repository_in_any_spelling(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    with database.transaction() as session:
        session.add(Target(name="Octo/Compiler"))
    database.close()
    ran = assay(tmp_path, pause.command, "--target", "octo/compiler", "--json")
    assert [one["target"] for one in result(ran)["paused"]] == ["Octo/Compiler"]
    assert not ran.err
    unknown = assay(tmp_path, pause.command, "--target", "octo/other")
    assert (unknown.code, "octo/other is unknown" in unknown.err) == (0, True)
    assert assay(tmp_path, pause.command, "--target", "no repository").code == 2


def test_a_manifest_that_cannot_be_is_refused(tmp_path: Path) -> None:
    ran = assay(tmp_path, manifest.command, "--url", "assay.example.org")
    assert (ran.code, "write it in full" in ran.err) == (2, True)
    nowhere = tmp_path / "nowhere" / "register.html"
    ran = assay(tmp_path, manifest.command, "--url", "https://assay.example.org", "--page", nowhere)
    assert (ran.code, "cannot be written" in ran.err) == (2, True)
