"""Many pushes to one pull request in little time, and what they leave."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bot.store.models import CampaignState
from tests.scenarios.stage import Stage
from tests.scenarios.toolchain import BAD


@dataclass(frozen=True)
class Calm:
    """After the storm.

    most_live     unfinished campaigns of the pull request at any one time
    done_heads    commits whose campaigns came to an end by themselves
    """

    pushes: int
    seconds: float
    campaigns: int
    most_live: int
    comments: int
    done_heads: list[str]
    last_head: str
    unfinished_checks: int


def storm(stage: Stage, name: str, pushes: int, seconds: float) -> Calm:
    """Pushes so many times in so many seconds, and waits until all is quiet."""
    repository = stage.repository(name)
    number = repository.open_pull({"requirements.txt": f"openvino=={BAD}\n"})
    begun, most = time.monotonic(), 0
    for turn in range(1, pushes + 1):
        time.sleep(max(0.0, begun + turn * seconds / pushes - time.monotonic()))
        repository.push_pull(number, {"docs/turn.md": f"{turn}\n"})
        most = max(most, _live(stage, name))
    took = time.monotonic() - begun
    stage.quiet()
    theirs = [one for one in stage.campaigns(name) if one.pull == number]
    return Calm(
        pushes,
        took,
        len(theirs),
        max(most, _live(stage, name)),
        len(repository.comments(number)),
        [one.head for one in theirs if one.state == CampaignState.DONE.value],
        repository.head("change"),
        sum(run.fields["status"] != "completed" for run in repository.check_runs),
    )


def _live(stage: Stage, name: str) -> int:
    return sum(bool(one.pull) and not CampaignState(one.state).ended for one in stage.campaigns(name))
