"""Webhook deliveries: signed, sent from a thread as GitHub does, and stored for redelivery."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import random
import threading
import urllib.error
import urllib.request
import uuid
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

#: GitHub's timeout ("Handling webhook deliveries").
SEND_TIMEOUT_S = 10.0
PENDING = "pending"  # not tried yet; GitHub does not list these


@dataclass
class Delivery:
    """One delivery attempt; redeliveries have their own id and the guid of the first."""

    id: int
    guid: str
    event: str
    payload: dict[str, Any]
    at: datetime
    installation: int | None
    repository: int | None
    redelivery: bool = False
    status_code: int = 0
    status: str = PENDING
    duration: float = 0.0

    @property
    def action(self) -> str | None:
        """The payload's action."""
        return self.payload.get("action")

    def __str__(self) -> str:
        return f"{self.id} {self.event} {self.action or ''} {self.guid} at {self.at:%H:%M:%S}: {self.status}"

    @property
    def arrived(self) -> bool:
        """Whether the receiver accepted it."""
        return 200 <= self.status_code < 300

    @property
    def body(self) -> bytes:
        """The payload as sent."""
        return json.dumps(self.payload).encode()

    def headers(self, secret: str) -> dict[str, str]:
        """GitHub's headers."""
        signature = hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        return {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/double",
            "X-GitHub-Event": self.event,
            "X-GitHub-Delivery": self.guid,
            "X-GitHub-Hook-ID": "1",
            "X-GitHub-Hook-Installation-Target-Type": "integration",
            "X-Hub-Signature-256": f"sha256={signature}",
        }


@dataclass
class DeliveryFaults:
    """Faults of deliveries, deterministic by seed.

    drop, double   shares of deliveries that never arrive, and that arrive twice
    window         how many are held back at a time and sent in any order; `settle` sends all
    """

    drop: float = 0.0
    double: float = 0.0
    window: int = 0
    seed: int = 0


@dataclass
class WebhookSender:
    """Sends deliveries to `url`; without one they wait for `pop`."""

    secret: str
    url: str = ""
    log: list[Delivery] = field(default_factory=list)
    _mischief: DeliveryFaults = field(default_factory=DeliveryFaults)
    _random: random.Random = field(default_factory=lambda: random.Random(0))
    _held: list[Delivery] = field(default_factory=list)
    _queue: deque[Delivery] = field(default_factory=deque)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _sending: bool = False
    _thread: threading.Thread | None = None
    _stopped: bool = False

    def aim(self, url: str) -> None:
        """Sets the URL, to which waiting deliveries are sent first; "" makes them wait."""
        with self._changed:
            self.url = url
            self._changed.notify_all()

    def mischief(self, planned: DeliveryFaults) -> None:
        """Sets the faults of later deliveries."""
        self._mischief, self._random = planned, random.Random(planned.seed)

    def post(self, delivery: Delivery) -> None:
        """Queues a delivery."""
        with self._changed:
            self.log.append(delivery)
            if self._random.random() < self._mischief.drop:
                delivery.status = "failed to connect to host"
                return
            self._held.append(delivery)
            if self._random.random() < self._mischief.double:
                self._held.append(delivery)
            while len(self._held) > self._mischief.window:
                self._release()

    def again(self, delivery: Delivery, number: int, at: datetime) -> None:
        """Redelivers without faults."""
        fresh = replace(delivery, id=number, at=at, redelivery=True, status=PENDING, status_code=0)
        with self._changed:
            self.log.append(fresh)
            self._queue.append(fresh)
            self._changed.notify_all()

    def pop(self, event: str = "") -> Delivery:
        """The oldest delivery (of an event) not popped yet; raises IndexError if there is none."""
        with self._changed:
            for delivery in self._queue:
                if event in ("", delivery.event):
                    self._queue.remove(delivery)
                    delivery.status_code, delivery.status = 200, "OK"
                    return delivery
        raise IndexError(f"no delivery of {event or 'any event'} is waiting")

    def __len__(self) -> int:
        with self._changed:
            return len(self._queue) + self._sending

    def release(self) -> None:
        """Sends the deliveries held back."""
        with self._changed:
            while self._held:
                self._release()

    def lost(self) -> list[str]:
        """The guids of deliveries that were tried and have not arrived."""
        with self._changed:
            arrived = {one.guid for one in self.log if one.arrived or one.status == PENDING}
            return [one.guid for one in self.log if one.guid not in arrived]

    def settle(self, patience_s: float = 600.0) -> None:
        """Sends the deliveries held back, and waits until every delivery has a response."""
        self.release()
        with self._changed:
            if not self.url:
                return
            done = self._changed.wait_for(lambda: not self._queue and not self._sending, patience_s)
        if not done:
            raise TimeoutError(f"{len(self._queue)} deliveries were not answered within {patience_s:g} s")

    def start(self) -> None:
        """Starts the sending thread."""
        self._thread = threading.Thread(target=self._run, name="webhook_sender", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread; unsent deliveries stay."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _release(self) -> None:
        at = self._random.randrange(len(self._held)) if self._mischief.window else 0
        self._queue.append(self._held.pop(at))
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or (self.url and self._queue))
                if self._stopped:
                    return
                delivery, self._sending, url = self._queue.popleft(), True, self.url
            try:
                self._send(delivery, url)
            finally:
                with self._changed:
                    self._sending = False
                    self._changed.notify_all()

    def _send(self, delivery: Delivery, url: str) -> None:
        request = urllib.request.Request(url, delivery.body, delivery.headers(self.secret))
        try:
            with urllib.request.urlopen(request, timeout=SEND_TIMEOUT_S) as answer:
                delivery.status_code, delivery.status = answer.status, "OK"
        except urllib.error.HTTPError as error:
            with error:
                delivery.status_code, delivery.status = error.code, f"Invalid HTTP Response: {error.code}"
        except (OSError, http.client.HTTPException):
            delivery.status_code, delivery.status = 0, "failed to connect to host"


def new_guid(number: int) -> str:
    """A deterministic guid."""
    return str(uuid.UUID(int=random.Random(number).getrandbits(128), version=4))
