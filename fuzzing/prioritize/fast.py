"""FAST-pw (ICSE 2018), OPERA's black-box baseline: ranks tests by the dissimilarity of their texts.

Text → k-shingles → minhash → locality-sensitive hashing. As in OPERA's comparison there are 10 bands of one
row each, so ten hashes; two tests collide if any hash is the same. The option `fast.shingles` is the length
of a shingle, 5 by default; `tokens` makes sets of whitespace-separated tokens instead, which is what the
released calls compute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from fuzzing.errors import UsageError
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, Ranked, register_strategy, shuffle

BANDS = 10  # of one row: FAST-pw's setting
SHINGLE = 5  # characters
TOKENS = "tokens"
_CHUNK = 1024  # tests compared at a time
_NOTHING = np.uint64((1 << 64) - 1)

Array = np.ndarray[Any, np.dtype[Any]]


def instance_text(instance: Instance) -> str:
    """The test as text: its operator's call, one token per argument."""
    arguments = (f"{name}={json.dumps(value, separators=(',', ':'))}" for name, value in instance.parameters)
    return " ".join([instance.operator, *arguments])


@register_strategy("fast")
def fast(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """Starts from a random test, then always takes one that collides with nothing emitted, most distant
    first.

    The emitted tests share one signature, their elementwise minimum. When every remaining test collides with
    it, it is reset. With bands of one row all tests without collision are equally distant (10 of 10 hashes
    differ), so the first in the source's order is taken.
    """
    if not instances:
        return iter(())
    signatures = compute_minhashes([_set(instance_text(one), _shingle(context)) for one in instances])
    start = shuffle(range(len(instances)), instances, context.seed)[0]
    return (Ranked(at) for at in order_by_distance(signatures, start))


def _shingle(context: Context) -> int:
    """The length of shingles; 0 for tokens."""
    given = context.options.get("fast.shingles", str(SHINGLE))
    if given == TOKENS:
        return 0
    if not given.isdecimal() or int(given) < 1:
        raise UsageError(f"fast.shingles is a number of characters or {TOKENS}, not {given!r}")
    return int(given)


def _set(text: str, length: int) -> set[str]:
    if not length:
        return set(text.split())
    return {text[at : at + length] for at in range(max(1, len(text) - length + 1))}


def compute_minhashes(sets: Sequence[set[str]]) -> Array:
    """uint64 [tests, BANDS]: the minimum of each hash over a test's shingles.

    FAST takes xxHash with ten seeds; here one 64-bit digest of a shingle is mixed in ten ways, by odd
    multipliers (Knuth's multiplicative hashing), so that each shingle is digested once.
    """
    digests: dict[str, int] = {}
    found = np.full((len(sets), BANDS), _NOTHING, np.uint64)
    odd = np.array([_digest(f"multiplier {band}") | 1 for band in range(BANDS)], np.uint64)
    for place, shingles in enumerate(sets):
        for one in shingles - digests.keys():
            digests[one] = _digest(one)
        if shingles:
            values = np.array([digests[one] for one in shingles], np.uint64)
            found[place] = (values[:, None] * odd).min(axis=0)
    return found


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def order_by_distance(signatures: Array, start: int) -> Iterator[int]:
    """The order of tests with these signatures, from `start`."""
    alive = np.ones(len(signatures), np.bool_)
    left = np.arange(len(signatures))
    emitted, chosen = signatures[start], start
    scan = 0  # no earlier test in `left` can be taken until `emitted` changes
    for remaining in range(len(signatures) - 1, -1, -1):
        yield chosen
        alive[chosen] = False
        if not remaining:
            return
        if 2 * remaining < len(left):
            left, scan = left[alive[left]], 0
        at = _first(signatures, left, alive, emitted, scan)
        if at is None:
            emitted = np.full(BANDS, _NOTHING, np.uint64)
            at = int(np.flatnonzero(alive[left])[0])
        chosen = int(left[at])
        lower = np.minimum(emitted, signatures[chosen])
        scan = at if np.array_equal(lower, emitted) else 0
        emitted = lower


def _first(signatures: Array, left: Array, alive: Array, emitted: Array, scan: int) -> int | None:
    """Index in `left`, from `scan` on, of the first test that collides with nothing emitted."""
    for start in range(scan, len(left), _CHUNK):
        rows = left[start : start + _CHUNK]
        free = alive[rows] & ~(signatures[rows] == emitted).any(axis=1)
        if free.any():
            return start + int(free.argmax())
    return None
