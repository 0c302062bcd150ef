"""Which APIs look alike."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from fuzzing.generate.deeprel.api_inventory import list_apis
from fuzzing.generate.deeprel.similarity import CANDIDATES, Candidate, find_candidates, tf_idf


def test_what_all_texts_say_counts_for_nothing_and_texts_have_length_one() -> None:
    texts = [Counter(text) for text in (["the", "cat"], ["the", "cat"], ["the", "dog"], ["the", "dog"])]
    matrix = tf_idf(texts)
    alike = matrix @ matrix.T
    assert np.allclose(np.diag(alike), 1)
    assert np.allclose(alike[:2, :2], 1)
    assert np.allclose(alike[:2, 2:], 0)


def test_a_text_without_a_known_term_is_like_nothing() -> None:
    matrix = tf_idf([Counter(["a"]), Counter(["a"]), Counter(["b"])])
    assert not matrix[2].any()


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[Candidate, ...]]:
    apis = list(list_apis().values())
    return find_candidates(apis, apis)


@pytest.mark.compiler_torch_eager
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("torch.amax", "torch.max"),
        ("torch.nn.functional.relu", "torch.relu"),
        ("torch.nn.ReLU6", "torch.nn.Hardtanh"),
        ("torch.nn.AdaptiveAvgPool2d", "torch.nn.AvgPool2d"),
        ("torch.nn.AdaptiveAvgPool2d", "torch.nn.AdaptiveMaxPool2d"),
        ("torch.linalg.norm", "torch.norm"),
        ("torch.add", "torch.sub"),
    ],
)
def test_pairs_that_a_reader_would_name(
    source: str, target: str, found: dict[str, tuple[Candidate, ...]]
) -> None:
    assert target in {candidate.api.name for candidate in found[source]}


@pytest.mark.compiler_torch_eager
def test_each_has_ten_in_order_and_of_its_own_sort(found: dict[str, tuple[Candidate, ...]]) -> None:
    for name, some in found.items():
        assert len(some) == CANDIDATES
        scores = [candidate.similarity for candidate in some]
        assert scores == sorted(scores, reverse=True)
        assert name not in {candidate.api.name for candidate in some}
        sorts = {candidate.api.kind == "class" for candidate in some}
        assert sorts == {list_apis()[name].kind == "class"}


@pytest.mark.compiler_torch_eager
def test_the_order_of_the_apis_does_not_matter(found: dict[str, tuple[Candidate, ...]]) -> None:
    apis = list(list_apis().values())
    random.Random(7).shuffle(apis)
    some = ["torch.amax", "torch.nn.ReLU6", "torch.Tensor.add_"]
    assert find_candidates([list_apis()[name] for name in some], apis) == {name: found[name] for name in some}
