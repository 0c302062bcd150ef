"""The jinja2 environment: escapes HTML, but not Markdown and Python."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from bot.campaigns.classify.classification import NO_BASE
from bot.errors import InternalError
from bot.reports import mismatch_summary, text

#: Characters and processor time of one text. GitHub takes 65,536 characters; only our own pages are longer.
MAX_CHARACTERS = 64 << 20
MAX_CPU_S = 60.0

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def environment() -> jinja2.Environment:
    """Templates of the source tree or of the installed wheel.

    jinja2 escapes HTML; Markdown and Python use the filters of `bot.reports.text`.
    """
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_PACKAGE.parent / "templates", _PACKAGE / "_templates"]),
        autoescape=lambda name: name is not None and name.endswith((".html.j2", ".svg.j2")),  # noqa: S701 (see above)
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters |= {
        "clean": text.clean,
        "one_line": text.one_line,
        "redact_paths": text.redact_paths,
        "plain": text.plain,
        "escaped": text.escaped,
        "code": text.code,
        "cell": text.cell,
        "fence": text.fence,
        "comment": text.comment,
        # Cleaned first: half a secret would not be recognized.
        "truncated": lambda raw, limit: text.cut(text.clean(raw), limit),
        "cut_start": lambda raw, limit: text.cut_start(text.clean(raw), limit),
        "verbatim": text.verbatim,
        "py": ascii,  # a Python literal, in ASCII
        "thousands": thousands,
        "pluralize": pluralize,
        "ulp_bins": mismatch_summary.ulp_bins,
        "describe_mismatch": mismatch_summary.describe_mismatch,
        "seconds": seconds,
        "special_reason": _special_reason,
    }
    return env


def _special_reason(reason: str) -> str:
    """A finding's reason without what holds of every finding of a campaign without a base."""
    return reason.removeprefix(NO_BASE).removeprefix("; ")


def render(template: str, **values: Any) -> str:
    """The rendered template. Raises InternalError above a limit, as `render_within_limits`."""
    return render_within_limits(environment().get_template(template), values)


def render_within_limits(template: jinja2.Template, values: Mapping[str, Any]) -> str:
    """The rendered template.

    Raises InternalError above MAX_CHARACTERS or MAX_CPU_S: whoever fills it did not bound foreign text. It is
    an error of what is rendered; the worker continues with the next item.
    """
    parts, size, end = [], 0, time.thread_time() + MAX_CPU_S
    for part in template.generate(values):
        parts.append(part)
        size += len(part)
        if size > MAX_CHARACTERS:
            raise InternalError(f"{template.name} has more than {MAX_CHARACTERS:,} characters")
        if time.thread_time() > end:
            raise InternalError(f"{template.name} takes more than {MAX_CPU_S:g} s")
    return "".join(parts)


def thousands(number: int) -> str:
    """1884 → "1,884"."""
    return f"{number:,}"


def pluralize(number: int, noun: str, plural: str = "") -> str:
    """(1, "case") → "1 case"; (1884, "case") → "1,884 cases"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def seconds(value: float) -> str:
    """A duration in seconds as text: "0.4 s", "12 s", "3 min 20 s"."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"
