"""Fields that several events share, with the forms GitHub gives them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from bot.webhooks.intents import RepositoryRef

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FULL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_LOGIN = re.compile(r"[A-Za-z0-9_.\[\]-]{1,100}")
#: GitHub's own stand-in for an account that was deleted.
GHOST = "ghost"


def _sha(text: str) -> str:
    if not _SHA.fullmatch(text):
        raise ValueError("not a commit id")
    return text


def _full_name(text: str) -> str:
    # It names folders and addresses later on: nothing may climb out of them.
    if not _FULL_NAME.fullmatch(text) or any(part.strip(".") == "" for part in text.split("/")):
        raise ValueError("not a repository's owner/name")
    return text


def _login(text: str) -> str:
    if not _LOGIN.fullmatch(text):
        raise ValueError("not an account's name")
    return text


def _parse_timestamp(value: Any) -> Any:
    """GitHub writes times as ISO 8601 text in some events and as seconds since 1970 in others."""
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC).isoformat()
        except (OverflowError, OSError, ValueError):
            raise ValueError("not a time") from None
    return value


def _utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time without its zone")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("not a time") from None


Sha = Annotated[str, AfterValidator(_sha)]
FullName = Annotated[str, AfterValidator(_full_name)]
Login = Annotated[str, AfterValidator(_login)]
Timestamp = Annotated[datetime, Field(strict=False), BeforeValidator(_parse_timestamp), AfterValidator(_utc)]
#: What GitHub numbers; more would not fit a BIGINT.
Id = Annotated[int, Field(ge=0, lt=1 << 63)]
Number = Annotated[int, Field(ge=1, lt=1 << 31)]


def is_zero(sha: str) -> bool:
    """Whether this is GitHub's value for no commit."""
    return set(sha) == {"0"}


class Payload(BaseModel):
    """Base of all payload models: exact types, unknown fields passed over."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Repository(Payload):
    """The repository an event is about."""

    full_name: FullName
    id: Id | None = None


class Installation(Payload):
    """The GitHub App's installation through which an event came."""

    id: Id


class Account(Payload):
    """A user, an organization, or a program's account."""

    login: Login
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Whether a program acts through it."""
        return self.type == "Bot"


class RepositoryPayload(Payload):
    """Fields of every event about a repository."""

    repository: Repository
    installation: Installation | None = None

    def intent_fields(self) -> dict[str, Any]:
        """The fields of `Intent`."""
        return {
            "target": self.repository.full_name,
            "github_id": self.repository.id,
            "installation": self.installation.id if self.installation else None,
        }


class ActionPayload(RepositoryPayload):
    """An action in a repository, and its actor."""

    action: str
    sender: Account | None = None

    @property
    def actor(self) -> Account:
        """Who did it."""
        return self.sender or Account(login=GHOST)


class ListedRepository(Payload):
    """A repository in the list of an installation event."""

    full_name: FullName
    id: Id
    private: bool = False

    def to_ref(self) -> RepositoryRef:
        """As intents name it."""
        return RepositoryRef(name=self.full_name, github_id=self.id, private=self.private)
