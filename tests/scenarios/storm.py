"""Many pushes to one pull request in little time, and what they leave."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bot.store.models import CampaignState
from tests.scenarios.stage import Stage
from tests.scenarios.toolchain import BAD


@dataclass(frozen=True)
class Calm:
    """After the storm.

    quiet_s       from the first push until nothing was left to be done
    most_live     unfinished campaigns of the pull request at any one time
    done_heads    commits whose campaigns came to an end by themselves
    """

    pushes: int
    seconds: float
    quiet_s: float
    campaigns: int
    most_live: int
    comments: int
    done_heads: list[str]
    last_head: str
    unfinished_checks: int


def storm(stage: Stage, name: str, pushes: int, seconds: float) -> Calm:
    """Pushes so many times in so many seconds, and waits until all is quiet."""
    return storms(stage, [name], pushes, seconds)[0]


def storms(stage: Stage, names: Sequence[str], pushes: int, seconds: float) -> list[Calm]:
    """The same in several repositories at once; what each of them is left with."""
    repositories = [stage.repository(name) for name in names]
    numbers = [one.open_pull({"requirements.txt": f"openvino=={BAD}\n"}) for one in repositories]
    begun, most = time.monotonic(), dict.fromkeys(names, 0)

    def look() -> None:
        for name in names:
            most[name] = max(most[name], _live(stage, name))

    for turn in range(1, pushes + 1):
        time.sleep(max(0.0, begun + turn * seconds / pushes - time.monotonic()))
        for repository, number in zip(repositories, numbers, strict=True):
            repository.push_pull(number, {"docs/turn.md": f"{turn}\n"})
        look()
    took = time.monotonic() - begun
    stage.quiet()
    quiet = time.monotonic() - begun
    look()
    found = []
    for repository, number in zip(repositories, numbers, strict=True):
        theirs = [one for one in stage.campaigns(repository.name) if one.pull == number]
        calm = Calm(
            pushes,
            took,
            quiet,
            len(theirs),
            most[repository.name],
            len(repository.comments(number)),
            [one.head for one in theirs if one.state == CampaignState.DONE.value],
            repository.head("change"),
            sum(run.fields["status"] != "completed" for run in repository.check_runs),
        )
        found.append(calm)
    return found


def _live(stage: Stage, name: str) -> int:
    return sum(bool(one.pull) and not CampaignState(one.state).ended for one in stage.campaigns(name))
