"""Orders by coverage of a frontend's code: OPERA's white-box baselines.

They need `Context.coverage`, measured by `fuzzing.prioritize.coverage_measurement`. Cases missing there,
whose process died or timed out, cover nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace

from fuzzing.errors import UsageError
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, Coverage, Ranked, register_strategy


def _coverage(context: Context) -> Coverage:
    if context.coverage is None:
        raise UsageError(
            "orders by coverage need to know what each case covers: measure it with "
            "python -m fuzzing.prioritize.coverage_measurement, and pass its output with --coverage"
        )
    return context.coverage


@register_strategy("coverage-total")
def total(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """Most covered lines first; ties in the source's order."""
    coverage = _coverage(context)
    counts = [len(coverage.get(one.id, ())) for one in instances]
    return (
        Ranked(at, {"lines": counts[at]}) for at in sorted(range(len(counts)), key=lambda at: -counts[at])
    )


@register_strategy("coverage-additional")
def additional(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """Repeatedly the case that covers most uncovered lines; ties in the source's order.

    When none adds a line, all lines count as uncovered again for the remaining cases. With the option
    `coverage.additional=released` OPERA's released code is followed: see `released`.
    """
    variant = context.options.get("coverage.additional", "greedy")
    if variant not in ("greedy", "released"):
        raise UsageError(f"coverage.additional is greedy or released, not {variant!r}")
    covered = [_coverage(context).get(one.id, frozenset()) for one in instances]
    return released(covered) if variant == "released" else _greedy(_masks(covered))


def _masks(covered: Sequence[frozenset[tuple[str, int]]]) -> list[int]:
    """Each set of lines as a bit mask."""
    bits = {line: 1 << at for at, line in enumerate(sorted(set().union(*covered)))}
    return [sum(bits[line] for line in lines) for lines in covered]


def _greedy(masks: Sequence[int]) -> Iterator[Ranked]:
    """Scores never rise within a round, so an older score is an upper bound: only the top is recomputed."""
    left = [at for at, mask in enumerate(masks) if mask]
    while left:
        uncovered, rest = -1, []
        heap = [(-masks[at].bit_count(), at) for at in left]
        heapify(heap)
        while heap:
            gain, at = heap[0]
            fresh = -(masks[at] & uncovered).bit_count()
            if fresh != gain:
                heapreplace(heap, (fresh, at))
                continue
            heappop(heap)
            if not fresh:
                rest.append(at)
                continue
            uncovered &= ~masks[at]
            yield Ranked(at, {"new_lines": -fresh})
        left = sorted(rest)
    yield from (Ranked(at, {"new_lines": 0}) for at, mask in enumerate(masks) if not mask)


def released(covered: Sequence[frozenset[tuple[str, int]]]) -> Iterator[Ranked]:
    """As in OPERA's released code: increments are computed once, in the source's order, and tests sorted by
    them.

    A test's figure is the number of lines covered so far in the files that it touches; its increment is the
    difference to the figure of the test before, and so may be negative.
    """
    so_far: set[tuple[str, int]] = set()
    per_file: Counter[str] = Counter()
    before, increments = 0, []
    for lines in covered:
        per_file.update(file for file, _ in lines - so_far)
        so_far |= lines
        figure = sum(per_file[file] for file in {file for file, _ in lines})
        increments.append(figure - before)
        before = figure
    order = sorted(range(len(covered)), key=lambda at: -increments[at])
    return (Ranked(at, {"new_lines": increments[at]}) for at in order)
