"""Show the state of the service: campaigns, bugs, unsent effects and their reasons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from bot.cli.common.console import stdout
from bot.cli.common.options import json_option
from bot.cli.common.service_database import open_database
from bot.cli.exits import Exit
from bot.errors import UsageError
from bot.store import now, outbox, overview
from bot.store.models import AuditEvent, Bug, Effect, Proposal
from bot.terminal import echo


@click.command()
@click.argument("target", metavar="[OWNER/NAME]", required=False)
@json_option
def command(target: str | None, as_json: bool) -> Exit:
    """Show the state of the service: campaigns, bugs, unsent effects and their reasons.

    Without an argument, one line for each repository; with one, its details. The service may be running.
    """
    with open_database() as (_, database), database.reading() as session:
        stops = [
            one for one in outbox.kill_switches(session) if target is None or one.name in ("all", target)
        ]
        kill_switches = [{"target": one.name, "reason": one.reason} for one in stops]
        if target is None:
            result: dict[str, Any] = {
                "paused": kill_switches,
                "repositories": [_line(one) for one in overview.watched(session, public=False)],
            }
        else:
            seen = overview.of_target(session, target, now())
            if seen is None:
                raise UsageError(f"unknown repository {target!r}; `assay status` lists all")
            result = {"paused": kill_switches} | _whole(seen)
    if as_json:
        echo(json.dumps(result))
    elif target is None:
        _print_all(result)
    else:
        _print_one(result)
    return Exit.OK


def _line(one: overview.TargetSummary) -> dict[str, Any]:
    return {
        "name": one.target.name,
        "state": one.target.state,
        "reason": one.target.reason,
        "private": one.target.private,
        "mode": one.mode,
        "running": one.running,
        "open_bugs": one.bugs,
        "last": _ended(one.last) if one.last else None,
    }


def _ended(one: overview.EndedCampaign) -> dict[str, Any]:
    campaign = one.campaign
    return {
        "campaign": campaign.id,
        "pull": campaign.pull,
        "ref": campaign.ref,
        "head": campaign.head,
        "state": campaign.state,
        "reason": campaign.reason,
        "ended": campaign.updated_at.isoformat(),
        "findings": {classification.value: count for classification, count in one.counts.items()},
    }


def _whole(seen: overview.Overview) -> dict[str, Any]:
    return _line(seen.watched) | {
        "jobs": seen.status.jobs,
        "unsent": seen.status.unsent,
        "campaigns": {
            "running": [
                {
                    "campaign": one.campaign.id,
                    "pull": one.campaign.pull,
                    "ref": one.campaign.ref,
                    "head": one.campaign.head,
                    "state": "waiting" if one.waiting else one.campaign.state,
                    "done": one.done,
                    "total": one.total,
                    "note": one.note,
                }
                for one in seen.running
            ],
            "ended": [_ended(one) for one in seen.ended],
        },
        "bugs": [_bug(bug) for bug in seen.bugs],
        "held": [_effect(one) for one in seen.held],
        "failed": [_effect(one) for one in seen.failed],
        "retrying": [_effect(one) for one in seen.retrying],
        "proposals": [_proposal(one) for one in seen.proposals],
        "acts": [_audit_event(one) for one in seen.audit_events],
    }


def _bug(bug: Bug) -> dict[str, Any]:
    return {"id": bug.id, "state": bug.state, "title": bug.title, "issue": bug.issue, "reason": bug.reason}


def _effect(one: Effect) -> dict[str, Any]:
    return {"key": one.key, "kind": one.kind, "bug": one.bug_id, "number": one.number, "reason": one.reason}


def _proposal(one: Proposal) -> dict[str, Any]:
    return {
        "test": one.test,
        "path": one.path,
        "state": one.state,
        "number": one.number,
        "reason": one.reason,
    }


def _audit_event(one: AuditEvent) -> dict[str, Any]:
    return {
        "at": one.at.isoformat(),
        "who": one.actor,
        "what": one.action,
        "subject": one.subject,
        "why": one.reason,
    }


def _print_all(result: Mapping[str, Any]) -> None:
    console = stdout()
    _show_paused(console, result)
    for one in result["repositories"]:
        state = "" if one["state"] == "watched" else f", {one['state']}"
        console.print(
            f"[bold]{escape(one['name'])}[/]{state}: {one['running']} running, {one['open_bugs']} open bugs, "
            f"reports {one['mode'] or 'not tested yet'}; {escape(_result(one['last']))}"
        )
    if not result["repositories"]:
        console.print("no repositories yet: install the App on one, or list it in ASSAY_WATCH")


def _print_one(result: Mapping[str, Any]) -> None:
    console = stdout()
    _show_paused(console, result)
    reason = f": {result['reason']}" if result["reason"] else ""
    console.print(f"[bold]{escape(result['name'])}[/] is {result['state']}{escape(reason)}")
    console.print(f"reports: {result['mode'] or 'not tested yet'}; {result['unsent']} effects queued, "
                  f"{result['jobs']} jobs open")  # fmt: skip
    _part(console, "running", [f"{_name(one)}: {one['state']} {one['note']}".rstrip()
                               for one in result["campaigns"]["running"]])  # fmt: skip
    _part(console, "ended", [_result(one) for one in result["campaigns"]["ended"]])
    _part(console, "bugs", [
        f"{bug['id']:4} {bug['state']:9} {bug['title']}" + (f" #{bug['issue']}" if bug["issue"] else "")
        + (f"\n       {bug['reason']}" if bug["reason"] else "")
        for bug in result["bugs"]
    ])  # fmt: skip
    _part(console, "proposed tests, newest first", [
        f"{one['state']:7} {one['test']} in {one['path']}: {one['reason']}" for one in result["proposals"]
    ])  # fmt: skip
    for state in ("held", "failed", "retrying"):
        _part(console, f"{state} effects", [
            f"{one['kind']}{_about(one)}: {one['reason']}" for one in result[state]
        ])  # fmt: skip
    _part(console, "audit log, newest first", [
        f"{act['at'][:16].replace('T', ' ')} {act['who']} {act['what']} {act['subject']}: {act['why']}"
        for act in result["acts"]
    ])  # fmt: skip


def _part(console: Console, title: str, lines: list[str]) -> None:
    if lines:
        console.print(f"\n[bold]{title}[/]")
    for line in lines:
        console.print(f"  {escape(line)}")


def _show_paused(console: Console, result: Mapping[str, Any]) -> None:
    for one in result["paused"]:
        where = "everything" if one["target"] == outbox.ALL_TARGETS else one["target"]
        reason = f": {one['reason']}" if one["reason"] else ""
        console.print(f"[red]publishing is paused[/] for {escape(where + reason)} (`assay resume` ends it)")


def _name(campaign: Mapping[str, Any]) -> str:
    about = f"#{campaign['pull']}" if campaign["pull"] else campaign["ref"].removeprefix("refs/heads/")
    return f"campaign {campaign['campaign']}, {about or 'no branch'} at {campaign['head'][:12]}"


def _result(ended: Mapping[str, Any] | None) -> str:
    if ended is None:
        return "no campaign has ended"
    found = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in ended["findings"].items())
    reason = f" ({ended['reason']})" if ended["reason"] else ""
    return f"{_name(ended)}: {ended['state']}{reason}, {found or 'no findings'}"


def _about(effect: Mapping[str, Any]) -> str:
    if effect["bug"]:
        return f" of bug {effect['bug']}"
    return f" of #{effect['number']}" if effect["number"] else ""
