"""What GitHub lets us do, and what is missing: the App, its webhook, its installations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.errors import RefusalError
from bot.github.facts import AppFacts, DeliveryFacts, InstallationFacts
from bot.github.needs import EVENTS, PERMISSIONS, PROPOSING, WEBHOOK_PATH
from bot.github.reading import Reader

#: GitHub keeps deliveries for three days; a day shows whether they come through now.
LOOK_BACK = timedelta(days=1)
MAX_SHOWN = 5  # deliveries that failed


@dataclass(frozen=True)
class Point:
    """One thing that was looked at.

    state   ok, missing (something is lost), broken (nothing works until it is mended)
    detail  what was seen; `advice` what to do about it, "" where all is well
    """

    name: str
    state: str
    detail: str
    advice: str = ""


@dataclass(frozen=True)
class Installed:
    """One installation: whose, on how many repositories, and what it lacks."""

    id: int
    account: str
    repositories: tuple[str, ...]
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Health:
    """Everything the doctor saw; `who` is the login our texts appear under."""

    api: str
    who: str
    app: bool
    points: tuple[Point, ...]
    installations: tuple[Installed, ...] = field(default=())

    @property
    def well(self) -> bool:
        """Whether nothing is missing that Assay needs."""
        every = [*self.points, *(point for one in self.installations for point in one.points)]
        return all(point.state == "ok" for point in every)


def examine(reader: Reader, api: str, at: datetime) -> Health:
    """Looks at everything. Raises InfrastructureError: GitHub cannot be reached, or refuses who we are."""
    if not reader.is_app:
        return Health(api, reader.login(), False, _of_token())
    app = reader.app()
    points = (
        *_permissions(app.permissions, "the App asks for", "Ask for it in the App's settings"),
        *_events(app.events, "Subscribe to it in the App's settings"),
        _hook(reader),
        *_deliveries(reader, at),
    )
    installations = reader.installations()
    installed = tuple(_installation(reader, app, one) for one in installations)
    if not installations:
        nowhere = f"the App is installed nowhere. Install it: {app.url}/installations/new"
        points = (*points, Point("installations", "missing", "none", nowhere))
    return Health(api, reader.login(), True, points, installed)


def _of_token() -> tuple[Point, ...]:
    lost = "no check runs (a commit status instead), no annotations, no buttons, no lost deliveries fetched"
    return (Point("identity", "ok", f"a token, good for trying out: {lost}; it cannot be narrowed"),)


def _permissions(granted: Mapping[str, str], who: str, advice: str) -> Iterable[Point]:
    for need in PERMISSIONS:
        name, has = f"permission {need.name}", granted.get(need.name, "none")
        if need.met(granted):
            yield Point(name, "ok", f"{who} {has}")
        elif not need.optional:
            state = "broken" if need.name == "metadata" else "missing"
            yield Point(name, state, f"{who} {has}, {need.level} is needed: {need.lost}", advice)
        else:
            yield Point(name, "ok", f"{who} {has}; without {need.level} {need.lost}")
    for need in PROPOSING:
        if not need.met(granted):
            yield Point(f"permission {need.name}", "ok", f"not {need.level}: {need.lost}")


def _events(subscribed: Iterable[str], advice: str) -> Iterable[Point]:
    there = set(subscribed)
    for need in EVENTS:
        if need.name in there:
            yield Point(f"event {need.name}", "ok", "subscribed to")
        elif need.optional:
            yield Point(f"event {need.name}", "ok", f"not subscribed to: {need.lost}")
        else:
            yield Point(f"event {need.name}", "missing", f"not subscribed to: {need.lost}", advice)


def _hook(reader: Reader) -> Point:
    hook = reader.hook_config()
    if not hook.url:
        return Point("webhook", "missing", "no address", f"Set it to https://YOUR-HOST{WEBHOOK_PATH}")
    if hook.content_type != "json":
        return Point("webhook", "broken", f"{hook.url} gets {hook.content_type}", "Choose application/json")
    if hook.insecure:
        return Point(
            "webhook", "missing", f"{hook.url}, whose certificate nobody checks", "Switch SSL verification on"
        )
    return Point("webhook", "ok", hook.url)


def _deliveries(reader: Reader, at: datetime) -> Iterable[Point]:
    """Whether GitHub reaches us: what our server answered of late."""
    try:
        found = reader.deliveries(at - LOOK_BACK)
    except RefusalError as error:
        yield Point("deliveries", "missing", str(error), "Switch the webhook on in the App's settings")
        return
    lost = _lost(found)
    if not found:
        yield Point("deliveries", "ok", "none in 24 hours; push something to see whether they come through")
    elif not lost:
        yield Point("deliveries", "ok", f"{len({one.guid for one in found})} in 24 hours, all accepted")
    else:
        shown = ", ".join(f"{one.event} {_code(one)}" for one in lost[:MAX_SHOWN])
        yield Point(
            "deliveries",
            "missing",
            f"{len(lost)} of {len({one.guid for one in found})} in 24 hours were not accepted: {shown}",
            _why(lost[0]),
        )


def _lost(found: Iterable[DeliveryFacts]) -> list[DeliveryFacts]:
    """The last attempt of each delivery no attempt of which arrived, the newest first."""
    attempts: dict[str, list[DeliveryFacts]] = {}
    for one in found:
        attempts.setdefault(one.guid, []).append(one)
    return [tries[0] for tries in attempts.values() if not any(one.arrived for one in tries)]


def _code(one: DeliveryFacts) -> str:
    return str(one.status_code) if one.status_code else one.status


def _why(one: DeliveryFacts) -> str:
    if one.status_code in (401, 403):
        return "The webhook's secret and ASSAY_WEBHOOK_SECRET differ: make them the same"
    if one.status_code == 404:
        return f"The webhook's address leads elsewhere: it must end in {WEBHOOK_PATH}"
    if one.status_code:
        return "Read the service's log of that time; what failed is delivered again within the hour"
    return "GitHub cannot reach the address: check the name, the certificate and the firewall"


def _installation(reader: Reader, app: AppFacts, one: InstallationFacts) -> Installed:
    if one.suspended:
        point = Point("state", "missing", "suspended by its owner", "Ask them to unsuspend it")
        return Installed(one.id, one.account, (), (point,))
    pending = [name for name in app.permissions if one.permissions.get(name) != app.permissions[name]]
    advice = f"{one.account}'s owner must accept the new permissions, in the settings of the installation"
    points = [
        point
        for point in _permissions(one.permissions, "granted", advice)
        if point.state != "ok" or point.name.removeprefix("permission ") in pending
    ]
    repositories = reader.installation_repositories(one.id)
    for repository in repositories:
        if repository.archived:
            points.append(Point(repository.full_name, "ok", "archived: it is not tested"))
        elif not repository.has_issues:
            said = "issues are switched off: only check runs and comments tell of bugs"
            points.append(Point(repository.full_name, "ok", said))
    return Installed(one.id, one.account, tuple(each.full_name for each in repositories), tuple(points))
