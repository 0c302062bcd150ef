"""The `github-actions` runner: parts of shards as matrix jobs of a workflow on self-hosted machines.

One dispatch of `workflows/gpu-runner.yml` names the attempts, one job each. A job fetches its bundle from us
and uploads signed events (`bot.runners.exchange_routes`); a job that is silent for longer than its lease is
lost, and its part is dispatched again.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

from bot.errors import RunnerLostError, SettingsError
from bot.runners.bundle import pack_shard
from bot.runners.exchange import Exchange
from bot.runners.fair_slots import FairSlots
from bot.runners.parts import run_parts, split_shard
from bot.runners.protocol import Dispatcher, OnEvent, RunnerOptions, Shard, runner
from bot.runners.toolchain_archives import ToolchainArchives
from fuzzing.execute.shard import Shard as CaseShard

#: Seconds without a sign of life after which a runner is lost; it gives one every fifteen
#: (`bot.runners.remote`).
LEASE_S = 90.0
#: Seconds in which a job must begin. GitHub cancels jobs that wait a day; a campaign waits for less.
START_S = 1800.0
_POLL_S = 0.2


@runner("github-actions")
def make(options: RunnerOptions) -> GitHubActionsRunner:
    """The runner for the settings."""
    if not (options.key and options.url and options.dispatcher):
        raise SettingsError(
            "ASSAY_RUNNER is 'github-actions', which needs the service (assay serve), "
            "ASSAY_RUNNER_KEY, ASSAY_RUNNER_WORKFLOW, ASSAY_PUBLIC_URL and credentials for GitHub; set them"
        )
    folder = exchange_folder(options.data_dir)
    return GitHubActionsRunner(
        Exchange(folder),
        options.dispatcher,
        options.slots,
        options.url,
        options.labels,
        archives=options.archives,
    )


def exchange_folder(data_dir: Path) -> Path:
    """Where the attempts of runners on other machines lie."""
    return data_dir / "runners"


class GitHubActionsRunner:
    """Runs shards as jobs, at most `slots` at once.

    url       our address
    labels    of the machines
    archives  of toolchains, for machines that do not share our disk
    """

    def __init__(
        self,
        exchange: Exchange,
        dispatcher: Dispatcher,
        slots: int,
        url: str,
        labels: tuple[str, ...] = (),
        *,
        archives: ToolchainArchives | None = None,
        lease_s: float = LEASE_S,
        start_s: float = START_S,
    ) -> None:
        self._archives = archives
        self._exchange, self._dispatcher = exchange, dispatcher
        self._slots, self._url = FairSlots(slots), url
        self._labels = ["self-hosted", *labels]
        self._lease_s, self._start_s = lease_s, start_s

    def run(self, shard: Shard, on_event: OnEvent, stop: threading.Event) -> None:
        """See `bot.runners.protocol.Runner.run`."""
        parts = split_shard(shard, self._slots.count)
        run_parts(parts, self._run_part, on_event, stop)

    def _run_part(self, part: CaseShard, on_event: OnEvent, stop: threading.Event) -> None:
        with self._slots.slot(stop) as free:
            if not free:
                return
            toolchain = self._archives.publish(part.python) if self._archives else None
            attempt = self._exchange.open(pack_shard(part, toolchain))
            inputs = {
                "url": self._url,
                "name": attempt,
                "attempts": json.dumps([attempt]),
                "labels": json.dumps(self._labels),
            }
            ended = False
            try:
                self._dispatcher.dispatch(inputs)
                self._follow(attempt, on_event, stop)
                ended = True
            finally:
                self._exchange.close(attempt)
                if not ended or stop.is_set():
                    self._dispatcher.cancel(attempt)

    def _follow(self, attempt: str, on_event: OnEvent, stop: threading.Event) -> None:
        """Passes on the events of an attempt until its end or `stop`. Raises RunnerLostError."""
        number, waited = 0, 0.0
        while not stop.is_set():
            events = self._exchange.take(attempt, number)
            if events is not None:
                number += 1
                for event in events:
                    on_event(event)
                continue
            if self._exchange.has_ended(attempt, number):
                return
            silence = self._exchange.silence(attempt)
            if silence is None and waited > self._start_s:
                raise RunnerLostError(f"no machine took a job for {self._start_s:g} s")
            if silence is not None and silence > self._lease_s:
                raise RunnerLostError(f"a machine was silent for {self._lease_s:g} s")
            stop.wait(_POLL_S)
            waited += _POLL_S
