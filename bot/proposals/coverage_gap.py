"""What a proposed test adds to its suite: operators and parameters that no test there named before.

Tests are read as text: an operator counts as covered where a test names it, whatever it then checks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bot.proposals.candidate_names import parameters
from bot.proposals.regression import Regression
from bot.proposals.suite import Suite

_NODE_TESTS = "onnx-node-tests"

#: (operator, parameter), "" for the operator itself.
Covered = tuple[str, str]


@dataclass(frozen=True)
class Gap:
    """Operators without a test, and parameters that no test of their operators sets."""

    operators: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.operators or self.parameters)

    def covers(self, regression: Regression) -> list[Covered]:
        """What a test of the regression adds; its parameters count for all its operators."""
        named = [(one, name) for one in regression.operators for name in self.parameters]
        return [*((one, "") for one in self.operators), *named]


def find_gap(suite: Suite, regression: Regression, declined: Collection[Covered] = ()) -> Gap:
    """What the tests of a suite do not name of a regression's program.

    declined  what maintainers did not want tests of, which counts as covered
    A node test of ONNX adds nothing where the suite runs these itself, nor does an operator that has one, nor
    its parameters: node tests set most of them.
    """
    if regression.case.provenance.source == _NODE_TESTS and suite.runs_node_tests():
        return Gap()
    by_node_tests = suite.has_node_test if regression.frontend == "onnx" else _never
    operators = {
        name: word for name in regression.operators if not by_node_tests(word := name.rpartition(".")[2])
    }
    naming = {name: suite.naming(word) for name, word in operators.items()}
    missing = tuple(name for name, tests in naming.items() if not tests and (name, "") not in declined)
    of_operators = {id(one) for tests in naming.values() for one in tests}
    unset = tuple(
        name
        for name in dict.fromkeys(name for name, _ in parameters(regression))
        if operators
        and not any((one, name) in declined for one in operators)
        and not any(id(one) in of_operators for one in suite.naming(name))
    )
    return Gap(missing, unset)


def _never(_operator: str) -> bool:
    return False
