"""Many pushes to one pull request in little time, and what they leave."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bot.store.models import CampaignState
from tests.scenarios.deployment import Deployment
from tests.scenarios.fake_toolchain import BAD


@dataclass(frozen=True)
class StormResult:
    """After the storm.

    idle_after_s       from the first push until nothing was left to be done
    max_unfinished     unfinished campaigns of the pull request at any one time
    done_heads    commits whose campaigns came to an end by themselves
    """

    pushes: int
    seconds: float
    idle_after_s: float
    campaigns: int
    max_unfinished: int
    comments: int
    done_heads: list[str]
    last_head: str
    unfinished_checks: int


def storm(deployment: Deployment, name: str, pushes: int, seconds: float) -> StormResult:
    """Pushes so many times in so many seconds, and waits until all is quiet."""
    return storms(deployment, [name], pushes, seconds)[0]


def storms(deployment: Deployment, names: Sequence[str], pushes: int, seconds: float) -> list[StormResult]:
    """The same in several repositories at once; what each of them is left with."""
    repositories = [deployment.repository(name) for name in names]
    numbers = [one.open_pull({"requirements.txt": f"openvino=={BAD}\n"}) for one in repositories]
    begun, most = time.monotonic(), dict.fromkeys(names, 0)

    def look() -> None:
        for name in names:
            most[name] = max(most[name], _count_unfinished(deployment, name))

    for turn in range(1, pushes + 1):
        time.sleep(max(0.0, begun + turn * seconds / pushes - time.monotonic()))
        for repository, number in zip(repositories, numbers, strict=True):
            repository.push_pull(number, {"docs/turn.md": f"{turn}\n"})
        look()
    took = time.monotonic() - begun
    deployment.wait_until_idle()
    quiet = time.monotonic() - begun
    look()
    found = []
    for repository, number in zip(repositories, numbers, strict=True):
        theirs = [one for one in deployment.campaigns(repository.name) if one.pull == number]
        storm_result = StormResult(
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
        found.append(storm_result)
    return found


def _count_unfinished(deployment: Deployment, name: str) -> int:
    return sum(bool(one.pull) and not CampaignState(one.state).ended for one in deployment.campaigns(name))
