from __future__ import annotations

import numpy as np
import pytest

from fuzzing.errors import UsageError
from fuzzing.prioritize.fast import BANDS, compute_minhashes, instance_text, order_by_distance
from fuzzing.prioritize.strategies import Context
from tests.fuzzing.prioritize.prioritize_kit import instance, order


def _plain(signatures: list[list[int]], start: int) -> list[int]:
    """FAST-pw the plain way: every test left is compared after every emission."""
    nothing = [(1 << 64) - 1] * BANDS
    left = [at for at in range(len(signatures)) if at != start]
    found, emitted = [start], signatures[start]
    while left:
        free = [at for at in left if not any(a == b for a, b in zip(signatures[at], emitted, strict=True))]
        if not free:
            emitted, free = nothing, left
        chosen = free[0]
        found.append(chosen)
        left.remove(chosen)
        emitted = list(map(min, emitted, signatures[chosen]))
    return found


@pytest.mark.parametrize("values", [2, 6, 40, 10_000])
def test_the_order_is_that_of_comparing_everything(values: int) -> None:
    drawn = np.random.Generator(np.random.PCG64(values)).integers(0, values, (150, BANDS), np.uint64)
    assert list(order_by_distance(drawn, 7)) == _plain(drawn.tolist(), 7)


def test_minhashes_estimate_how_alike_two_sets_are() -> None:
    letters = [f"{number:05d}" for number in range(400)]
    same, half, other = set(letters[:200]), set(letters[100:300]), set(letters[200:])
    tables = [
        compute_minhashes([{f"{seed}{word}" for word in words} for words in (same, half, other)])
        for seed in range(60)
    ]
    agree = np.mean([[(t[0] == t[1]).mean(), (t[0] == t[2]).mean()] for t in tables], axis=0)
    assert agree[0] == pytest.approx(1 / 3, abs=0.06)  # 100 of 300 words are in both
    assert agree[1] == 0


def test_what_is_unlike_comes_before_what_is_alike() -> None:
    alike = [instance(n, "torch.nn.functional.conv2d", stride=[1, 1], padding=n % 2) for n in range(6)]
    odd = instance(9, "Unrelated", window="hamming")
    assert odd.id in [([*alike, odd])[at].id for at in order("fast", [*alike, odd], Context(seed=3))[:2]]


def test_shingles_and_tokens_are_options() -> None:
    assert (
        instance_text(instance(1, "Add", a=[1, 2], b={"tensor": ["int8", [3]]}))
        == 'Add a=[1,2] b={"tensor":["int8",[3]]}'
    )
    instances = [instance(n, "Add", a=n % 7, b="x" * (n % 5)) for n in range(40)]
    orders = {
        shingle: tuple(order("fast", instances, Context(options={"fast.shingles": shingle})))
        for shingle in ("5", "tokens")
    }
    assert orders["5"] != orders["tokens"]
    assert orders["5"] == tuple(order("fast", instances))
    with pytest.raises(UsageError, match="tokens"):
        order("fast", instances, Context(options={"fast.shingles": "0"}))
