"""Fields that several events share, with the forms GitHub gives them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FULL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")


def _sha(text: str) -> str:
    if not _SHA.fullmatch(text):
        raise ValueError("not a commit id")
    return text


def _full_name(text: str) -> str:
    # It names folders and addresses later on: nothing may climb out of them.
    if not _FULL_NAME.fullmatch(text) or any(part.strip(".") == "" for part in text.split("/")):
        raise ValueError("not a repository's owner/name")
    return text


Sha = Annotated[str, AfterValidator(_sha)]
FullName = Annotated[str, AfterValidator(_full_name)]


def is_zero(sha: str) -> bool:
    """Whether this is GitHub's way to say that there is no commit."""
    return set(sha) == {"0"}


class Payload(BaseModel):
    """Base of all payload models: exact types, unknown fields passed over."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Repository(Payload):
    """The repository an event is about."""

    full_name: FullName


class Installation(Payload):
    """The GitHub App's installation through which an event came."""

    id: int
