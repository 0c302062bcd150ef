"""The plot of an output: actual and expected values, element by element.

Geometry only; colors and fonts are in `templates/bugs/output_plot.svg.j2` and the page's style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 960, 240
#: The strip below that shows differences: y of its zero line, and half its height.
ERROR_ZERO, ERROR_HALF_HEIGHT = 292, 34
LEFT, RIGHT, TOP, BOTTOM = 74, 16, 14, 30
#: y of NaN and infinities: above all numbers.
NON_FINITE_Y = TOP
_TICKS = 4
#: Above this ratio the scale is symmetric logarithmic, so that a few values of 1e30 do not flatten the
#: others.
_MAX_LINEAR_RATIO = 1e4


@dataclass(frozen=True)
class Mark:
    """One element: its index, its values as text, their y coordinates; `wrong` if out of tolerance.

    error_y, error_height  the bar of actual minus expected; no bar for NaN and infinities
    """

    at: int
    want: str
    got: str
    x: float
    want_y: float
    got_y: float
    wrong: bool
    error_y: float
    error_height: float


@dataclass(frozen=True)
class Tick:
    """A line of the scale."""

    label: str
    y: float


@dataclass(frozen=True)
class Plot:
    """Everything the template draws of one output, in user units.

    elements    of the tensor, of which `marks` are drawn
    scale       "linear" or "logarithmic"
    non_finite  whether there are NaN or infinities, which have a line of their own
    error       the largest difference drawn, as text; "" if there is none
    """

    output: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    scale: str
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    non_finite: bool
    error: str
    width: int = WIDTH
    height: int = ERROR_ZERO + ERROR_HALF_HEIGHT + 10
    zero: int = ERROR_ZERO
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM

    @property
    def wrong(self) -> int:
        """Elements drawn that are out of tolerance."""
        return sum(mark.wrong for mark in self.marks)


def plots(numbers: Iterable[Mapping[str, Any]]) -> list[Plot]:
    """A plot for each event of `fuzzing.execute.output_values` with elements."""
    return [_plot(one) for one in numbers if one["at"]]


def _plot(event: Mapping[str, Any]) -> Plot:
    want, got = ([float(number) for number in event[name]] for name in ("want", "got"))
    finite = [number for number in (*want, *got) if math.isfinite(number)]
    non_finite = len(finite) < len(want) + len(got)
    scale = _Scale(finite, HEIGHT - BOTTOM, TOP + (24 if non_finite else 4))
    errors = [mine - reference for mine, reference in zip(got, want, strict=True)]
    largest = max((abs(error) for error in errors if math.isfinite(error)), default=0.0)
    bars = [_bar(error, largest) for error in errors]
    step = (WIDTH - LEFT - RIGHT) / len(want)
    marks = [
        Mark(
            at=int(event["at"][n]),
            want=_text(want[n]),
            got=_text(got[n]),
            x=round(LEFT + step * (n + 0.5), 1),
            want_y=scale.to_y(want[n]),
            got_y=scale.to_y(got[n]),
            wrong=bool(event["wrong"][n]),
            error_y=bars[n][0],
            error_height=bars[n][1],
        )
        for n in range(len(want))
    ]
    return Plot(
        output=str(event["output"]),
        dtype=str(event["dtype"]),
        shape=tuple(event["shape"]),
        elements=int(event["elements"]),
        scale="logarithmic" if scale.logarithmic else "linear",
        marks=tuple(marks),
        ticks=tuple(scale.ticks()),
        non_finite=non_finite,
        error=f"{largest:.3g}" if largest else "",
    )


def _bar(error: float, largest: float) -> tuple[float, float]:
    """Top and height of the bar of a difference."""
    if not math.isfinite(error) or not largest:
        return float(ERROR_ZERO), 0.0
    height = round(abs(error) / largest * ERROR_HALF_HEIGHT, 1)
    return round(ERROR_ZERO - height, 1) if error > 0 else float(ERROR_ZERO), height


class _Scale:
    """Maps numbers to y coordinates between `low` (the larger coordinate) and `high`."""

    def __init__(self, numbers: list[float], low: float, high: float) -> None:
        self._low, self._high = low, high
        sizes = sorted(abs(number) for number in numbers if number)
        self._unit = sizes[0] if sizes else 1.0
        self.logarithmic = bool(sizes) and sizes[-1] / max(self._unit, 1e-300) > _MAX_LINEAR_RATIO
        places = [self._to_scale(number) for number in numbers] or [0.0]
        self._from, self._to = min(places), max(places)
        if self._from == self._to:
            self._from, self._to = self._from - 1, self._to + 1

    def _to_scale(self, number: float) -> float:
        if not self.logarithmic:
            return number
        return math.copysign(math.log10(1 + abs(number) / self._unit), number)

    def _from_scale(self, to_y: float) -> float:
        if not self.logarithmic:
            return to_y
        return math.copysign(self._unit * (10 ** abs(to_y) - 1), to_y)

    def to_y(self, number: float) -> float:
        """The y coordinate of a number, in user units from the top."""
        if not math.isfinite(number):
            return float(NON_FINITE_Y)
        share = (self._to_scale(number) / 2 - self._from / 2) / (self._to / 2 - self._from / 2)
        return round(self._low - share * (self._low - self._high), 1)

    def ticks(self) -> list[Tick]:
        """Grid lines from the lowest number to the highest."""
        values = [
            self._from_scale(self._from + (self._to - self._from) * n / _TICKS) for n in range(_TICKS + 1)
        ]
        return [Tick(f"{value:.3g}", self.to_y(value)) for value in values]


def _text(number: float) -> str:
    return f"{number:.6g}".replace("inf", "∞")
