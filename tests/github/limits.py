"""GitHub's primary and secondary rate limits."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.github.calls import RefusedError

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@dataclass
class Limits:
    """The documented limits ("Rate limits for the REST API"); tests may set others.

    requests           an hour and an installation, at least
    searches           a minute
    creations_a_minute, creations_an_hour   requests that create content
    points             a minute: a read is 1, a write 5
    together           concurrent requests
    """

    requests: int = 5000
    searches: int = 30
    creations_a_minute: int = 80
    creations_an_hour: int = 500
    points: int = 900
    together: int = 100
    _used: defaultdict[tuple[str, str], list[datetime]] = field(default_factory=lambda: defaultdict(list))
    _created: defaultdict[str, deque[datetime]] = field(default_factory=lambda: defaultdict(deque))
    _points: defaultdict[str, deque[tuple[datetime, int]]] = field(default_factory=lambda: defaultdict(deque))

    def check(self, who: str, method: str, resource: str, creates: bool, at: datetime) -> None:
        """Raises RefusedError if the request exceeds a limit; then only the request itself is counted."""
        self._check_primary(who, resource, at)
        points = self._points[who]
        while points and points[0][0] <= at - MINUTE:
            points.popleft()
        if sum(worth for _, worth in points) + _worth(method) > self.points:
            raise _slow_down(60)
        points.append((at, _worth(method)))
        if creates:
            self._check_creations(who, at)

    def count(self, who: str, resource: str, at: datetime) -> None:
        """Counts a request against the primary limit; a 304 does not count."""
        self._window(who, resource, at).append(at)

    def headers(self, who: str, resource: str, at: datetime) -> dict[str, str]:
        """The headers of the primary limit."""
        used, most = self._window(who, resource, at), self._most(resource)
        start = used[0] if used else at
        return {
            "x-ratelimit-limit": str(most),
            "x-ratelimit-remaining": str(max(0, most - len(used))),
            "x-ratelimit-used": str(len(used)),
            "x-ratelimit-reset": str(int((start + _length(resource)).timestamp())),
            "x-ratelimit-resource": resource,
        }

    def _check_primary(self, who: str, resource: str, at: datetime) -> None:
        if len(self._window(who, resource, at)) >= self._most(resource):
            message = f"API rate limit exceeded for {who}."
            raise RefusedError(403, message, self.headers(who, resource, at))

    def _check_creations(self, who: str, at: datetime) -> None:
        made = self._created[who]
        while made and made[0] <= at - HOUR:
            made.popleft()
        recent = [one for one in made if one > at - MINUTE]
        if len(recent) >= self.creations_a_minute:
            raise _slow_down(max(1, int((recent[0] + MINUTE - at).total_seconds())))
        if len(made) >= self.creations_an_hour:
            raise _slow_down(max(1, int((made[0] + HOUR - at).total_seconds())))
        made.append(at)

    def _window(self, who: str, resource: str, at: datetime) -> list[datetime]:
        used = self._used[who, resource]
        if used and used[0] <= at - _length(resource):
            used.clear()  # GitHub's window is fixed and starts with its first request
        return used

    def _most(self, resource: str) -> int:
        return self.searches if resource == "search" else self.requests


def _length(resource: str) -> timedelta:
    return MINUTE if resource == "search" else HOUR


def _worth(method: str) -> int:
    return 1 if method in ("GET", "HEAD", "OPTIONS") else 5


def _slow_down(wait_s: int) -> RefusedError:
    message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    return RefusedError(403, message, {"retry-after": str(wait_s)})


def too_many_together() -> RefusedError:
    """The error for too many concurrent requests."""
    return _slow_down(60)
