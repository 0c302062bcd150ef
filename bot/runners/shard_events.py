"""Validates the events of a shard's process: they are untrusted data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bot.errors import InfrastructureError, RunnerError, ToolchainError
from bot.runners.protocol import Event, Shard
from fuzzing import backends
from fuzzing.outcomes import Outcome


class ShardEventValidator:
    """Validates the events of one shard and passes them on.

    Order: one start, then outcomes, then one end; or an error at any time, which is raised.
    """

    def __init__(self, shard: Shard, on_event: Callable[[Event], None]) -> None:
        self._shard, self._on_event = shard, on_event
        # A backend outside Assay is named by its file, its outcomes by the name that it registers.
        name = shard.backend
        self._backend = backends.get(name).name if name.endswith(".py") else name
        self._cases = frozenset(shard.cases)
        self._seen: set[tuple[str, int]] = set()
        self._started = False
        self.ended = False

    def take(self, event: Event) -> None:
        """Passes `event` on; raises RunnerError if it is malformed or out of order."""
        kind = event.get("event")
        check = _CHECKS.get(kind) if isinstance(kind, str) else None
        if check is None:
            raise RunnerError(
                f"a shard sent an unknown event, {str(kind)[:50]!r}; is its runner of another version?"
            )
        if self.ended:
            raise RunnerError(f"a shard sent {kind!r} after its end")
        check(self, event)
        self._on_event(event)

    def _start(self, event: Event) -> None:
        if self._started:
            raise RunnerError("a shard started twice")
        _field(event, "cases", int)
        _check_versions(event)
        self._started = True

    def _outcome(self, event: Event) -> None:
        repeat = _field(event, "repeat", int)
        try:
            outcome = Outcome.from_json(_field(event, "outcome", dict))
        except InfrastructureError as error:
            raise RunnerError(str(error)) from None
        shard, key = self._shard, (outcome.case, repeat)
        if not self._started or outcome.case not in self._cases or not 0 <= repeat < shard.repeats:
            raise RunnerError(f"a shard sent an unexpected outcome: case {outcome.case[:64]!r}, run {repeat}")
        if (outcome.backend, outcome.toolchain, outcome.device) != (
            self._backend,
            shard.toolchain,
            shard.device,
        ):
            raise RunnerError(f"a shard sent an outcome of another toolchain: {outcome.toolchain[:64]!r}")
        if key in self._seen:
            raise RunnerError(f"a shard sent run {repeat} of case {outcome.case} twice")
        self._seen.add(key)

    def _end(self, event: Event) -> None:
        _field(event, "outcomes", int)
        _field(event, "stopped", str)
        _check_versions(event)
        _check_costs(event)
        if not self._started:
            raise RunnerError("a shard ended before it started")
        self.ended = True

    def _error(self, event: Event) -> None:
        message = _field(event, "message", str)[:4000]
        if event.get("kind") == "toolchain":
            raise ToolchainError(message)
        raise RunnerError(f"the shard was refused: {message}")


_CHECKS: dict[str, Callable[[ShardEventValidator, Event], None]] = {
    "start": ShardEventValidator._start,
    "outcome": ShardEventValidator._outcome,
    "end": ShardEventValidator._end,
    "error": ShardEventValidator._error,
}


def _check_versions(event: Event) -> None:
    """`versions` in start or end: package → version."""
    if "versions" not in event:
        return
    versions = _field(event, "versions", dict)
    if not all(isinstance(text, str) for item in versions.items() for text in item):
        raise RunnerError(f"a shard sent versions that are not text: {str(versions)[:200]}")


def _check_costs(event: Event) -> None:
    """Costs in an end event: times in seconds, counts; missing ones are allowed."""
    times = [event.get(name, 0.0) for name in ("seconds", "busy")]
    times += (_field(event, "phases", dict) if "phases" in event else {}).values()
    counts = [event.get("respawns", 0)]
    counts += (_field(event, "cached", dict) if "cached" in event else {}).values()
    if not all(type(time) in (int, float) and 0 <= time < float("inf") for time in times) or not all(
        type(count) is int and count >= 0 for count in counts
    ):
        raise RunnerError(f"a shard sent invalid figures: {str(times + counts)[:200]}")


def _field(event: Event, name: str, kind: type[Any]) -> Any:
    value = event.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RunnerError(
            f"a shard sent a {event['event']!r} event whose {name!r} is not of type {kind.__name__}"
        )
    return value
