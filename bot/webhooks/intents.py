"""Intents: what an event on GitHub asks of Assay, in Assay's own words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CampaignIntent:
    """Test a commit.

    target        owner/name
    head, base    commits; base is "" where there is none to compare with
    ref           what was pushed, such as refs/heads/main
    trigger       "push", "pull_request:7", …: with target and commits it makes a campaign unique
    installation  the GitHub App's installation there, None where no App is used
    delivery      the delivery that asked for it
    """

    target: str
    head: str
    base: str
    ref: str
    trigger: str
    installation: int | None = None
    delivery: str = ""


#: Everything an event can ask for.
Intent = CampaignIntent
