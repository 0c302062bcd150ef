"""The doctor: every lack is named with what it costs and what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest

from bot.errors import RefusalError
from bot.github.doctor import Health, Point, examine
from bot.github.facts import AppFacts, DeliveryFacts, HookFacts, InstallationFacts, RepositoryFacts
from bot.github.needs import EVENTS, PERMISSIONS, WEBHOOK_PATH, manifest, tables
from bot.github.reading import Reader
from bot.webhooks.router import router
from tests.bot.github.outbox_kit import START

GRANTED: Mapping[str, str] = {need.name: need.level for need in PERMISSIONS}
SUBSCRIBED = tuple(need.name for need in EVENTS)
HOOK = HookFacts("https://assay.example.org" + WEBHOOK_PATH, "json", insecure=False)


def delivery(guid: str, status: int, event: str = "push") -> DeliveryFacts:
    return DeliveryFacts(1, guid, event, "", START, status, "OK", False, 4711, 7)


@dataclass
class Site:
    """What a Reader tells, with everything as it should be."""

    is_app: bool = True
    permissions: Mapping[str, str] = field(default_factory=lambda: dict(GRANTED))
    events: tuple[str, ...] = SUBSCRIBED
    hook: HookFacts = HOOK
    sent: tuple[DeliveryFacts, ...] = (delivery("a", 202),)
    installed: tuple[InstallationFacts, ...] = (
        InstallationFacts(4711, "acme", GRANTED, SUBSCRIBED, suspended=False, selection="selected"),
    )
    no_hook: bool = False

    def login(self) -> str:
        return "assay[bot]" if self.is_app else "somebody"

    def app(self) -> AppFacts:
        url = "https://github.com/apps/assay"
        return AppFacts(1, "assay", "Assay", "acme", self.permissions, self.events, url, self.hook.url)

    def hook_config(self) -> HookFacts:
        return self.hook

    def deliveries(self, since: datetime) -> tuple[DeliveryFacts, ...]:
        if self.no_hook:
            raise RefusalError("the webhook is not active")
        return self.sent

    def installations(self) -> tuple[InstallationFacts, ...]:
        return self.installed

    def installation_repositories(self, number: int) -> tuple[RepositoryFacts, ...]:
        return (RepositoryFacts(7, "acme/graphs", "main", True, False, True, False, {}),)


def look(**changes: Any) -> Health:
    return examine(cast("Reader", replace(Site(), **changes)), "https://api.github.com", START)


def trouble(health: Health) -> list[Point]:
    every = [*health.points, *(point for one in health.installations for point in one.points)]
    return [point for point in every if point.state != "ok"]


def test_all_is_well() -> None:
    health = look()
    assert (health.well, trouble(health), health.who) == (True, [], "assay[bot]")
    assert health.installations[0].repositories == ("acme/graphs",)


@pytest.mark.parametrize("need", PERMISSIONS, ids=lambda need: need.name)
def test_each_permission_is_missed_where_it_is_needed(need: Any) -> None:
    health = look(permissions={name: level for name, level in GRANTED.items() if name != need.name})
    told = next(point for point in health.points if point.name == f"permission {need.name}")
    assert need.lost in told.detail
    assert health.well is need.optional
    assert (told.state == "broken") is (need.name == "metadata")


@pytest.mark.parametrize("need", EVENTS, ids=lambda need: need.name)
def test_each_event_is_missed_where_it_is_needed(need: Any) -> None:
    health = look(events=tuple(name for name in SUBSCRIBED if name != need.name))
    told = next(point for point in health.points if point.name == f"event {need.name}")
    assert need.lost in told.detail
    assert health.well is need.optional


ACCEPT = "acme's owner must accept the new permissions"
PENDING = InstallationFacts(4711, "acme", {**GRANTED, "checks": "read"}, SUBSCRIBED, False, "all")


@pytest.mark.parametrize(
    ("changes", "name", "detail", "advice"),
    [
        ({"hook": HookFacts("", "json", False)}, "webhook", "no address", f"https://YOUR-HOST{WEBHOOK_PATH}"),
        ({"hook": HookFacts("https://x", "form", False)}, "webhook", "gets form", "application/json"),
        ({"hook": HookFacts("https://x", "json", True)}, "webhook", "nobody checks", "SSL verification"),
        ({"no_hook": True}, "deliveries", "not active", "Switch the webhook on"),
        ({"sent": (delivery("a", 401), delivery("b", 202))}, "deliveries", "1 of 2 in 24 hours", "secret"),
        ({"sent": (delivery("a", 404),)}, "deliveries", "push 404", WEBHOOK_PATH),
        ({"sent": (delivery("a", 500),)}, "deliveries", "push 500", "the service's log"),
        ({"sent": (delivery("a", 0),)}, "deliveries", "push OK", "cannot reach the address"),
        ({"installed": ()}, "installations", "none", "https://github.com/apps/assay/installations/new"),
        ({"installed": (PENDING,)}, "permission checks", "granted read, write is needed", ACCEPT),
        ({"installed": (replace(PENDING, suspended=True),)}, "state", "suspended", "unsuspend"),
    ],
)  # fmt: skip
def test_every_lack_says_what_to_do(changes: dict[str, Any], name: str, detail: str, advice: str) -> None:
    health = look(**changes)
    (point,) = trouble(health)
    assert point.name == name
    assert detail in point.detail
    assert advice in point.advice
    assert not health.well


def test_a_delivery_that_arrived_the_second_time_is_well() -> None:
    assert look(sent=(delivery("a", 202), delivery("a", 500))).well


def test_a_token_says_what_is_lost() -> None:
    health = look(is_app=False)
    assert (health.well, health.who) == (True, "somebody")
    assert "no check runs" in health.points[0].detail


def test_the_manifest_asks_for_what_is_needed() -> None:
    made = manifest("https://assay.example.org/")
    assert made["default_permissions"] == GRANTED
    assert made["default_events"] == list(SUBSCRIBED)
    assert made["hook_attributes"] == {"url": HOOK.url, "active": True}
    assert WEBHOOK_PATH in {route.path for route in router().routes if hasattr(route, "path")}


def test_the_page_on_installing_and_the_example_are_of_the_table() -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs" / "install.md").read_text(encoding="utf-8")
    assert page.partition("needs.py -->\n")[2].partition("<!-- end")[0] == tables()
    example = json.loads((root / "templates" / "github-app" / "manifest.json").read_text(encoding="utf-8"))
    assert example == manifest("https://assay.example.org")
    assert manifest("http://127.0.0.1", webhook=False)["hook_attributes"] == {
        "url": f"http://127.0.0.1{WEBHOOK_PATH}",
        "active": False,
    }
