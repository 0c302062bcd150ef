"""Records reductions as `fuzzing.reduce` sends them, one transaction each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.campaigns.context import Context
from bot.campaigns.reduce.case_reduction import PROGRAM, ReducedCase, read_reduction
from bot.campaigns.run_with_lease import EventSink
from bot.errors import InfrastructureError, RunnerError
from bot.store import campaigns, outcomes, reductions
from bot.store.models import Reduction
from bot.store.outcomes import CacheKey
from fuzzing.exhausted_resources import exhausted_resource
from fuzzing.outcomes import Outcome


@dataclass(frozen=True)
class Attempt:
    """An attempted reduction.

    row      as recorded; None if the case is to be tried again by the next campaign
    problem  why there is none, ""  if there is
    """

    row: Reduction | None
    problem: str = ""


class ReductionRecorder(EventSink):
    """Records each case as it ends, with the time since the one before, and reports progress.

    key       under which the cases fail
    titles    case → its name in progress notes
    attempts  case → its attempt, of those that have ended
    current   the case that has begun and not ended, if any
    """

    def __init__(self, context: Context, key: CacheKey, titles: Mapping[str, str]) -> None:
        self._context, self._key, self._titles = context, key, titles
        self._expected = set(titles)
        self._others: list[str] = []
        self._charged = context.services.clock.monotonic()
        self.attempts: dict[str, Attempt] = {}
        self.current: str | None = None

    def add(self, event: dict[str, Any]) -> None:
        """Takes an event of the program; those outside a case tell nothing."""
        kind = event.get("event")
        if kind == "begin":
            self._begin(str(event.get("case")))
        elif self.current is None:
            return
        elif kind == "step":
            title, size = self._titles[self.current], event["size"]
            self._context.progress(0, 0, f"{title}: size {size[0]:g} after {event['run']} runs")
        elif kind == "other":
            self._others.append(str(event["id"]))
        elif kind == "unreducible":
            self._end(self.current, lambda case: self._row(case, reason=str(event.get("reason"))))
        elif kind == "end":
            end = {name: value for name, value in event.items() if name != "event"}
            self._end(self.current, lambda case: self._row_of_end(case, end))

    def record_problem(self, case: str, problem: str) -> None:
        """Records that a case was attempted and has no row."""
        self._record(case, Attempt(None, problem))

    def _begin(self, case: str) -> None:
        if self.current is not None or case not in self._expected:
            raise RunnerError(f"{PROGRAM} began an unexpected case: {case!r:.100}")
        self._expected.remove(case)
        self.current, self._others = case, []

    def _end(self, case: str, make: Callable[[str], Reduction]) -> None:
        small = None
        try:
            attempt = Attempt(make(case))
            small = read_reduction(attempt.row) if attempt.row is not None else None
        except InfrastructureError as error:
            attempt = Attempt(None, infrastructure_reason(error))
        self._record(case, attempt, small)

    def _record(self, case: str, attempt: Attempt, small: ReducedCase | None = None) -> None:
        now = self._context.services.clock.monotonic()
        elapsed, self._charged = now - self._charged, now
        with self._context.transaction() as (session, campaign):
            campaigns.add_seconds(campaign, self._context.step.state.value, elapsed)
            campaigns.record_reduction(campaign, case, attempt.problem)
            if small is not None:
                outcomes.record(session, [small.outcome], self._context.services.clock.now())
            if attempt.row is not None:
                attempt.row.seconds = round(elapsed, 3)
                reductions.record(session, attempt.row)
        self.attempts[case] = attempt
        self.current = None

    def _row(self, case: str, reason: str = "") -> Reduction:
        key = self._key
        return Reduction(
            case_id=case,
            toolchain=key.toolchain,
            backend=key.backend,
            device=key.device,
            configuration=key.configuration,
            reduced="",
            reason=reason,
            runs=0,
            seconds=0.0,
            body={},
            recorded_at=self._context.services.clock.now(),
        )

    def _row_of_end(self, case: str, end: dict[str, Any]) -> Reduction:
        """The row of an end event. Raises RunnerError if that is malformed."""
        try:
            row = self._row(case)
            row.runs, row.body = int(end["runs"]), end | {"others": self._others}
            outcome = Outcome.from_json(end["outcome"])
            if not end["confirmed"]:
                row.reason = "no smaller case failed in a fresh process"
            elif outcome.case != end["id"] or not self._key.fits(outcome):
                raise RunnerError(f"{PROGRAM} sent an unexpected outcome: {outcome.case!r:.100}")
            else:
                row.reduced = str(end["id"])
        except (KeyError, TypeError, ValueError) as error:
            raise RunnerError(f"{PROGRAM} sent an end event that is none: {error!r}") from None
        return row


def infrastructure_reason(error: Exception) -> str:
    """The reason in one line; without the program's log, which may contain anything."""
    message, what = str(error), exhausted_resource(str(error))
    message = message.splitlines()[0].removesuffix("; its log ends:")
    message += f": {what}" if what and what not in message else ""
    return f"the reducer failed; the next campaign tries again: {message}"
