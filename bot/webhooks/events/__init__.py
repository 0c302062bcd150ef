"""What GitHub's events mean: one small file for each event, registered by decorator.

A file here holds a pydantic model of the few payload fields it uses and a function from the raw
payload to a `ParsedEvent`:

    @event("issues", actions={"closed", "reopened"})
    def issues(payload: bytes) -> Meaning: ...

Deliveries with other actions never come to the function: unused payloads need not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from bot.errors import UsageError
from bot.webhooks.intents import Intent
from fuzzing.registry import Registry


@dataclass(frozen=True)
class ParsedEvent:
    """What one delivery asks for.

    intents  what to do, in order
    note     why there is nothing to do, or what was noticed; kept with the delivery
    ignored  there was nothing in it for us
    """

    intents: tuple[Intent, ...] = ()
    note: str = ""
    ignored: bool = False


Parser = Callable[[bytes], ParsedEvent]

_EVENTS: Registry[tuple[Parser, frozenset[str]]] = Registry("webhook event", __name__)


class _Action(BaseModel):
    action: str = ""


class PayloadError(UsageError):
    """A payload lacks what its event's description promises; says which field and why."""


def event(name: str, *, actions: Collection[str] = ()) -> Callable[[Parser], Parser]:
    """Registers the parser of an event's payloads, those with these actions only where any are named.

    It may raise pydantic's ValidationError.
    """

    def register(parser: Parser) -> Parser:
        _EVENTS.add((parser, frozenset(actions)), name)
        return parser

    return register


def names() -> frozenset[str]:
    """The events that are understood."""
    return frozenset(_EVENTS.names())


def parse_event(name: str, payload: bytes) -> ParsedEvent:
    """What a delivery means. Raises PayloadError if the payload does not fit the event."""
    known = _EVENTS.find(name)
    if known is None:
        return ParsedEvent(note=f"nothing is done about {name!r} events", ignored=True)
    parser, actions = known
    try:
        action = _Action.model_validate_json(payload).action if actions else ""
        if actions and action not in actions:
            return ParsedEvent(note=f"nothing is done about {action[:64]!r} of {name!r} events", ignored=True)
        return parser(payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the payload"
        raise PayloadError(f"the {name} payload does not fit: {field}: {first['msg']}") from None
