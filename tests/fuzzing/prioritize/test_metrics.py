from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.errors import UsageError
from fuzzing.prioritize.metrics import apfd, first_ranks, rauc

#: APFD by subject and strategy, as recomputed from OPERA's released fault ranks (table 1.8).
TABLE = {
    "TVM-PyTorch": (0.9842, 0.9130, 0.9302, 0.8152, 0.7778),
    "TVM-Keras": (0.9764, 0.9045, 0.9061, 0.6908, 0.8680),
    "TVM-ONNX": (0.7266, 0.5771, 0.4870, 0.3162, 0.5749),
    "TRT-PyTorch": (0.9816, 0.8667, 0.9297, 0.7062, 0.8535),
    "TRT-ONNX": (0.7676, 0.6451, 0.6284, 0.6628, 0.3336),
    "OV-PyTorch": (0.9826, 0.8769, 0.9272, 0.6077, 0.6697),
    "OV-Keras": (0.9459, 0.8503, 0.9192, 0.7503, 0.7402),
    "OV-ONNX": (0.8162, 0.7164, 0.6892, 0.3226, 0.4162),
}
AVERAGES = (0.8976, 0.7938, 0.8021, 0.6090, 0.6542)
GAINS = (13.1, 11.9, 47.4, 37.2)  # of OPERA over the others, in per cent


def test_the_published_averages_come_out_of_the_published_rows() -> None:
    averages = [mean(column) for column in zip(*TABLE.values(), strict=True)]
    assert averages == pytest.approx(AVERAGES, abs=1.01e-4)
    gains = [100 * (averages[0] / other - 1) for other in averages[1:]]
    assert gains == pytest.approx(GAINS, abs=0.06)


@given(n=st.integers(1, 10**6), share=st.floats(0, 1))
def test_apfd_of_the_best_order(n: int, share: float) -> None:
    m = max(1, min(200, round(share * n)))
    assert apfd(range(1, m + 1), n) == pytest.approx(1 - (m + 1) / (2 * n) + 1 / (2 * n))


def test_apfd_by_hand() -> None:
    # ten cases, faults first seen at 1, 4 and 10
    assert apfd([1, 4, 10], 10) == pytest.approx(1 - 15 / 30 + 1 / 20)


@given(n=st.integers(4, 500), data=st.data())
def test_a_bug_found_earlier_is_never_worse(n: int, data: st.DataObject) -> None:
    ranks = data.draw(st.lists(st.integers(2, n), min_size=1, max_size=8))
    earlier = [ranks[0] - 1, *ranks[1:]]
    assert apfd(earlier, n) > apfd(ranks, n)
    for k in (0.5, 0.75, 1.0):
        assert rauc(earlier, n, k) >= rauc(ranks, n, k)


@pytest.mark.parametrize("k", [0.25, 0.5, 0.75, 1.0])
def test_rauc_of_the_best_order_is_one(k: float) -> None:
    assert rauc([1, 2, 3, 4, 5], 40, k) == pytest.approx(1)
    assert rauc([37, 38, 39, 40], 40, 0.5) == 0


def test_rauc_by_hand() -> None:
    # the first 4 of 8 cases; curve 0 1 1 2 against 1 2 2 2
    assert rauc([2, 4], 8, 0.5) == pytest.approx((0.5 + 1 + 1.5) / (1.5 + 2 + 2))


def test_first_ranks_count_each_bug_once() -> None:
    bugs = ["a", None, "b", "a", None, "b"]
    assert first_ranks([4, 3, 0, 1, 5, 2], bugs) == [2, 5]


@pytest.mark.parametrize(("ranks", "n"), [([], 5), ([0], 5), ([6], 5)])
def test_ranks_that_cannot_be_are_refused(ranks: list[int], n: int) -> None:
    with pytest.raises(UsageError):
        apfd(ranks, n)


def test_rauc_without_an_area_is_refused() -> None:
    with pytest.raises(UsageError, match="two cases"):
        rauc([1], 4, 0.25)
