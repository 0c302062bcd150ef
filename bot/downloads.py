"""Bounded downloads of files over HTTP, without credentials."""

from __future__ import annotations

import hashlib
from pathlib import Path

import requests

from bot.errors import InfrastructureError, RefusalError

_TIMEOUT_S = 60.0  # without a byte
_CHUNK = 1 << 20


def download(url: str, place: Path, max_bytes: int) -> str:
    """Writes what lies at an address to a file; returns its SHA-256 in hex digits.

    Raises RefusalError if it is larger than `max_bytes` or not there, InfrastructureError if a retry may
    succeed.
    """
    digest, size = hashlib.sha256(), 0
    try:
        with requests.get(url, stream=True, timeout=_TIMEOUT_S) as answer, place.open("wb") as file:
            if 400 <= answer.status_code < 500:
                raise RefusalError(f"{url.partition('?')[0]}: status {answer.status_code}")
            answer.raise_for_status()
            for chunk in answer.iter_content(_CHUNK):
                size += len(chunk)
                if size > max_bytes:
                    raise RefusalError(f"{url.partition('?')[0]} is larger than {max_bytes >> 20} MB")
                digest.update(chunk)
                file.write(chunk)
    except requests.RequestException as error:
        raise InfrastructureError(f"{url.partition('?')[0]}: {type(error).__name__}") from error
    return digest.hexdigest()
