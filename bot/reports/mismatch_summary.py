"""Sentences and histograms about wrong outputs."""

from __future__ import annotations

from typing import NamedTuple

from fuzzing.outcomes import Mismatch

#: Columns of a histogram in a table; more bins are joined two by two.
COLUMNS = 10


class HistogramBin(NamedTuple):
    """Elements by error: `label` in units in the last place, `share` relative to the fullest bin."""

    label: str
    elements: int
    share: float


def ulp_bins(mismatch: Mismatch, limit: int = COLUMNS) -> tuple[HistogramBin, ...]:
    """The histogram in at most `limit` bins and one for NaN and infinities; () without data.

    Exact elements have their own bin; the others are joined pairwise until they fit.
    """
    if not mismatch.ulps:
        return ()
    *finite, non_finite = mismatch.ulps
    exact, rest = finite[0] if finite else 0, finite[1:]
    edges = [(1 << at, (2 << at) - 1) for at in range(len(rest))]
    while len(rest) + 1 > limit:
        pairs = range(0, len(rest), 2)
        rest = [sum(rest[at : at + 2]) for at in pairs]
        edges = [(edges[at][0], edges[min(at + 1, len(edges) - 1)][1]) for at in pairs]
    rows = [("0", exact), *zip((_span(low, high) for low, high in edges), rest, strict=True)]
    rows += [("NaN, ∞", non_finite)] if non_finite else []
    most = max(count for _, count in rows) or 1
    return tuple(HistogramBin(label, count, count / most) for label, count in rows)


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{_short(low)}–{_short(high)}"


def _short(number: int) -> str:
    """1024 as 2^10: large bounds are powers of two, or one less."""
    if number < 10_000:
        return str(number)
    return f"2^{number.bit_length() - 1 if number & (number - 1) == 0 else number.bit_length()}"


def describe_mismatch(mismatch: Mismatch) -> tuple[str, ...]:
    """Sentences about one wrong output."""
    if mismatch.compiled_error is None or mismatch.library_error is None:
        return describe_tolerance(mismatch)
    if mismatch.judged:
        both = (
            f"Compared with float64 runs of both programs, the {mismatch.judged} one is off by "
            f"{mismatch.compiled_error:.3g}, the {mismatch.other} one by {mismatch.library_error:.3g}."
        )
        return (*describe_tolerance(mismatch), both)
    float64_check = (
        "Compared with a float64 run of the same program, the compiled program is off by "
        f"{mismatch.compiled_error:.3g}, the library by {mismatch.library_error:.3g}."
    )
    return (*describe_tolerance(mismatch), float64_check)


def describe_tolerance(mismatch: Mismatch) -> tuple[str, ...]:
    """A sentence with the smallest tolerance that passes, if known."""
    if mismatch.kind != "value" or not mismatch.ulps:
        return ()
    if mismatch.passes_at is None:
        return ("No tolerance lets it pass: NaN or infinity occurs on one side only.",)
    return (f"The smallest tolerance that passes is rtol = atol = {mismatch.passes_at:.3g}.",)
