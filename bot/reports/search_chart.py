"""The charts of a search: coverage over its models, beside searches with less of the method, and its tree.

Geometry only; colors and fonts are in `templates/reports/search_*.svg.j2` and the page's style sheet.
`fuzzing.generate.graph_search.record` describes what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, LEFT, RIGHT, TOP = 960, 52, 16, 12
CURVE_HEIGHT, LEVEL, BAR_ROW, BAR_LABEL = 220, 42, 22, 240
#: Points of a curve at most: more are not seen.
MAX_POINTS = 200
#: Nodes of a tree that are drawn at most, the first ones: its models are hundreds.
MAX_NODES = 2000


@dataclass(frozen=True)
class Curve:
    """Coverage over the models of one search; `number` chooses its color, 0 for the campaign's own.

    points  of an SVG polyline
    final   in the end, from 0 to 1
    y       of its bar, `length` that of the bar
    """

    name: str
    number: int
    points: str
    final: float
    y: int
    length: float


@dataclass(frozen=True)
class CurveChart:
    """The curves, and a bar for each below them."""

    models: int
    curves: tuple[Curve, ...]
    ticks: tuple[tuple[str, float], ...]
    height: int
    width: int = WIDTH
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = TOP + CURVE_HEIGHT
    label: int = BAR_LABEL


@dataclass(frozen=True)
class TreeDot:
    """A node of the tree; `worth` is its mean reward, from 0 to 1, and its line leads to (`up_x`, `up_y`)."""

    block: str
    visits: int
    worth: float
    x: float
    y: float
    up_x: float
    up_y: float


@dataclass(frozen=True)
class TreeChart:
    """The tree; the root is the first dot."""

    dots: tuple[TreeDot, ...]
    levels: int
    height: int
    width: int = WIDTH


def build_curves(search: Mapping[str, Any]) -> CurveChart | None:
    """The curve of a search and those of its ablation; None if there is none."""
    own = search.get("curve") or []
    if not own:
        return None
    found = {"this search": own, **search.get("ablation", {})}
    first_bar = TOP + CURVE_HEIGHT + 40
    curves = tuple(
        Curve(
            str(name),
            number,
            _points(shares),
            float(shares[-1]),
            first_bar + number * BAR_ROW,
            round(float(shares[-1]) * (WIDTH - BAR_LABEL - 90), 1),
        )
        for number, (name, shares) in enumerate(found.items())
        if shares
    )
    ticks = tuple((f"{percent} %", _y(percent / 100)) for percent in range(0, 101, 20))
    return CurveChart(len(own), curves, ticks, first_bar + len(curves) * BAR_ROW + 4)


def _points(shares: Sequence[float]) -> str:
    last = len(shares) - 1
    step = max(1, len(shares) // MAX_POINTS)
    drawn = sorted({*range(0, len(shares), step), last})
    width = WIDTH - LEFT - RIGHT
    return " ".join(f"{LEFT + width * (at + 1) / len(shares):.1f},{_y(float(shares[at]))}" for at in drawn)


def _y(share: float) -> float:
    return round(TOP + CURVE_HEIGHT * (1 - share), 1)


def build_tree(search: Mapping[str, Any]) -> TreeChart | None:
    """The tree: leaves side by side, every other node above the middle of its children; None without one."""
    nodes = (search.get("tree") or [])[:MAX_NODES]
    if len(nodes) < 2:
        return None
    parents = [int(node[0]) for node in nodes]
    depths: list[int] = []
    for parent in parents:
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
    x = _places(parents)
    dots = []
    for at, (parent, block, visits, value) in enumerate(nodes):
        up = max(0, parent)
        worth = round(min(1.0, max(0.0, value / visits)), 3) if visits else 0.0
        dots.append(TreeDot(block, visits, worth, x[at], _row(depths[at]), x[up], _row(depths[up])))
    levels = max(depths)
    return TreeChart(tuple(dots), levels, _row(levels) + TOP)


def _places(parents: Sequence[int]) -> list[float]:
    """The x of each node; a node comes after its parent, and leaves are in the order of the nodes."""
    inner = set(parents)
    leaves = [at for at in range(len(parents)) if at not in inner]
    width = (WIDTH - 2 * TOP) / len(leaves)
    low = [float("inf")] * len(parents)
    high = [float("-inf")] * len(parents)
    for number, at in enumerate(leaves):
        low[at] = high[at] = TOP + (number + 0.5) * width
    for at in range(len(parents) - 1, 0, -1):
        low[parents[at]] = min(low[parents[at]], low[at])
        high[parents[at]] = max(high[parents[at]], high[at])
    return [round((first + last) / 2, 1) for first, last in zip(low, high, strict=True)]


def _row(depth: int) -> int:
    return TOP + depth * LEVEL
