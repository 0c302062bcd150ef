"""Logs: one form for ours and for libraries', with the ids that are bound."""

from __future__ import annotations

import io
import json
import logging
from typing import Literal

import pytest
import structlog

from bot.logs import configure


def test_json_lines_with_bound_ids() -> None:
    stream = io.StringIO()
    configure("auto", "info", stream)
    with structlog.contextvars.bound_contextvars(delivery_id="d-1", campaign_id=7):
        structlog.get_logger("bot.x").info("planned", cases=3)
        logging.getLogger("library").warning("about %s", "that")
        structlog.get_logger("bot.x").debug("not shown")
    ours, theirs = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {k: v for k, v in ours.items() if k != "timestamp"} == {
        "event": "planned",
        "cases": 3,
        "level": "info",
        "logger": "bot.x",
        "delivery_id": "d-1",
        "campaign_id": 7,
    }
    assert (theirs["event"], theirs["level"], theirs["delivery_id"]) == ("about that", "warning", "d-1")


def test_tracebacks_are_in_the_line() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    try:
        raise ZeroDivisionError("oh")
    except ZeroDivisionError:
        structlog.get_logger("bot.x").exception("failed")
    (line,) = stream.getvalue().splitlines()
    (reported,) = json.loads(line)["exception"]
    assert (reported["exc_type"], reported["exc_value"]) == ("ZeroDivisionError", "oh")


@pytest.mark.parametrize("form", ["json", "console"])
def test_tracebacks_hold_no_values_of_variables(form: Literal["json", "console"]) -> None:
    def sign_in(token: str) -> None:
        raise ValueError(f"no such user, of {len(token)} letters")

    stream = io.StringIO()
    configure(form, "info", stream)
    try:
        sign_in("ghs_" + "a1" * 8)
    except ValueError:
        structlog.get_logger("bot.x").exception("failed")
    assert "sign_in" in stream.getvalue()
    assert "a1a1" not in stream.getvalue()


def test_console_is_for_people() -> None:
    stream = io.StringIO()
    configure("console", "debug", stream)
    structlog.get_logger("bot.x").debug("planned", cases=3)
    assert "planned" in stream.getvalue()
    assert "cases=3" in stream.getvalue()
