"""GitHub's responses and their errors: what happened, why, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.errors import AssayError, InfrastructureError, RefusalError
from bot.github.limits import SECONDARY_WAIT_S, ThrottledError
from bot.store.models import SuppressionCause

#: Messages of secondary rate limits, from GitHub's documentation and from the response to many comments in a
#: row, which has status 403 or 422.
_TOO_FAST = re.compile(r"rate limit|abuse detection|submitted too quickly|try again later", re.IGNORECASE)
_SPAM = re.compile(r"spam|flagged", re.IGNORECASE)
_LOCKED = re.compile(r"\blocked\b", re.IGNORECASE)
#: GitHub's "Repository was archived so is read-only." and "This installation has been suspended".
_SHUT = re.compile(r"\barchived\b|\bsuspended\b", re.IGNORECASE)
_BLOCKED = re.compile(r"\bblocked\b", re.IGNORECASE)


class NotFoundError(RefusalError):
    """The resource does not exist or is hidden from us; `error_message` is GitHub's message."""

    def __init__(self, message: str, error_message: str = "") -> None:
        super().__init__(message)
        self.error_message = error_message


class RepositoryUnavailableError(RefusalError):
    """The repository does not accept this kind of effect for now; `cause` is why."""

    def __init__(self, message: str, cause: SuppressionCause) -> None:
        super().__init__(message)
        self.cause = cause


class UnexpectedResponseError(InfrastructureError):
    """A successful response without the form of GitHub's API: a proxy's page, a missing field.

    The request may have been executed.
    """


@contextmanager
def expected_shape(about: str) -> Iterator[None]:
    """Raises UnexpectedResponseError if the block cannot parse GitHub's response about `about`."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnexpectedResponseError(
            f"GitHub's answer about {about} cannot be read ({type(error).__name__}: {error}); a proxy may "
            "have answered instead of GitHub. It is tried again later"
        ) from error


@dataclass(frozen=True)
class ApiResponse:
    """A response: header names in lower case, the parsed body as `data`.

    redirected  whether GitHub redirected the request: the repository was renamed or transferred
    """

    status: int
    headers: Mapping[str, str]
    data: Any
    redirected: bool = False

    @property
    def error_message(self) -> str:
        """GitHub's message with its details."""
        data = self.data if isinstance(self.data, dict) else {}
        errors = data.get("errors")
        items = errors if isinstance(errors, list) else [errors] if isinstance(errors, str) else []
        details = [
            str(one.get("message") or one.get("code")) if isinstance(one, dict) else str(one) for one in items
        ]
        return "; ".join([str(data.get("message") or "no reason given"), *details])[:500]

    @property
    def is_throttled(self) -> bool:
        """Whether GitHub throttled the request and did not execute it."""
        if self.status == 429:
            return True
        limited = "retry-after" in self.headers or bool(_TOO_FAST.search(self.error_message))
        return (self.status == 403 and limited) or (
            self.status == 422 and "too quickly" in self.error_message
        )

    @property
    def is_exhausted(self) -> bool:
        """Whether the primary limit is exhausted until `x-ratelimit-reset`."""
        return self.headers.get("x-ratelimit-remaining") == "0"

    def wait_s(self, at: datetime) -> float:
        """Seconds to wait: `retry-after`, else until the limit is reset, else a minute."""
        if self.headers.get("retry-after", "").isdigit():
            return float(self.headers["retry-after"])
        if self.is_exhausted and self.headers.get("x-ratelimit-reset", "").isdigit():
            return max(1.0, float(self.headers["x-ratelimit-reset"]) - at.timestamp())
        return SECONDARY_WAIT_S


def make_error(answer: ApiResponse, about: str, permission: str, at: datetime) -> AssayError:
    """The error of a response with status 400 or more.

    about  the subject of the request, such as acme/graphs
    permission  what the request needs, as GitHub writes it (`issues=write`); GitHub's own header wins
    """
    status, error_message = answer.status, answer.error_message
    if answer.is_throttled:
        return make_throttled_error(answer, at)
    where = f"GitHub answered {status} for {about}"
    if status == 401:
        return InfrastructureError(
            f"{where}: {error_message}; it does not accept our credentials. Check ASSAY_GITHUB_TOKEN, or "
            "ASSAY_GITHUB_APP_ID, ASSAY_GITHUB_PRIVATE_KEY_FILE and this machine's clock"
        )
    if status >= 500:
        return InfrastructureError(f"{where}: {error_message}; tried again later")
    advice = _forbidden(answer, permission) if status == 403 else _ADVICE.get(status, "nothing more is known")
    if status == 422 and _SPAM.search(error_message):
        advice = "GitHub takes the text for spam. Ask GitHub's support to clear the App's account"
    message = f"{where}: {error_message}; {advice}"
    if status == 403 and _SHUT.search(error_message):
        return RepositoryUnavailableError(message, SuppressionCause.UNWATCHED)
    return NotFoundError(message, error_message) if status in (404, 410) else RefusalError(message)


def make_throttled_error(answer: ApiResponse, at: datetime) -> ThrottledError:
    """The error of a response that `is_throttled`, or that `is_exhausted` the limit."""
    wait = answer.wait_s(at)
    limit = "the hour's requests are used up" if answer.is_exhausted else "too much at once"
    error_message = f": {answer.error_message}" if answer.is_throttled else ""
    return ThrottledError(
        f"GitHub asks to slow down ({limit}){error_message}; tried again in {wait:.0f} s", wait
    )


def _forbidden(answer: ApiResponse, permission: str) -> str:
    error_message = answer.error_message
    if "archived" in error_message.lower():
        return "the repository is archived and takes nothing. Unarchive it, or take the target off the list"
    if "suspended" in error_message.lower():
        return "the App is suspended there. The repository's owner can let it go on"
    if _LOCKED.search(error_message):
        return "the conversation is locked. Unlock it, or leave it: Assay posts nothing more there"
    if _BLOCKED.search(error_message):
        return "the repository's owner has blocked us. Take the target off the list"
    wanted = answer.headers.get("x-accepted-github-permissions") or permission
    return (
        f"the App lacks a permission ({wanted}). Grant it in the App's settings; the repository's owner must "
        "then accept it. Only Apps may create check runs, tokens may not"
    )


_ADVICE = {
    404: "the repository is gone or renamed, or the App is not installed there. Install it, or take the "
    "target off the list",
    410: "the repository has issues switched off, or this one was deleted. Switch them on, or set "
    "reports.mode to dry-run",
    422: "it does not accept the content. That is likely a bug of Assay: please report it",
    451: "the repository is closed for legal reasons. Take the target off the list",
}
