"""Verifies that GitHub sent a delivery: HMAC-SHA256 over the raw body, in the X-Hub-Signature-256 header.

GitHub's documentation, "Validating webhook deliveries": the header is `sha256=` and 64 hex digits;
compare in constant time. The SHA-1 header is legacy and not looked at.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence

HEADER = "X-Hub-Signature-256"

_FORM = re.compile(r"sha256=[0-9a-f]{64}")


def sign(secret: bytes, body: bytes) -> str:
    """The header's value for this body."""
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def is_well_formed(header: str | None) -> bool:
    """Whether the header could be a signature at all: a stranger's body need not even be read."""
    return header is not None and _FORM.fullmatch(header) is not None


def verify(secrets: Sequence[bytes], body: bytes, header: str | None) -> bool:
    """Whether one of the secrets signed the body; False without secrets or header.

    Every secret is tried, so that the time taken reveals nothing.
    """
    if header is None or not is_well_formed(header):
        return False
    matches = [hmac.compare_digest(sign(secret, body), header) for secret in secrets]
    return any(matches)
