"""Checks the setup on GitHub: the App, its webhook, its installations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.errors import RefusalError
from bot.github.permissions import EVENTS, PERMISSIONS, PROPOSAL_PERMISSIONS, WEBHOOK_PATH
from bot.github.reader import Reader
from bot.github.resources import AppInfo, DeliveryInfo, InstallationInfo

#: GitHub keeps deliveries for three days; one day shows whether they currently arrive.
LOOKBACK = timedelta(days=1)
MAX_SHOWN = 5  # failed deliveries


@dataclass(frozen=True)
class CheckResult:
    """Result of one check.

    state   ok, missing (a feature is lost), broken (nothing works until it is fixed)
    detail  what was found; `advice` is what to do, "" if nothing
    """

    name: str
    state: str
    detail: str
    advice: str = ""


@dataclass(frozen=True)
class InstallationReport:
    """One installation: its account, number of repositories, and missing permissions."""

    id: int
    account: str
    repositories: tuple[str, ...]
    check_results: tuple[CheckResult, ...]


@dataclass(frozen=True)
class HealthReport:
    """Results of all checks; `login` is the author of our texts."""

    api: str
    login: str
    app: bool
    check_results: tuple[CheckResult, ...]
    installations: tuple[InstallationReport, ...] = field(default=())

    @property
    def is_ok(self) -> bool:
        """Whether nothing required is missing."""
        every = [
            *self.check_results,
            *(check_result for one in self.installations for check_result in one.check_results),
        ]
        return all(check_result.state == "ok" for check_result in every)


def run_checks(reader: Reader, api: str, at: datetime) -> HealthReport:
    """Runs all checks. Raises InfrastructureError if GitHub is unreachable or rejects our credentials."""
    if not reader.is_app:
        return HealthReport(api, reader.login(), False, _check_token())
    app = reader.app()
    check_results = (
        *_permissions(app.permissions, "the App asks for", "Ask for it in the App's settings"),
        *_events(app.events, "Subscribe to it in the App's settings"),
        _hook(reader),
        *_deliveries(reader, at),
    )
    installations = reader.installations()
    installed = tuple(_installation(reader, app, one) for one in installations)
    if not installations:
        nowhere = f"the App is installed nowhere. Install it: {app.url}/installations/new"
        check_results = (*check_results, CheckResult("installations", "missing", "none", nowhere))
    return HealthReport(api, reader.login(), True, check_results, installed)


def _check_token() -> tuple[CheckResult, ...]:
    lost = "no check runs (a commit status instead), no annotations, no buttons, no lost deliveries fetched"
    return (CheckResult("identity", "ok", f"a token, good for trying out: {lost}; it cannot be narrowed"),)


def _permissions(granted: Mapping[str, str], login: str, advice: str) -> Iterable[CheckResult]:
    for requirement in PERMISSIONS:
        name, has = f"permission {requirement.name}", granted.get(requirement.name, "none")
        if requirement.is_met(granted):
            yield CheckResult(name, "ok", f"{login} {has}")
        elif not requirement.optional:
            state = "broken" if requirement.name == "metadata" else "missing"
            yield CheckResult(
                name, state, f"{login} {has}, {requirement.level} is needed: {requirement.lost}", advice
            )
        else:
            yield CheckResult(name, "ok", f"{login} {has}; without {requirement.level} {requirement.lost}")
    for requirement in PROPOSAL_PERMISSIONS:
        if not requirement.is_met(granted):
            yield CheckResult(
                f"permission {requirement.name}", "ok", f"not {requirement.level}: {requirement.lost}"
            )


def _events(subscribed: Iterable[str], advice: str) -> Iterable[CheckResult]:
    there = set(subscribed)
    for requirement in EVENTS:
        if requirement.name in there:
            yield CheckResult(f"event {requirement.name}", "ok", "subscribed to")
        elif requirement.optional:
            yield CheckResult(f"event {requirement.name}", "ok", f"not subscribed to: {requirement.lost}")
        else:
            yield CheckResult(
                f"event {requirement.name}", "missing", f"not subscribed to: {requirement.lost}", advice
            )


def _hook(reader: Reader) -> CheckResult:
    hook = reader.hook_config()
    if not hook.url:
        return CheckResult("webhook", "missing", "no address", f"Set it to https://YOUR-HOST{WEBHOOK_PATH}")
    if hook.content_type != "json":
        return CheckResult(
            "webhook", "broken", f"{hook.url} gets {hook.content_type}", "Choose application/json"
        )
    if hook.insecure:
        return CheckResult(
            "webhook",
            "missing",
            f"{hook.url}, whose certificate GitHub does not verify",
            "Switch SSL verification on",
        )
    return CheckResult("webhook", "ok", hook.url)


def _deliveries(reader: Reader, at: datetime) -> Iterable[CheckResult]:
    try:
        found = reader.deliveries(at - LOOKBACK)
    except RefusalError as error:
        yield CheckResult("deliveries", "missing", str(error), "Switch the webhook on in the App's settings")
        return
    lost = _lost(found)
    if not found:
        yield CheckResult(
            "deliveries", "ok", "none in 24 hours; push something to see whether they come through"
        )
    elif not lost:
        yield CheckResult("deliveries", "ok", f"{len({one.guid for one in found})} in 24 hours, all accepted")
    else:
        shown = ", ".join(f"{one.event} {_code(one)}" for one in lost[:MAX_SHOWN])
        yield CheckResult(
            "deliveries",
            "missing",
            f"{len(lost)} of {len({one.guid for one in found})} in 24 hours were not accepted: {shown}",
            _why(lost[0]),
        )


def _lost(found: Iterable[DeliveryInfo]) -> list[DeliveryInfo]:
    """The last attempt of each delivery that never arrived, newest first."""
    attempts: dict[str, list[DeliveryInfo]] = {}
    for one in found:
        attempts.setdefault(one.guid, []).append(one)
    return [tries[0] for tries in attempts.values() if not any(one.arrived for one in tries)]


def _code(one: DeliveryInfo) -> str:
    return str(one.status_code) if one.status_code else one.status


def _why(one: DeliveryInfo) -> str:
    if one.status_code in (401, 403):
        return "The webhook's secret and ASSAY_WEBHOOK_SECRET differ: make them the same"
    if one.status_code == 404:
        return f"The webhook's address leads elsewhere: it must end in {WEBHOOK_PATH}"
    if one.status_code:
        return "Read the service's log of that time; what failed is delivered again within the hour"
    return "GitHub cannot reach the address: check the name, the certificate and the firewall"


def _installation(reader: Reader, app: AppInfo, one: InstallationInfo) -> InstallationReport:
    if one.suspended:
        check_result = CheckResult("state", "missing", "suspended by its owner", "Ask them to unsuspend it")
        return InstallationReport(one.id, one.account, (), (check_result,))
    pending = [name for name in app.permissions if one.permissions.get(name) != app.permissions[name]]
    advice = f"{one.account}'s owner must accept the new permissions, in the settings of the installation"
    check_results = [
        check_result
        for check_result in _permissions(one.permissions, "granted", advice)
        if check_result.state != "ok" or check_result.name.removeprefix("permission ") in pending
    ]
    repositories = reader.installation_repositories(one.id)
    for repository in repositories:
        if repository.archived:
            check_results.append(CheckResult(repository.full_name, "ok", "archived: it is not tested"))
        elif not repository.has_issues:
            detail = "issues are switched off: bugs appear in check runs and comments only"
            check_results.append(CheckResult(repository.full_name, "ok", detail))
    return InstallationReport(
        one.id, one.account, tuple(each.full_name for each in repositories), tuple(check_results)
    )
