"""Routes of the App, its installations and tokens, and the current user."""

from __future__ import annotations

from typing import Any

from tests.github import views
from tests.github.calls import Call, RefusedError, RouteResponse, not_found, route
from tests.github.identity import private_key
from tests.github.schema_completion import complete
from tests.github.state import Installation, Repository, stamp

#: Levels of a token's permission that an installation's level allows.
_WITHIN = {"read": ("read",), "write": ("read", "write"), "admin": ("read", "write", "admin")}


@route("GET", "/app", app=True)
def app(call: Call) -> RouteResponse:
    return RouteResponse(200, complete("integration", views.app(call.hub)))


@route("POST", "/app-manifests/{code}/conversions")
def from_manifest(call: Call) -> RouteResponse:
    """The newly registered App with its key and secret; the code is valid once."""
    until = call.hub.identity.codes.pop(call.parameters["code"], None)
    if until is None or until <= call.hub.world.clock():
        raise not_found()
    secrets = {
        "pem": private_key(),
        "webhook_secret": call.hub.webhook_sender.secret,
        "client_secret": "hidden",
    }
    pointer = (
        "#/paths/~1app-manifests~1{code}~1conversions/post/responses/201/content/application~1json/schema"
    )
    return RouteResponse(201, complete(pointer, views.app(call.hub) | secrets))


@route("GET", "/app/installations", app=True)
def installations(call: Call) -> RouteResponse:
    known = [one for one in call.hub.world.installations.values() if not one.deleted]
    return RouteResponse(200, [_shown(call, one) for one in call.page(known)])


@route("GET", "/app/installations/{installation_id}", app=True)
def installation(call: Call) -> RouteResponse:
    return RouteResponse(200, _shown(call, _installation(call)))


@route("GET", "/repos/{owner}/{repo}/installation", app=True)
def of_repository(call: Call) -> RouteResponse:
    """The installation that has a repository."""
    found = call.hub.world.installation_of(call.repository)
    if found is None:
        raise not_found()
    return RouteResponse(200, _shown(call, found))


@route("POST", "/app/installations/{installation_id}/access_tokens", app=True)
def access_token(call: Call) -> RouteResponse:
    """A token for an hour, with all of the installation's permissions or fewer."""
    one = _installation(call)
    if one.suspended_at is not None:
        raise RefusedError(403, "This installation has been suspended")
    requested = call.body or {}
    permissions = requested.get("permissions") or one.permissions  # an empty object asks for everything
    for name, level in permissions.items():
        if level not in _WITHIN.get(one.permissions.get(name, ""), ()):
            message = "The permissions requested are not granted to this installation."
            raise RefusedError(422, message)
    repositories = _narrowed(call, one, requested)
    text, token = call.hub.identity.mint(one, permissions, repositories)
    made = {"token": text, "expires_at": stamp(token.expires_at), "permissions": permissions}
    made["repository_selection"] = "selected"
    return RouteResponse(201, complete("installation-token", made))


@route("DELETE", "/installation/token")
def revoke(call: Call) -> RouteResponse:
    """Revokes the token of the request."""
    text = call.headers["authorization"].partition(" ")[2]
    if call.hub.identity.tokens.pop(text, None) is None:
        raise RefusedError(403, "This endpoint requires authentication as an installation")
    return RouteResponse(204)


@route("GET", "/installation/repositories")
def repositories(call: Call) -> RouteResponse:
    """The repositories of the token."""
    reached = [call.hub.world.repositories[number] for number in sorted(call.actor.repositories)]
    reached = [one for one in reached if not one.deleted]
    page = [complete("repository", views.repository(call.hub, one)) for one in call.page(reached)]
    return RouteResponse(200, {"total_count": len(reached), "repositories": page})


@route("GET", "/rate_limit")
def rate_limit(call: Call) -> RouteResponse:
    """The primary limits."""
    at, left = call.hub.world.clock(), {}
    for resource in ("core", "search"):
        reported = call.hub.limits.headers(call.actor.key, resource, at)
        names = ("limit", "remaining", "reset", "used")
        left[resource] = {name: int(reported[f"x-ratelimit-{name}"]) for name in names}
    return RouteResponse(200, complete("rate-limit-overview", {"resources": left, "rate": left["core"]}))


@route("GET", "/user")
def me(call: Call) -> RouteResponse:
    """The token's user; installation tokens have none."""
    if call.actor.kind != "user":
        raise RefusedError(403, "Resource not accessible by integration")
    return RouteResponse(200, complete("public-user", views.user(call.hub, call.actor.writer)))


@route("GET", "/users/{username}")
def user(call: Call) -> RouteResponse:
    found = call.hub.world.accounts.get(call.parameters["username"])
    if found is None:
        raise not_found()
    return RouteResponse(200, complete("public-user", views.user(call.hub, found)))


def _narrowed(call: Call, one: Installation, requested: dict[str, Any]) -> frozenset[int] | None:
    """The repositories of a token, None for all of the installation's."""
    world = call.hub.world
    if "repositories" in requested:
        named = [world.named(f"{one.account.login}/{name}") for name in requested["repositories"]]
    elif "repository_ids" in requested:
        named = [world.repositories.get(number) for number in requested["repository_ids"]]
    else:
        return None
    chosen: list[Repository] = [repo for repo in named if repo is not None and repo.id in one.repositories]
    if len(chosen) < len(named):
        raise RefusedError(422, "There is at least one repository that does not exist or is not accessible.")
    return frozenset(repo.id for repo in chosen)


def _installation(call: Call) -> Installation:
    found = call.hub.world.installations.get(call.number("installation_id"))
    if found is None or found.deleted:
        raise not_found()
    return found


def _shown(call: Call, one: Installation) -> Any:
    return complete("installation", views.installation(call.hub, one))
