"""The sides of an executed pair, as a case and its outputs, so that every oracle applies to pairs too.

The left side's outputs stand for the expected ones, and the right side's are compared with them.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fuzzing.cases import EquivalentPair, TestCase
from fuzzing.cases.equivalent_pair import SIDES, BothSidesError, OneSidedError
from fuzzing.cases.values import Value
from fuzzing.execution import Execution

Outputs = tuple[tuple[str, Value], ...]

#: Classes of the exceptions of `pair_runner`, as a worker names them.
ONE_SIDED, BOTH_SIDES = OneSidedError.__name__, BothSidesError.__name__
_ONE_SIDED_TEXT = re.compile(r"only the \w+ program fails, in \w+: (\w+): (.*)", re.DOTALL)


def split_outputs(outputs: Outputs) -> tuple[Outputs, Outputs]:
    """The left and the right side's outputs, under their own names."""
    left, right = (
        tuple((name[len(side) + 1 :], value) for name, value in outputs if name.startswith(f"{side}:"))
        for side in SIDES
    )
    return left, right


def separate(case: TestCase, execution: Execution) -> tuple[TestCase, Execution]:
    """The left program with its outputs as the expected ones, and an execution with the right one's outputs.

    Other cases, and executions without outputs, are returned unchanged.
    """
    program = case.program
    if not isinstance(program, EquivalentPair) or execution.ending != "returned":
        return case, execution
    left, right = split_outputs(execution.outputs)
    return replace(case, program=program.left, expected=left), replace(execution, outputs=right)


def exchange(case: TestCase, execution: Execution) -> tuple[TestCase, Execution]:
    """As `separate`, with the sides exchanged; for pairs that returned only."""
    program = case.program
    assert isinstance(program, EquivalentPair)
    left, right = split_outputs(execution.outputs)
    return replace(case, program=program.right, expected=right), replace(execution, outputs=left)


def raised_error(error: str, message: str) -> tuple[str, str]:
    """Class and text of the exception that a program raised, for a pair that of its one failing side.

    Both as in Execution or Evidence, where the class may have its module.
    """
    if error.rpartition(".")[2] == ONE_SIDED and (found := _ONE_SIDED_TEXT.match(message)):
        return found[1], found[2]
    return error, message
