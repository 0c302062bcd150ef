"""What a proposed test adds to its file."""

from __future__ import annotations

import pytest

from bot.proposals.coverage_gap import Gap, find_gap
from tests.bot.proposals.regressions import cumsum, regression, torch_sum

ONE = 'def test_a():\n    node = helper.make_node("{}", ["x"], ["y"], {}=1)\n'


@pytest.mark.parametrize(
    ("before", "gap"),
    [
        (None, Gap(("CumSum",), ("exclusive", "reverse"))),
        (ONE.format("CumSumInteger", "exclusive"), Gap(("CumSum",), ("exclusive", "reverse"))),
        (ONE.format("CumSum", "exclusive"), Gap((), ("reverse",))),
        (ONE.format("CumSum", "axis") + ONE.format("Relu", "reverse"), Gap((), ("exclusive", "reverse"))),
        ("@pytest.mark.parametrize('reverse', [1])\n" + ONE.format("CumSum", "exclusive"), Gap()),
        ("not python (", Gap(("CumSum",), ("exclusive", "reverse"))),
    ],
)
def test_what_no_test_named(before: str | None, gap: Gap) -> None:
    assert find_gap(before, regression("onnxruntime", cumsum())) == gap
    assert bool(gap) is (gap != Gap())


def test_a_class_with_one_test_is_one_test_and_others_are_not() -> None:
    bug = regression("inductor", torch_sum())
    net = "class Test:\n    def net(self):\n        cumsum(x)\n\n    def test_a(self):\n        run(dim=1)\n"
    assert find_gap(net, bug) == Gap()
    assert find_gap(net + "\n    def test_b(self):\n        pass\n", bug) == Gap((), ("dim",))
