"""Variables are replaced where they are read, and nowhere else."""

from __future__ import annotations

import pytest

from fuzzing.mutate.programs.expressions import replace_variables


@pytest.mark.parametrize(
    ("value", "replaced"),
    [
        ("torch.add(v1, v10, alpha=2)", "torch.add(w[0], v10, alpha=2)"),
        ("v1.v1(v1=v1)", "w[0].v1(v1=w[0])"),
        ("(lambda v1: v1 + v2)(v1)", "(lambda v1: v1 + v2)(w[0])"),
        ("(lambda v2, v1=v1: v1)(v1)", "(lambda v2, v1=w[0]: v1)(w[0])"),
        ("[v1 * v2 for v1 in v1]", "[v1 * v2 for v1 in w[0]]"),
        ("[v1 * i for i in v1 if v1]", "[w[0] * i for i in w[0] if w[0]]"),
        ("{v1: i for i in [v1]}", "{w[0]: i for i in [w[0]]}"),
    ],
)
def test_only_variables_that_are_read_are_replaced(value: str, replaced: str) -> None:
    assert replace_variables(value, {"v1": "w[0]"}) == replaced
