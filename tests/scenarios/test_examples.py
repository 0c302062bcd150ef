"""What GitHub has really sent to others: every payload is taken, read, and understood or passed over."""

from __future__ import annotations

import json

import requests
from sqlalchemy import func, select

from bot.store.models import Delivery, DeliveryState
from bot.webhooks.signature import HEADER, sign
from tests.github_api import examples
from tests.scenarios.deployment import Deployment


def pending(deployment: Deployment) -> int:
    with deployment.rows.reading() as session:
        where = Delivery.state == DeliveryState.PENDING.value
        return int(session.scalar(select(func.count()).select_from(Delivery).where(where)) or 0)


def test_every_example_is_taken_and_read(own_deployment: Deployment) -> None:
    events = examples.load()
    assert sum(map(len, events.values())) == 329
    refused: dict[str, str] = {}
    with requests.Session() as session:
        for event, payloads in events.items():
            for number, payload in enumerate(payloads):
                body = json.dumps(payload).encode()
                headers = {
                    "Content-Type": "application/json",
                    "X-GitHub-Event": event,
                    "X-GitHub-Delivery": f"{event}-{number}".replace("_", "-"),
                    HEADER: sign(own_deployment.hub.secret.encode(), body),
                }
                url = own_deployment.hub.webhook_url
                answer = session.post(url, body, headers=headers, timeout=600)
                if answer.status_code != 202:
                    refused[f"{event} {number}"] = answer.text
    assert refused == {}
    own_deployment.wait_for(lambda: not pending(own_deployment), "all of them to be read")
    with own_deployment.rows.reading() as session:
        failed = session.execute(
            select(Delivery.id, Delivery.reason).where(Delivery.state == DeliveryState.FAILED.value)
        ).all()
    assert [tuple(row) for row in failed] == []
