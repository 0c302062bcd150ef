"""The page of `assay coverage --report`: charts and tables. Colors and fonts are in `templates/coverage`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bot.cli.common.console import format_metric
from bot.reports.templates import render

#: Maximum number of operators drawn, those with most nodes: more are not legible.
MAX_DRAWN = 80
STEPS = 8  # shades of a count; templates/coverage/coverage.css has a color for each
WIDTH = 1120
LABEL, HEAD, MARGIN = 132, 118, 112  # room for the names of rows, those of columns, bars on the right
MAX_CELL = 30
BAR_ROW, BAR_COLUMNS = 17, 3
HISTOGRAM = (350, 190)  # width and height of one
MAX_BARS = 20
_PAIRS_LISTED = 30
_READINGS = ("paper", "released", "graph_fuzzing")
_FILES_LISTED = 50


@dataclass(frozen=True)
class Cell:
    """One ordered pair of operators; `step` is 0 if it never occurs, else 1 to STEPS."""

    consumer: str
    count: int
    step: int
    x: float


@dataclass(frozen=True)
class Row:
    """One producer; `seen` counts its consuming operators, `width` is the length of its bar."""

    producer: str
    nodes: int
    seen: int
    y: float
    width: float
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Shade:
    """One entry of the legend: counts from `low` to `high` have this step."""

    step: int
    low: int
    high: int


@dataclass(frozen=True)
class Heatmap:
    """The heat map in user units."""

    width: float
    height: float
    cell: float
    left: float
    top: float
    rows: tuple[Row, ...]
    columns: tuple[tuple[str, int, float], ...]  # operator, its nodes, x of its middle
    shades: tuple[Shade, ...]
    operators: int  # of the whole set, drawn or not


@dataclass(frozen=True)
class Bar:
    """One bar; `share` is its length, from 0 to 1."""

    name: str
    count: int
    share: float
    x: float
    y: float

    @property
    def short(self) -> str:
        """The count in four characters or so: `950`, `12.3k`, `1.2M`."""
        for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
            if self.count >= 0.9995 * size:  # 999,950 is 1M, not 1e+03k
                return f"{self.count / size:.3g}{letter}"
        return str(self.count)


@dataclass(frozen=True)
class Bars:
    """Bars in columns (operators) or side by side (histograms)."""

    width: float
    height: float
    length: float  # of the longest bar
    thickness: float
    bars: tuple[Bar, ...]


def html(result: Mapping[str, Any]) -> str:
    """The page as one self-contained file; `result` is the final event of `fuzzing.coverage`."""
    operators = _sort_by_nodes(result["by_operator"])
    return render(
        "coverage/index.html.j2",
        result=result,
        covered=[name for name, one in operators if one["nodes"]],
        missing=sorted(name for name, one in operators if not one["nodes"]),
        rows=operators,
        metrics=[
            (name, one, *(format_metric(one.get(reading)) for reading in _READINGS))
            for name, one in result["metrics"].items()
        ],
        all_pairs=len(operators) ** 2,
        seen_pairs=sum(len(consumers) for consumers in result["pairs"].values()),
        heatmap=build_heatmap(result),
        bars=build_operator_bars(result),
        histograms=histograms(result),
        top_pairs=_top_pairs(result["pairs"]),
        left_out=result["left_out"][:_FILES_LISTED],
    )


def _sort_by_nodes(by_operator: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Operators with most nodes first."""
    return sorted(by_operator.items(), key=lambda item: (-item[1]["nodes"], item[0]))


def build_heatmap(result: Mapping[str, Any]) -> Heatmap:
    """Rows are producers, columns consumers, those with most neighbors first: gaps gather at the end."""
    pairs = result["pairs"]
    drawn = _sort_by_nodes(result["by_operator"])[:MAX_DRAWN]
    neighbors = Counter(other for consumers in pairs.values() for other in consumers)
    neighbors.update({name: len(consumers) for name, consumers in pairs.items()})
    operators = sorted(drawn, key=lambda item: -neighbors[item[0]])
    names = [name for name, _ in operators]
    largest = max((count for row in pairs.values() for count in row.values()), default=0)
    cell = min(MAX_CELL, (WIDTH - LABEL - MARGIN) / len(names))
    columns = tuple(
        (name, one["nodes"], LABEL + (at + 0.5) * cell) for at, (name, one) in enumerate(operators)
    )
    rows = []
    for at, (name, one) in enumerate(operators):
        consumers = pairs.get(name, {})
        cells = tuple(
            Cell(other, count, shade_index(count, largest), round(LABEL + column * cell, 2))
            for column, other in enumerate(names)
            for count in [consumers.get(other, 0)]
        )
        width = (MARGIN - 58) * len(consumers) / len(result["by_operator"])
        rows.append(
            Row(name, one["nodes"], len(consumers), round(HEAD + at * cell, 2), round(width, 1), cells)
        )
    side = len(names) * cell
    return Heatmap(
        LABEL + side + MARGIN,
        HEAD + side + 4,
        round(cell, 2),
        LABEL,
        HEAD,
        tuple(rows),
        columns,
        tuple(_shades(largest)),
        len(result["by_operator"]),
    )


def shade_index(count: int, largest: int) -> int:
    """The shade of a count on a logarithmic scale: 0 for none, 1 for the least, STEPS for the largest."""
    if count == 0:
        return 0
    return 1 if largest == 1 else 1 + min(STEPS - 1, int(STEPS * math.log(count) / math.log(largest)))


def _shades(largest: int) -> Iterable[Shade]:
    """The steps that counts up to `largest` can have."""
    if not largest:
        return
    low, step = 1, 1
    for border in range(1, STEPS):
        first = _first_above(largest ** (border / STEPS), step, largest)
        if first <= largest and shade_index(first, largest) > step:
            yield Shade(step, low, first - 1)
            low, step = first, shade_index(first, largest)
    yield Shade(step, low, largest)


def _first_above(border: float, step: int, largest: int) -> int:
    """The first count above `border` whose shade is not `step`; rounding may shift it by one."""
    count = math.floor(border)
    while count < largest and shade_index(count, largest) <= step and count <= border + 1:
        count += 1
    return count


def build_operator_bars(result: Mapping[str, Any]) -> Bars:
    """How many nodes each operator has, in columns read downwards."""
    operators = _sort_by_nodes(result["by_operator"])[:MAX_DRAWN]
    most = max(one["nodes"] for _, one in operators) or 1
    height = math.ceil(len(operators) / BAR_COLUMNS)
    column = WIDTH / BAR_COLUMNS
    bars = tuple(
        Bar(name, one["nodes"], one["nodes"] / most, column * (at // height), BAR_ROW * (at % height))
        for at, (name, one) in enumerate(operators)
    )
    return Bars(WIDTH, height * BAR_ROW + 4, column - LABEL - 78, BAR_ROW - 5, bars)


def histograms(result: Mapping[str, Any]) -> list[tuple[str, str, Bars]]:
    """Title, what is counted, and the bars: of nodes in a model, of ranks and of dtypes."""
    ranks = [
        (f"rank {rank}" if rank != "unknown" else rank, count) for rank, count in result["ranks"].items()
    ]
    dtypes = list(result["dtypes"].items())
    if len(dtypes) > MAX_BARS // 2:
        kept, others = dtypes[: MAX_BARS // 2 - 1], dtypes[MAX_BARS // 2 - 1 :]
        dtypes = [*kept, (f"{len(others)} others", sum(count for _, count in others))]
    return [
        ("Nodes in a model", "models", _build_histogram(bin_counts(result["nodes_of"]))),
        ("Ranks of what nodes consume", "inputs", _build_histogram(ranks)),
        ("Dtypes of what nodes consume", "inputs", _build_histogram(dtypes)),
    ]


def bin_counts(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Numbers → how often, in at most MAX_BARS ranges of equal, round width, empty ones included."""
    if not counts:
        return []
    numbers = sorted(map(int, counts))
    least, most = numbers[0], numbers[-1]
    width = next(
        one * 10**power
        for power in range(20)
        for one in (1, 2, 5)
        if most // (one * 10**power) - least // (one * 10**power) < MAX_BARS
    )
    edges = range(least // width * width, most + width + 1, width)
    return [
        (
            str(low) if width == 1 else f"{low}–{above - 1}",
            sum(counts[str(one)] for one in numbers if low <= one < above),
        )
        for low, above in pairwise(edges)
    ]


def _build_histogram(counts: Sequence[tuple[str, int]]) -> Bars:
    """Bars side by side: labels of 58 below, numbers of 16 above."""
    width, height = HISTOGRAM
    length = height - 58 - 16
    most = max((count for _, count in counts), default=0) or 1
    slot = min(44.0, width / max(1, len(counts)))
    bars = tuple(
        Bar(name, count, count / most, round(at * slot, 1), round(16 + length * (1 - count / most), 1))
        for at, (name, count) in enumerate(counts)
    )
    return Bars(width, height, length, round(slot * 0.78, 1), bars)


def _top_pairs(pairs: Mapping[str, Mapping[str, int]]) -> list[tuple[str, str, int]]:
    found = [(producer, consumer, n) for producer, row in pairs.items() for consumer, n in row.items()]
    return sorted(found, key=lambda one: (-one[2], one[0], one[1]))[:_PAIRS_LISTED]
