"""The chart of a report: verdicts by operator at base and head.

Geometry only; colors and fonts are in `templates/reports/verdict_chart.svg.j2` and the page's style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bot.reports.report import OperatorRow, Report
from bot.store.models import Classification, Side
from fuzzing.outcomes import Verdict

ROWS = 36  # operators with their own row; the others share one
WIDTH = 960
LABEL, CELL, ROW, GAP = 172, 62, 20, 12
BAR, BAR_WIDTH = 22, WIDTH - LABEL - 76
MIN_SEGMENT = 3.0  # keeps a single crash among thousands visible

#: Columns from the worst to the best.
VERDICT_ORDER = (
    Verdict.WRONG_RESULT,
    Verdict.CRASH,
    Verdict.HANG,
    Verdict.OUT_OF_MEMORY,
    Verdict.NONDETERMINISTIC,
    Verdict.INVALID,
    Verdict.UNSUPPORTED,
    Verdict.PASS,
)
VERDICT_NAMES = {
    Verdict.WRONG_RESULT: "wrong result",
    Verdict.OUT_OF_MEMORY: "out of memory",
    Verdict.NONDETERMINISTIC: "varies",
}


@dataclass(frozen=True)
class Segment:
    """A piece of a verdict bar."""

    verdict: str
    name: str
    cases: int
    share: float
    x: float
    width: float


@dataclass(frozen=True)
class Bar:
    """The verdicts of one side."""

    side: str
    total: int
    y: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class HeatmapCell:
    """One operator's cases of one verdict on one side; `shade` is 0 … 1 on a logarithmic scale.

    `change` is "worse" if confirmed regressions raise the number, "better" if fixes lower it, else "".
    """

    side: str
    verdict: str
    name: str
    cases: int
    total: int
    shade: float
    x: int
    y: int
    change: str


@dataclass(frozen=True)
class HeatmapRow:
    """One row of the heat map."""

    name: str
    y: int
    new: int
    fixed: int
    cells: tuple[HeatmapCell, ...]


@dataclass(frozen=True)
class HeatmapColumn:
    """One verdict's pair of columns."""

    verdict: str
    name: str
    x: int
    width: int


@dataclass(frozen=True)
class VerdictChart:
    """Everything the template draws, in user units."""

    width: int
    height: int
    bars: tuple[Bar, ...]
    columns: tuple[HeatmapColumn, ...]
    lines: tuple[HeatmapRow, ...]
    sides: tuple[str, ...]
    shown: int
    others: int
    top: int


def build_chart(report: Report) -> VerdictChart:
    """The chart of `report`; without a base it has one column for each verdict."""
    sides = (Side.BASE, Side.HEAD) if report.cases_run(Side.BASE) else (Side.HEAD,)
    bars = tuple(_bar(report, side, 8 + at * (BAR + 10)) for at, side in enumerate(sides))
    used = set(report.verdicts(Side.HEAD)) | set(report.verdicts(Side.BASE))
    verdicts = [verdict for verdict in VERDICT_ORDER if verdict in used]
    columns = _columns(verdicts, len(sides))
    top = 8 + len(sides) * (BAR + 10) + 62
    rows = [row for row in report.operators if _has_failures(row)][:ROWS]
    others = tuple(row for row in report.operators if row not in rows)
    drawn = [*rows, *([_sum_rows(others)] if others else [])]
    largest = max((n for row in rows for v, n in _all_counts(row) if v is not Verdict.PASS), default=1)
    lines = tuple(
        _line(row, top + at * ROW, columns, verdicts, sides, largest) for at, row in enumerate(drawn)
    )
    height = top + len(drawn) * ROW + 12
    names = tuple(side.value for side in sides)
    return VerdictChart(WIDTH, height, bars, columns, lines, names, len(rows), len(others), top)


def _has_failures(row: OperatorRow) -> bool:
    return bool(row.standings) or any(verdict.is_failure for verdict, _ in _all_counts(row))


def _all_counts(row: OperatorRow) -> list[tuple[Verdict, int]]:
    return [*row.head.items(), *row.base.items()]


def _sum_rows(rows: tuple[OperatorRow, ...]) -> OperatorRow:
    def total(maps: list[Mapping[Verdict, int]]) -> dict[Verdict, int]:
        return {v: n for v in Verdict if (n := sum(counts.get(v, 0) for counts in maps))}

    name = f"{len(rows)} other operator{'' if len(rows) == 1 else 's'}"
    return OperatorRow(name, total([row.head for row in rows]), total([row.base for row in rows]), {})


def _bar(report: Report, side: Side, y: int) -> Bar:
    counts = report.verdicts(side)
    total = sum(counts.values())
    small = [v for v in counts if counts[v] / total * BAR_WIDTH < MIN_SEGMENT]
    room = BAR_WIDTH - MIN_SEGMENT * len(small)
    spread = sum(counts[v] for v in counts if v not in small)
    x, segments = float(LABEL), []
    for verdict in reversed(VERDICT_ORDER):
        if verdict not in counts:
            continue
        width = MIN_SEGMENT if verdict in small else counts[verdict] / spread * room
        segments.append(
            Segment(
                verdict.value,
                verdict_name(verdict),
                counts[verdict],
                counts[verdict] / total,
                round(x, 1),
                round(width, 1),
            )
        )
        x += width
    return Bar(side.value, total, y, tuple(segments))


def _columns(verdicts: list[Verdict], sides: int) -> tuple[HeatmapColumn, ...]:
    room = WIDTH - LABEL - 76
    width = min(CELL * sides, (room - GAP * len(verdicts)) // max(1, len(verdicts)))
    return tuple(
        HeatmapColumn(verdict.value, verdict_name(verdict), LABEL + at * (width + GAP), width)
        for at, verdict in enumerate(verdicts)
    )


def _line(
    row: OperatorRow,
    y: int,
    columns: tuple[HeatmapColumn, ...],
    verdicts: list[Verdict],
    sides: tuple[Side, ...],
    largest: int,
) -> HeatmapRow:
    cells = []
    for column, verdict in zip(columns, verdicts, strict=True):
        for at, side in enumerate(sides):
            counts = row.head if side is Side.HEAD else row.base
            cases = counts.get(verdict, 0)
            shade = _shade(verdict, cases, sum(counts.values()), largest)
            x = column.x + at * column.width // len(sides)
            change = _change(row, verdict) if side is Side.HEAD and len(sides) > 1 else ""
            total = sum(counts.values())
            cells.append(
                HeatmapCell(
                    side.value,
                    verdict.value,
                    verdict_name(verdict),
                    cases,
                    total,
                    round(shade, 3),
                    x,
                    y,
                    change,
                )
            )
    new, fixed = (row.standings.get(s, 0) for s in (Classification.REGRESSION, Classification.FIXED))
    return HeatmapRow(row.operator, y, new, fixed, tuple(cells))


def _shade(verdict: Verdict, cases: int, total: int, largest: int) -> float:
    """Passes by their share of the row, other verdicts by their number, so that failures stand out."""
    if not cases:
        return 0.0
    return cases / total if verdict is Verdict.PASS else min(1.0, math.log1p(cases) / math.log1p(largest))


def _change(row: OperatorRow, verdict: Verdict) -> str:
    if not verdict.is_failure:
        return ""
    before, after = row.base.get(verdict, 0), row.head.get(verdict, 0)
    if after > before and row.standings.get(Classification.REGRESSION):
        return "worse"
    return "better" if after < before and row.standings.get(Classification.FIXED) else ""


def verdict_name(verdict: Verdict) -> str:
    """The displayed name of a verdict."""
    return VERDICT_NAMES.get(verdict, verdict.value)
