"""A whole service, killed with SIGKILL in the middle of its work and started again; what it leaves."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot import demo
from bot.campaigns.plan.catalog import catalog_path
from bot.store import Database
from bot.store.models import CampaignState
from tests.support import live_service
from tests.support.crash_points import rows
from tests.support.live_service import wait_for

DELIVERY = "d-1"
#: A dead service's processes: their killer needs no time, but a loaded machine does.
DEATH_S = 120.0
#: How often it is looked what the service is doing, in seconds.
LOOK_S = 0.02
_ORDER = list(CampaignState)


class Outside:
    """A data folder, and what can be seen of the service at work in it.

    library, cases   where the cases lie, and which of them the campaign is to run
    """

    def __init__(self, root: Path, library: Path, cases: Sequence[str]) -> None:
        self.root, self.data_dir, self.temporary = root, root / "data", root / "tmp"
        self._library, self._cases = library, cases
        self.kills: list[str] = []
        self._sent: dict[str, int] = {}
        self._lives = 0
        for folder in (self.data_dir, self.temporary):
            folder.mkdir(parents=True)

    def write_catalogue(self) -> None:
        """Puts the catalog in place that makes the campaign a small one."""
        live_service.write_catalogue(self._library, self.data_dir, self._cases)

    @property
    def catalog(self) -> Path:
        """Where the migration's result will lie."""
        return catalog_path(self.data_dir / "corpus", live_service.SOURCE)

    @contextmanager
    def service(self) -> Iterator[tuple[demo.RunningService, Database]]:
        """Another life of the service, and its database."""
        self._lives += 1
        log = self.root / f"{self._lives}.log"
        variables = {"TMPDIR": str(self.temporary), "ASSAY_WORKERS": "1"}
        with (
            demo.service(self.data_dir, self.root.parent / "repositories", log, **variables) as running,
            live_service.rows(self.data_dir) as database,
        ):
            yield running, database

    def kill(self, running: demo.RunningService, database: Database) -> None:
        """Kills the service and nothing else; what it had started must die by itself."""
        running.process.kill()
        running.process.wait()
        wait_for(
            lambda: not live_service.processes(self.temporary),
            f"the end of {live_service.processes(self.temporary)}",
            timeout_s=DEATH_S,
        )
        state = self.state(database)
        self.kills.append(f"{state.value if state else 'no campaign'}, {len(self.sent())} sent")

    def await_end(self, database: Database) -> None:
        """Waits until the campaign and its effects are through."""
        wait_for(lambda: live_service.ended(database, DELIVERY), "the campaign's end", 0.1)

    def await_moment(
        self, moment: Moment, after_s: float, running: demo.RunningService, database: Database
    ) -> None:
        """Waits for the moment, and `after_s` seconds more; not for one that was missed."""

        def reached() -> bool:
            state = self.state(database)
            return state is not None and _ORDER.index(state) >= _ORDER.index(moment.state)

        def come() -> bool:
            if moment.state.ended:
                return moment.come(self)  # nothing to ask the database for: publishing takes milliseconds
            return self.state(database) is not moment.state or moment.come(self)

        # To look at all processes keeps a processor busy; but what is sent is out within milliseconds.
        poll_s = 0.0 if moment.state.ended else LOOK_S
        wait_for(reached, f"the campaign to be {moment.state.value}", poll_s or 0.001)
        wait_for(come, f"its work while {moment.state.value}", poll_s)
        try:
            code = running.process.wait(after_s)
        except subprocess.TimeoutExpired:
            return
        raise AssertionError(f"the service ended by itself with {code}")

    def state(self, database: Database) -> CampaignState | None:
        """The campaign's state; None while there is no campaign."""
        found = live_service.seen(database, DELIVERY)
        return found.state if found else None

    def runs(self, word: str) -> bool:
        """Whether a program is at work whose command line has this word."""
        return any(word in line for line in live_service.processes(self.temporary).values())

    def toolchains(self) -> int:
        """How many toolchains are made, the one at work included."""
        folders = [path for path in (self.data_dir / "toolchains").glob("*") if path.is_dir()]
        return len({folder.name.partition(".")[0] for folder in folders})

    def sent(self) -> dict[str, int]:
        """The effects that are out: a request's name → its file. Fails if one was sent again meanwhile."""
        found = (self.data_dir / "outbox" / demo.TARGET).glob("[!.]*.json")
        now = {path.name: path.stat().st_ino for path in found}
        assert self._sent.items() <= now.items(), "what was out is sent again"
        self._sent = now
        return now

    def publishing(self) -> bool:
        """Whether anything is in the outbox, be it half a file."""
        return any((self.data_dir / "outbox" / demo.TARGET).glob("*"))

    def left(self) -> dict[str, Any]:
        """What the campaign left that must not depend on how often it was killed."""
        there = rows(f"sqlite:///{self.data_dir}/assay.db")
        for effect in there["effects"]:
            del effect["payload"]  # compared as a file
        reported: dict[str, Any] = json.loads(_plain(json.dumps(there).replace(str(self.data_dir), "DATA")))
        return reported | {name: _plain(text) for name, text in live_service.outbox(self.data_dir).items()}


#: Times of day; where a dying process's thread lay in memory; and the numbers of OpenVINO's nodes, which it
#: counts over all that one process ever made.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+")
_NODE = re.compile(r"\b([A-Z][A-Za-z]+_)\d+\b")


def _plain(text: str) -> str:
    for pattern, plain in ((_TIME, "TIME"), (_ADDRESS, "0x"), (_NODE, r"\1#")):
        text = pattern.sub(plain, text)
    return text


def differences(got: Any, expected: Any, place: str = "") -> list[str]:
    """The innermost values in which two JSON values differ, each with its place: pytest cuts long values."""
    if isinstance(got, dict) and isinstance(expected, dict) and got.keys() == expected.keys():
        return [line for key in got for line in differences(got[key], expected[key], f"{place}.{key}")]
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        pairs = enumerate(zip(got, expected, strict=True))
        return [line for index, pair in pairs for line in differences(*pair, f"{place}[{index}]")]
    return [] if got == expected else [f"{place}: {got!r} instead of {expected!r}"]


@dataclass(frozen=True)
class Moment:
    """When to kill: in `state`, at most `within_s` seconds after `come`."""

    state: CampaignState
    come: Callable[[Outside], bool]
    within_s: float


def _testing(one: Outside) -> bool:
    return one.runs("execute/worker.py")


#: In each state the first sign of its work is waited for, then a part of the time it takes: migrating 6 s, a
#: toolchain 1 s, a compiler's start 0.5 s. A migration must not be over when we come to kill.
MOMENTS = (
    Moment(CampaignState.PLANNING, lambda one: one.runs("fuzzing.migrate"), 0.5),
    Moment(CampaignState.PROVISIONING, lambda one: one.toolchains() >= 1, 1.0),
    Moment(CampaignState.RUNNING, _testing, 2.0),
    Moment(CampaignState.CONFIRMING, _testing, 0.5),
    Moment(CampaignState.COMPARING, _testing, 1.0),
    Moment(CampaignState.REPORTING, lambda one: one.runs("fuzzing.triage"), 0.3),
    Moment(CampaignState.DONE, Outside.publishing, 0.0),
)
