"""GitHub's documented limits, and the marker of our texts."""

from __future__ import annotations

from bot.errors import InfrastructureError

MAX_BODY = 65_536  # characters of an issue or comment; more is a 422
BODY_BUDGET = 60_000  # ours: GitHub may count differently (surrogates, line ends)
MAX_TITLE = 256  # characters of an issue's title
MAX_OUTPUT = 65_535  # characters of a check run's summary, and of its text
MAX_LABEL = 50
MAX_ANNOTATIONS = 50  # of one request for a check run; later requests append
PER_PAGE = 100  # items of a page of a list: GitHub's maximum
MAX_DESCRIPTION = 140  # characters of a commit status

#: Ours, of a response: the texts of a page of issues are at most PER_PAGE * MAX_BODY * 4 = 26 MB.
MAX_RESPONSE_BYTES = 64 << 20
#: GitHub's servers end requests after 10 s; ours wait a little longer.
TIMEOUT_S = 15
#: "Wait at least one second between writes": GitHub's best practices for the REST API.
WRITE_GAP_S = 1.0
#: "At least one minute" after a secondary limit without `retry-after`; same source.
SECONDARY_WAIT_S = 60.0


class ThrottledError(InfrastructureError):
    """GitHub throttles us and did not execute the request. `wait_s` is the time to wait, in seconds.

    partially_sent  whether an earlier request of the same effect was executed
    """

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s
        self.partially_sent = False


#: Beginning of the marker.
MARKER_PREFIX = "<!-- assay:"


def marker(key: str) -> str:
    """The hidden last line of everything we publish."""
    return f"{MARKER_PREFIX}{key} -->"
