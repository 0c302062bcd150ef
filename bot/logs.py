"""Logging: structlog to stderr, one JSON object a line, or colored text on a terminal.

The standard library's logging (uvicorn, APScheduler, Alembic) goes to the same stream and format.
`delivery_id` and `campaign_id` are bound with `structlog.contextvars` and appear on every line in their
context.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

#: Loggers limited to warnings.
QUIET = ("apscheduler", "alembic", "uvicorn.access", "httpx", "httpcore", "urllib3")


def configure(
    form: Literal["auto", "json", "console"] = "auto", level: str = "info", stream: TextIO | None = None
) -> None:
    """Configures logging for this process; may be called again."""
    stream = stream if stream is not None else sys.stderr
    as_json = form == "json" or (form == "auto" and not stream.isatty())
    shared: Sequence[Processor] = (
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(), _plain],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_render(as_json, stream),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _plain(_logger: object, _method: str, line: EventDict) -> EventDict:
    """Removes the colored duplicate that uvicorn adds."""
    line.pop("color_message", None)
    return line


def _render(as_json: bool, stream: TextIO) -> list[Processor]:
    # Without the values of variables: tokens and payloads are among them.
    if as_json:
        traces = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(traces),
            structlog.processors.JSONRenderer(default=str),
        ]
    return [
        structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]
