"""Programs as text, and their traits, from the data plane."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bot.campaigns.context import Context
from bot.campaigns.reduce.case_reduction import traits_from_json
from bot.campaigns.report.summary import ProgramText
from bot.campaigns.run_with_lease import EventSink, run_with_lease
from bot.store.campaigns import chunks
from fuzzing.triage.traits import Traits

PROGRAM = "fuzzing.triage.program_text"
#: Ids of one call; a command line holds 2 MiB on Linux, an id 65 bytes.
MAX_IDS = 1000


def program_texts(context: Context, cases: Iterable[str]) -> dict[str, ProgramText]:
    """Case → its program as text."""
    events = _run_describe(context, cases)
    return {
        case: ProgramText(str(event["program"]), str(event.get("code", ""))) for case, event in events.items()
    }


def program_traits(context: Context, cases: Iterable[str]) -> dict[str, Traits]:
    """Case → the traits of its program."""
    return {
        case: traits_from_json(event["traits"])
        for case, event in _run_describe(context, cases, "--traits").items()
    }


def _run_describe(context: Context, cases: Iterable[str], *flags: str) -> dict[str, dict[str, Any]]:
    sink = _EventCollector()
    run_tool = context.services.run_tool
    for chunk in chunks(dict.fromkeys(cases), MAX_IDS):
        arguments = ["--corpus", str(context.corpus), *flags, *chunk]
        run_with_lease(context, lambda *ends, given=arguments: run_tool(PROGRAM, given, *ends), sink)
    return sink.of


class _EventCollector(EventSink):
    def __init__(self) -> None:
        self.of: dict[str, dict[str, Any]] = {}

    def add(self, event: dict[str, Any]) -> None:
        self.of[str(event["id"])] = event
