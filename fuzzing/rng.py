"""Random choices from one seed, equal on every machine and Python version.

CPython guarantees the sequence of `random.random()` for a seed (library reference, "Notes on
Reproducibility"), but not those of `choice`, `shuffle` or `randrange`, which are therefore built on it here.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Rng:
    """A stream of choices.

    seed  0 ≤ seed < 2**64, stored with everything drawn from it
    """

    __slots__ = ("random",)

    def __init__(self, seed: int) -> None:
        #: A float in [0, 1).
        self.random = random.Random(seed).random  # noqa: S311 - test inputs, no secrets

    def below(self, count: int) -> int:
        """An integer in [0, count)."""
        return int(self.random() * count)

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + int(self.random() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`, which must not be empty."""
        return items[int(self.random() * len(items))]

    def permutation(self, count: int) -> list[int]:
        """0 … count-1 in random order (Fisher and Yates)."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = int(self.random() * (last + 1))
            order[last], order[other] = order[other], order[last]
        return order

    def subset(self, count: int) -> list[int]:
        """At least one of 0 … count-1, in random order: first how many, then which."""
        return self.permutation(count)[: self.between(1, count)]

    def seed(self) -> int:
        """A seed for another stream, of 53 bits."""
        return int(self.random() * (1 << 53))


def derive_seed(seed: int, *path: int | str) -> int:
    """The seed of a part, such as model 7 of a run, so that each part can be drawn alone in any process."""
    text = "/".join(str(step) for step in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
