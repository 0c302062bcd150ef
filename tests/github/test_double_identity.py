"""Authentication and permissions of the double."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.github.client import Client, as_app, as_installation, as_person, claims
from tests.github.conftest import Clock
from tests.github.double import GitHubDouble
from tests.github.repository_double import RepositoryDouble

ISSUES = "/repos/octo/compiler/issues"


def message(client: Client, method: str, path: str, body: Any = None) -> tuple[int, str]:
    answer = client.ask(method, path, body)
    return answer.status_code, answer.json()["message"]


def test_the_app_sees_itself_and_where_it_is_installed(
    hub: GitHubDouble, repository: RepositoryDouble
) -> None:
    app = as_app(hub)
    assert app.get("/app")["slug"] == hub.app_slug
    (one,) = app.get("/app/installations")
    assert app.get("/repos/octo/compiler/installation") == one == app.get(f"/app/installations/{one['id']}")
    assert one["permissions"]["checks"] == "write"


@pytest.mark.parametrize(
    ("changed", "output"),
    [
        ({"iss": "1"}, "Integration not found"),
        ({"exp": timedelta(minutes=11)}, "too far in the future"),
        ({"exp": timedelta(minutes=-1)}, "must be a numeric value in the future"),
        ({"iat": timedelta(minutes=2)}, "must be an Integer in the past"),
    ],
)
def test_a_token_of_the_app_must_be_right_in_every_claim(
    changed: dict[str, Any], output: str, hub: GitHubDouble, clock: Clock
) -> None:
    moved = {
        name: clock() + value if isinstance(value, timedelta) else value for name, value in changed.items()
    }
    status, text = message(as_app(hub, **moved), "GET", "/app")
    assert status == 401
    assert output in text


@pytest.mark.parametrize("algorithm", ["RS256", "HS256"])
def test_a_token_signed_with_another_key_is_refused(algorithm: str, hub: GitHubDouble) -> None:
    key = rsa.generate_private_key(65537, 2048) if algorithm == "RS256" else "s" * 32
    stranger = Client(hub.url, f"Bearer {jwt.encode(claims(hub), key, algorithm=algorithm)}")
    assert message(stranger, "GET", "/app") == (401, "A JSON web token could not be decoded")


def test_tokens_expire_after_an_hour_and_can_be_revoked(
    hub: GitHubDouble, repository: RepositoryDouble, clock: Clock
) -> None:
    client = as_installation(hub, "octo")
    clock.advance(minutes=59)
    assert client.get(ISSUES) == []
    clock.advance(minutes=1)
    assert message(client, "GET", ISSUES) == (401, "Bad credentials")
    renewed = as_installation(hub, "octo")
    assert renewed.ask("DELETE", "/installation/token").status_code == 204
    assert message(renewed, "GET", ISSUES) == (401, "Bad credentials")


def test_tokens_are_as_narrow_as_asked(hub: GitHubDouble, repository: RepositoryDouble) -> None:
    other = hub.repository("octo/other")
    reader = as_installation(hub, "octo", permissions={"issues": "read", "metadata": "read"})
    refused = reader.ask("POST", ISSUES, {"title": "a"})
    assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
    assert refused.headers["x-accepted-github-permissions"] == "issues=write"
    one = as_installation(hub, "octo", repositories=["compiler"])
    assert one.get("/installation/repositories")["total_count"] == 1
    assert one.ask("POST", f"/repos/{other.name}/issues", {"title": "a"}).status_code == 403
    number = hub.installation("octo").id
    for wrong in ({"permissions": {"contents": "write"}}, {"repositories": ["absent"]}):
        answer = as_app(hub).ask("POST", f"/app/installations/{number}/access_tokens", wrong)
        assert answer.status_code == 422, answer.text


def test_what_is_private_is_not_there_for_others(hub: GitHubDouble) -> None:
    secret = hub.repository("octo/secret", private=True)
    secret.commit({"a": "1"})
    hub.repository("other/open")
    path = f"/repos/{secret.name}"
    assert as_installation(hub, "octo").get(path)["private"] is True
    for stranger in (as_installation(hub, "other"), as_person(hub, "eve"), Client(hub.url)):
        assert message(stranger, "GET", path) == (404, "Not Found")
    secret.collaborator("eve", "read")
    assert as_person(hub, "eve").get(path)["name"] == "secret"


def test_suspended_and_removed_installations_lock_out(
    hub: GitHubDouble, repository: RepositoryDouble
) -> None:
    client = as_installation(hub, "octo")
    hub.suspend("octo")
    assert message(client, "GET", ISSUES) == (403, "This installation has been suspended")
    hub.suspend("octo", False)
    assert client.get(ISSUES) == []
    hub.uninstall("octo")
    assert message(client, "GET", ISSUES) == (401, "Bad credentials")
    assert message(as_app(hub), "GET", "/repos/octo/compiler/installation") == (404, "Not Found")


def test_only_apps_write_checks_and_people_need_a_role_to_label(
    hub: GitHubDouble, repository: RepositoryDouble
) -> None:
    run = {"name": "assay", "head_sha": repository.head()}
    person = as_person(hub, "eve")
    reported = message(person, "POST", "/repos/octo/compiler/check-runs", run)
    assert reported == (403, "You must authenticate via a GitHub App.")
    assert person.post(ISSUES, {"title": "a", "labels": ["bug"]})["labels"] == []
    repository.collaborator("eve", "triage")
    assert [one["name"] for one in person.post(ISSUES, {"title": "b", "labels": ["bug"]})["labels"]] == [
        "bug"
    ]
    assert person.get("/user")["login"] == "eve"


@pytest.mark.parametrize(
    ("role", "permission"),
    [("admin", "admin"), ("maintain", "write"), ("write", "write"), ("triage", "read"), ("read", "read")],
)
def test_roles_are_told_in_both_ways(
    role: str, permission: str, hub: GitHubDouble, repository: RepositoryDouble
) -> None:
    repository.collaborator("ada", role)
    reported = as_installation(hub, "octo").get("/repos/octo/compiler/collaborators/ada/permission")
    assert (reported["role_name"], reported["permission"]) == (role, permission)
