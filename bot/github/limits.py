"""GitHub's limits, and the mark that lets us find our own texts again.

The numbers are GitHub's documented ones; those that are ours say so.
"""

from __future__ import annotations

from bot.errors import InfrastructureError

MAX_BODY = 65_536  # characters of an issue or comment; more is answered 422
BODY_BUDGET = 60_000  # ours: room for what GitHub counts differently (surrogates, line ends)
MAX_TITLE = 256  # characters of an issue's title
MAX_OUTPUT = 65_535  # characters of a check run's summary, and of its text
MAX_LABEL = 50
MAX_ANNOTATIONS = 50  # that one request of a check run may bring; later requests add to them
MAX_DESCRIPTION = 140  # characters of a commit status

#: A request longer than 10 s is ended by GitHub's servers; ours waits a little more.
TIMEOUT_S = 15
#: "Wait at least one second between writes": GitHub's best practices for the REST API.
WRITE_GAP_S = 1.0
#: "At least one minute" after a secondary limit that names no time; same source.
SECONDARY_WAIT_S = 60.0


class ThrottledError(InfrastructureError):
    """GitHub asks to slow down; the request was not carried out. `wait_s` is how long, in seconds.

    partially_sent  whether an earlier request of the same effect was carried out
    """

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s
        self.partially_sent = False


#: How the hidden mark of everything we publish begins.
MARKER_PREFIX = "<!-- assay:"


def marker(key: str) -> str:
    """The hidden last line of everything we publish."""
    return f"{MARKER_PREFIX}{key} -->"
