"""Baseline orders: the source's own and a random one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, Ranked, register_strategy, shuffle


@register_strategy("source-order")
def source_order(instances: Sequence[Instance], _: Context) -> Iterator[Ranked]:
    """The order of the sources."""
    return (Ranked(at) for at in range(len(instances)))


@register_strategy("random")
def random(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """A random permutation: the baseline of every comparison."""
    return (Ranked(at) for at in shuffle(range(len(instances)), instances, context.seed))
