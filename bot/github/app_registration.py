"""Registers the App from its manifest: the last step, in which GitHub returns its key and secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

from bot.errors import UsageError
from bot.github.responses import make_error
from bot.github.transport import Transport
from bot.store.database import now


@dataclass(frozen=True)
class RegisteredApp:
    """A registered App and its credentials."""

    id: int
    url: str
    private_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)


def register(api_url: str, code: str) -> RegisteredApp:
    """`POST /app-manifests/{code}/conversions`, which needs no other credentials.

    Raises UsageError if the code is wrong, used or older than an hour.
    """
    transport = Transport(api_url)
    try:
        answer = transport.request("POST", f"/app-manifests/{quote(code, safe='')}/conversions", "")
    finally:
        transport.close()
    if answer.status in (404, 422):
        raise UsageError(
            f"GitHub does not know the code ({answer.error_message}): it is good once and for an hour; "
            "register again"
        )
    if answer.status >= 300:
        raise make_error(answer, "the App's manifest", "", now())
    made = answer.data
    return RegisteredApp(made["id"], made["html_url"], made["pem"], made["webhook_secret"] or "")
