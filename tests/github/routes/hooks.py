"""Routes of the App's webhook: configuration, deliveries, redelivery."""

from __future__ import annotations

from typing import Any

from tests.github.calls import Call, RouteResponse, not_found, route
from tests.github.schema_completion import complete
from tests.github.state import stamp
from tests.github.webhook_sender import PENDING, Delivery


@route("GET", "/app/hook/config", app=True)
def config(call: Call) -> RouteResponse:
    return RouteResponse(
        200, {"content_type": "json", "insecure_ssl": "0", "secret": "********"} | _address(call)
    )


@route("PATCH", "/app/hook/config", app=True)
def change_config(call: Call) -> RouteResponse:
    call.hub.webhook_sender.aim(call.body.get("url", call.hub.webhook_sender.url))
    call.hub.webhook_sender.secret = call.body.get("secret", call.hub.webhook_sender.secret)
    return config(call)


@route("GET", "/app/hook/deliveries", app=True)
def deliveries(call: Call) -> RouteResponse:
    """The deliveries, newest first, with cursor pagination."""
    known = sorted(call.hub.webhook_sender.log, key=lambda one: one.id, reverse=True)
    known = [one for one in known if one.status != PENDING]
    if call.query.get("status") in ("success", "failure"):
        wanted = call.query["status"] == "success"
        known = [one for one in known if (200 <= one.status_code < 400) is wanted]
    start = int(call.query.get("cursor", "0") or 0)
    if start:
        known = [one for one in known if one.id <= start]
    size = min(100, int(call.query.get("per_page", 30)))
    if len(known) > size:
        call.link = (
            f'<{call.hub.url}/app/hook/deliveries?per_page={size}&cursor={known[size].id}>; rel="next"'
        )
    return RouteResponse(200, [complete("hook-delivery-item", _item(one)) for one in known[:size]])


@route("GET", "/app/hook/deliveries/{delivery_id}", app=True)
def delivery(call: Call) -> RouteResponse:
    """One delivery with its payload."""
    one = _delivery(call)
    sent = {"headers": one.headers(call.hub.webhook_sender.secret), "payload": one.payload}
    shown = _item(one) | {"request": sent, "response": {"headers": {}, "payload": None}}
    return RouteResponse(200, complete("hook-delivery", shown))


@route("POST", "/app/hook/deliveries/{delivery_id}/attempts", app=True)
def attempt(call: Call) -> RouteResponse:
    """Redelivers."""
    one = _delivery(call)
    call.hub.webhook_sender.again(one, next(call.hub.world.delivery_ids), call.hub.world.clock())
    return RouteResponse(202, {})


def _delivery(call: Call) -> Delivery:
    for one in call.hub.webhook_sender.log:
        if one.id == call.number("delivery_id"):
            return one
    raise not_found()


def _item(one: Delivery) -> dict[str, Any]:
    return {
        "id": one.id,
        "guid": one.guid,
        "delivered_at": stamp(one.at),
        "redelivery": one.redelivery,
        "duration": one.duration,
        "status": one.status,
        "status_code": one.status_code,
        "event": one.event,
        "action": one.action,
        "installation_id": one.installation,
        "repository_id": one.repository,
        "throttled_at": None,
    }


def _address(call: Call) -> dict[str, Any]:
    return {"url": call.hub.webhook_sender.url} if call.hub.webhook_sender.url else {}
