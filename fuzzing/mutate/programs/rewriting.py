"""The base of mutations that rewrite one assignment."""

from __future__ import annotations

import ast
from typing import ClassVar

from fuzzing.mutate.programs.mutations import Parameters, Proposal
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.program_tree import ProgramTree, parse_statements


class Rewriting:
    """A mutation that turns `target = value` into other statements that bind the target.

    forms  one is drawn and handed to `text`
    views  whether it may rewrite a value that shares an operand's memory: a later write reaches both

    parameters: `target`; `form`; `operands`, the tensors that the value reads; `shape` and `dtype` of the
    result.
    """

    exact: ClassVar[bool] = True
    forms: ClassVar[tuple[str, ...]] = ("",)
    views: ClassVar[bool] = True

    def fits(self, value: str, operands: Point, result: TensorFacts) -> bool:  # noqa: ARG002
        """Whether the mutation keeps the result of this assignment."""
        return True

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The statements, as text."""
        raise NotImplementedError

    def outer_text(self, number: int, value: str, parameters: Parameters) -> str:  # noqa: ARG002
        """Statements before `forward`."""
        return ""

    def propose(self, proposal: Proposal) -> Parameters | None:
        """An assignment whose result is a tensor, and a form."""
        program, rng = proposal.program, proposal.rng
        block = rng.choice(program.blocks)
        index = rng.below(len(block.statements))
        code = program.code(block.statements[index])
        target, value = program.name(block.statements[index]), assigned_value(code)
        before, after = proposal.profile.before(block, index), proposal.profile.before(block, index + 1)
        form = rng.choice(self.forms)
        if value is None or before is None or after is None or program.find(target) is None:
            return None
        names = {node.id for node in ast.walk(ast.parse(value)) if isinstance(node, ast.Name)}
        operands = {name: before[name] for name in sorted(names & before.keys() - program.nonlocals)}
        result = after.get(target)
        if result is None or target in operands or not operands or not self.fits(value, operands, result):
            return None
        if not self.views and any(result.storage == facts.storage for facts in operands.values()):
            return None
        # Functions of the program may read variables that the rewritten value no longer sees.
        if names & (program.functions.keys() | program.nonlocals):
            return None
        return {
            "target": target,
            "form": form,
            "operands": list(operands),
            "shape": list(result.shape),
            "dtype": str(result.dtype),
        }

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """The statements in place of the assignment."""
        found = program.find(parameters["target"])
        if found is None:
            return None
        block, index = found
        value = assigned_value(program.code(block.statements[index]))
        if value is None or not set(parameters["operands"]) <= _names(value):
            return None
        statements = parse_statements(self.text(number, value, parameters))
        changed = program.replace(
            block, [*block.statements[:index], *statements, *block.statements[index + 1 :]]
        )
        outer = self.outer_text(number, value, parameters)
        return changed.insert_before_forward(parse_statements(outer)) if outer else changed


def assigned_value(code: str) -> str | None:
    """The right side of an assignment to one name; None for any other statement."""
    node = ast.parse(code).body[0]
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return ast.unparse(node.value)
    return None


def _names(value: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(value)) if isinstance(node, ast.Name)}
