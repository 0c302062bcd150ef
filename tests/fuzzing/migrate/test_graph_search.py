"""The source `graph-search`: the same models from the same seed, and rewards that ask a compiler."""

from __future__ import annotations

import pytest

from fuzzing.cases import TestCase
from fuzzing.errors import UsageError
from fuzzing.migrate import graph_search


def ids(**options: object) -> list[str]:
    found = list(graph_search.migrate(**options))  # type: ignore[arg-type]
    assert all(isinstance(item, TestCase) for item in found)
    return [item.id for item in found if isinstance(item, TestCase)]


def test_models_depend_on_the_seed_and_the_blocks() -> None:
    first = ids(count=5, blocks=4)
    assert len(set(first)) == 5
    assert ids(count=5, blocks=4) == first
    assert ids(count=5, blocks=4, seed=1) != first
    assert ids(count=5, blocks=5) != first


@pytest.mark.compiler_onnxruntime
@pytest.mark.parametrize("reward", ["pass", "compiler-coverage"])
def test_a_reward_may_ask_a_compiler(reward: str) -> None:
    assert len(ids(count=3, blocks=3, reward=reward, feedback="onnxruntime")) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "gold"}, "there are coverage, compiler-coverage, new-failure, pass"),
        ({"reward": "pass"}, "name one with --feedback"),
        ({"blocks": -1}, "at least one block"),
    ],
)
def test_wrong_options_say_what_there_is(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ids(count=1, **options)
