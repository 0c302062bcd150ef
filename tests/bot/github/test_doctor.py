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
from bot.github.doctor import CheckResult, HealthReport, run_checks
from bot.github.permissions import EVENTS, PERMISSIONS, WEBHOOK_PATH, manifest, markdown_tables
from bot.github.reader import Reader
from bot.github.resources import AppInfo, DeliveryInfo, HookInfo, InstallationInfo, RepositoryInfo
from bot.webhooks.router import router
from tests.bot.github.outbox_kit import START

GRANTED: Mapping[str, str] = {requirement.name: requirement.level for requirement in PERMISSIONS}
SUBSCRIBED = tuple(requirement.name for requirement in EVENTS)
HOOK = HookInfo("https://assay.example.org" + WEBHOOK_PATH, "json", insecure=False)


def delivery(guid: str, status: int, event: str = "push") -> DeliveryInfo:
    return DeliveryInfo(1, guid, event, "", START, status, "OK", False, 4711, 7)


@dataclass
class FakeReader:
    """What a Reader tells, with everything as it should be."""

    is_app: bool = True
    permissions: Mapping[str, str] = field(default_factory=lambda: dict(GRANTED))
    events: tuple[str, ...] = SUBSCRIBED
    hook: HookInfo = HOOK
    sent: tuple[DeliveryInfo, ...] = (delivery("a", 202),)
    installed: tuple[InstallationInfo, ...] = (
        InstallationInfo(4711, "acme", GRANTED, SUBSCRIBED, suspended=False, selection="selected"),
    )
    no_hook: bool = False

    def login(self) -> str:
        return "assay[bot]" if self.is_app else "somebody"

    def app(self) -> AppInfo:
        url = "https://github.com/apps/assay"
        return AppInfo(1, "assay", "Assay", "acme", self.permissions, self.events, url, self.hook.url)

    def hook_config(self) -> HookInfo:
        return self.hook

    def deliveries(self, since: datetime) -> tuple[DeliveryInfo, ...]:
        if self.no_hook:
            raise RefusalError("the webhook is not active")
        return self.sent

    def installations(self) -> tuple[InstallationInfo, ...]:
        return self.installed

    def installation_repositories(self, number: int) -> tuple[RepositoryInfo, ...]:
        return (RepositoryInfo(7, "acme/graphs", "main", True, False, True, False, {}),)


def look(**changes: Any) -> HealthReport:
    return run_checks(cast("Reader", replace(FakeReader(), **changes)), "https://api.github.com", START)


def failing(health: HealthReport) -> list[CheckResult]:
    every = [
        *health.check_results,
        *(check_result for one in health.installations for check_result in one.check_results),
    ]
    return [check_result for check_result in every if check_result.state != "ok"]


def test_all_is_well() -> None:
    health = look()
    assert (health.is_ok, failing(health), health.login) == (True, [], "assay[bot]")
    assert health.installations[0].repositories == ("acme/graphs",)


@pytest.mark.parametrize("requirement", PERMISSIONS, ids=lambda requirement: requirement.name)
def test_each_permission_is_missed_where_it_is_needed(requirement: Any) -> None:
    health = look(permissions={name: level for name, level in GRANTED.items() if name != requirement.name})
    reported = next(
        check_result
        for check_result in health.check_results
        if check_result.name == f"permission {requirement.name}"
    )
    assert requirement.lost in reported.detail
    assert health.is_ok is requirement.optional
    assert (reported.state == "broken") is (requirement.name == "metadata")


@pytest.mark.parametrize("requirement", EVENTS, ids=lambda requirement: requirement.name)
def test_each_event_is_missed_where_it_is_needed(requirement: Any) -> None:
    health = look(events=tuple(name for name in SUBSCRIBED if name != requirement.name))
    reported = next(
        check_result
        for check_result in health.check_results
        if check_result.name == f"event {requirement.name}"
    )
    assert requirement.lost in reported.detail
    assert health.is_ok is requirement.optional


ACCEPT = "acme's owner must accept the new permissions"
PENDING = InstallationInfo(4711, "acme", {**GRANTED, "checks": "read"}, SUBSCRIBED, False, "all")


@pytest.mark.parametrize(
    ("changes", "name", "detail", "advice"),
    [
        ({"hook": HookInfo("", "json", False)}, "webhook", "no address", f"https://YOUR-HOST{WEBHOOK_PATH}"),
        ({"hook": HookInfo("https://x", "form", False)}, "webhook", "gets form", "application/json"),
        ({"hook": HookInfo("https://x", "json", True)}, "webhook", "does not verify", "SSL verification"),
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
    (check_result,) = failing(health)
    assert check_result.name == name
    assert detail in check_result.detail
    assert advice in check_result.advice
    assert not health.is_ok


def test_a_delivery_that_arrived_the_second_time_is_well() -> None:
    assert look(sent=(delivery("a", 202), delivery("a", 500))).is_ok


def test_a_token_says_what_is_lost() -> None:
    health = look(is_app=False)
    assert (health.is_ok, health.login) == (True, "somebody")
    assert "no check runs" in health.check_results[0].detail


def test_the_manifest_asks_for_what_is_needed() -> None:
    made = manifest("https://assay.example.org/")
    assert made["default_permissions"] == GRANTED
    assert made["default_events"] == list(SUBSCRIBED)
    assert made["hook_attributes"] == {"url": HOOK.url, "active": True}
    assert WEBHOOK_PATH in {route.path for route in router().routes if hasattr(route, "path")}


def test_the_page_on_installing_and_the_example_are_of_the_table() -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs" / "install.md").read_text(encoding="utf-8")
    assert page.partition("permissions.py -->\n")[2].partition("<!-- end")[0] == markdown_tables()
    example = json.loads((root / "templates" / "github-app" / "manifest.json").read_text(encoding="utf-8"))
    assert example == manifest("https://assay.example.org")
    assert manifest("http://127.0.0.1", webhook=False)["hook_attributes"] == {
        "url": f"http://127.0.0.1{WEBHOOK_PATH}",
        "active": False,
    }
