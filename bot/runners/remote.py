"""The side of a runner on another machine: fetches a bundle, runs it, uploads signed events."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from bot.errors import RunnerError
from bot.runners.bundle import run_bundle
from bot.runners.exchange import sign

#: Seconds between two signs of life: a sixth of the lease (`bot.runners.github_actions.LEASE_S`).
ALIVE_S = 15.0
_TIMEOUT_S = 60.0
#: Our service may be restarted meanwhile: 0.5 + 1 + … + 16 s. Uploads have numbers: a repeat changes nothing.
_RETRY = Retry(
    total=6,
    allowed_methods=["GET", "POST"],
    status_forcelist=[500, 502, 503, 504],
    backoff_factor=0.5,
    raise_on_status=False,
)
_WITHDRAWN = 410


def run_attempt(url: str, attempt: str, key: bytes, python: str = "", *, alive_s: float = ALIVE_S) -> bool:
    """Runs one attempt to its end; False if the service withdrew it.

    url     address of the service
    python  an interpreter of this machine with the compiler; "" for the path in the shard

    Raises RunnerError if the service refuses a request or cannot be reached.
    """
    service = _Service(url, attempt, key)
    stop = threading.Event()
    bundle = service.request("GET", "bundle")
    if bundle is None:
        return False
    with tempfile.TemporaryDirectory(prefix="assay-runner-") as folder:
        uploads = run_bundle(bundle, Path(folder), stop, python)
        try:
            return _upload_all(service, uploads, alive_s)
        finally:
            uploads.close()


def _upload_all(service: _Service, uploads: Iterable[list[bytes]], alive_s: float) -> bool:
    number, spoke = 0, time.monotonic()
    for batch in uploads:
        if batch:
            answer = service.request("POST", "events", number, b"\n".join(batch))
            number += 1
        elif time.monotonic() - spoke < alive_s:
            continue
        else:
            answer = service.request("POST", "alive", number)
        spoke = time.monotonic()
        if answer is None:
            return False
    return service.request("POST", "last", number) is not None


class _Service:
    """Signed requests about one attempt."""

    def __init__(self, url: str, attempt: str, key: bytes) -> None:
        self._url, self._attempt, self._key = f"{url.rstrip('/')}/runners/{attempt}", attempt, key
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=_RETRY))

    def request(self, method: str, action: str, number: int = 0, body: bytes = b"") -> bytes | None:
        """The answer; None if the attempt is over."""
        headers = {
            "X-Assay-Number": str(number),
            "X-Assay-Signature": sign(self._key, self._attempt, action, number, body),
        }
        path = "events?last" if action == "last" else action
        try:
            answer = self._session.request(
                method, f"{self._url}/{path}", data=body, headers=headers, timeout=_TIMEOUT_S
            )
        except requests.RequestException as error:
            raise RunnerError(f"the service did not answer: {type(error).__name__}: {error}") from error
        if answer.status_code == _WITHDRAWN:
            return None
        if answer.status_code >= 300:
            raise RunnerError(f"the service answered {answer.status_code}: {answer.text.strip()[:300]}")
        return answer.content
