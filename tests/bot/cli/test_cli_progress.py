"""What is shown while a campaign runs, on terminals of any width."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from bot.campaigns.progress import Progress
from bot.cli.common.progress import ProgressBars
from bot.store.models import CampaignState

STEPS = (
    Progress(1, CampaignState.PROVISIONING, 0, 0, "making the toolchain"),
    Progress(1, CampaignState.PLANNING, 2027, 2027, "2027 cases planned"),
    Progress(1, CampaignState.RUNNING, 500, 2027, "500 of 2027 runs at head"),
    Progress(1, CampaignState.REPORTING, 0, 0, "writing"),
)


def shown(width: int) -> list[str]:
    """The lines that stand at the end on a terminal of that width."""
    console = Console(file=StringIO(), force_terminal=True, width=width, color_system=None)
    with ProgressBars(console) as progress_bars:
        for step in STEPS:
            progress_bars(step)
    assert isinstance(console.file, StringIO)
    last = console.file.getvalue().rpartition("\x1b[2K")[2]
    return [line.rstrip() for line in last.splitlines() if line.strip() and "\x1b" not in line]


@pytest.mark.parametrize("width", [48, 71, 72, 200])
def test_each_step_is_a_line_that_says_how_far_it_came(width: int) -> None:
    lines = shown(width)
    assert [len(line) <= width for line in lines] == [True] * 4
    words = ["installing toolchains", "collecting cases", "running cases at head", "writing reports"]
    assert [line.startswith(word) for line, word in zip(lines, words, strict=True)] == [True] * 4
    assert "2,027/2,027" in lines[1]
    assert "500/2,027" in lines[2], "a budget that is over leaves it where it was"
    assert not any("?" in line or "…" in line for line in lines)
    assert ("━" in lines[1]) is (width >= 72)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_result_is_a_line_of_its_own_at_once(terminal: bool) -> None:
    file = StringIO()
    found = "regression: test_lppool: crash"
    with ProgressBars(Console(file=file, force_terminal=terminal, width=200)) as progress_bars:
        progress_bars(STEPS[2])
        progress_bars(Progress(1, CampaignState.RUNNING, 0, 0, found, lasting=True))
        assert f"s] {found}" in file.getvalue()
        progress_bars(STEPS[2])
    assert file.getvalue().count(found) == 1


def test_elsewhere_it_is_a_line_for_each_step() -> None:
    file = StringIO()
    with ProgressBars(Console(file=file, width=500)) as progress_bars:
        for step in STEPS:
            progress_bars(step)
    assert [line.partition("] ")[2] for line in file.getvalue().splitlines()] == [
        "installing toolchains: making the toolchain",
        "collecting cases: 2027 cases planned",
        "running cases at head: 500 of 2027 runs at head",
        "writing reports: writing",
    ]
