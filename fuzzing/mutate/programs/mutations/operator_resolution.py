"""Operator resolution: an element-wise statement becomes a loop over the slices of one axis."""

from __future__ import annotations

from collections.abc import Mapping

from fuzzing.mutate.programs.elementwise import elementwise_operands
from fuzzing.mutate.programs.expressions import replace_variables
from fuzzing.mutate.programs.mutations import Parameters, Proposal, register_mutation
from fuzzing.mutate.programs.profile import Point, TensorFacts
from fuzzing.mutate.programs.program_tree import ProgramTree, parse_statements
from fuzzing.mutate.programs.rewriting import assigned_value

#: An unrolled loop of more slices makes compilers slow without making them do anything else.
_MOST_SLICES = 6


@register_mutation("operator-resolution")
class OperatorResolution:
    """Slices are computed one by one and written to an empty tensor, or stacked (seed paper, M1).

    Sound: an element of the result depends on the elements at its own position only. The tensor has the
    profiled element type. Results may differ by a rounding: vectorized kernels treat the last elements of a
    row in another way, and the result may have other strides, in whose order later reductions add.

    parameters: `target`; `axis` and `slices`, the axis' length; `form`: loop, stack; `operands`, the index of
    each operand's slice, by name; `empty`, how the loop's tensor is made.
    """

    exact = False

    def propose(self, proposal: Proposal) -> Parameters | None:
        """An element-wise statement, an axis and a form."""
        program, rng = proposal.program, proposal.rng
        block = rng.choice(program.blocks)
        index = rng.below(len(block.statements))
        name = program.name(block.statements[index])
        before, after = proposal.profile.before(block, index), proposal.profile.before(block, index + 1)
        value = assigned_value(program.code(block.statements[index]))
        if value is None or before is None or after is None or program.find(name) is None:
            return None
        result = after.get(name)
        operands = elementwise_operands(value)
        if result is None or operands is None or not result.shape or not operands <= before.keys():
            return None
        axis = rng.below(len(result.shape))
        form = rng.choice(("loop", "stack"))
        if result.shape[axis] > _MOST_SLICES or (result.shape[axis] == 0 and form == "stack"):
            return None
        slices = {name: _slice(before[name], result, axis) for name in sorted(operands)}
        if None in slices.values() or not _keeps_types(before, slices, result):
            return None
        return {
            "target": name,
            "axis": axis,
            "slices": result.shape[axis],
            "form": form,
            "operands": slices,
            "empty": _empty(before, operands, result),
        }

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """A loop, or a list comprehension, in place of the statement."""
        target = parameters["target"]
        found = program.find(target)
        if found is None:
            return None
        block, index = found
        value = assigned_value(program.code(block.statements[index]))
        if value is None or elementwise_operands(value) != parameters["operands"].keys():
            return None
        variable = f"i{number}"
        sliced = replace_variables(
            value,
            {name: name + text.replace("I", variable) for name, text in parameters["operands"].items()},
        )
        if parameters["form"] == "stack":
            listed = f"[{sliced} for {variable} in range({parameters['slices']})]"
            text = f"{target} = torch.stack({listed}, dim={parameters['axis']})"
        else:
            place = ", ".join([":"] * parameters["axis"] + [variable])
            text = (
                f"{target} = {parameters['empty']}\n"
                f"for {variable} in range({target}.shape[{parameters['axis']}]):\n"
                f"    {target}[{place}] = {sliced}\n"
            )
        before, after = block.statements[:index], block.statements[index + 1 :]
        return program.replace(block, [*before, *parse_statements(text), *after])


def _slice(operand: TensorFacts, result: TensorFacts, axis: int) -> str | None:
    """What is appended to an operand so that it gives slice I of the result; None if it cannot be sliced.

    Shapes are aligned at their ends, as in broadcasting.
    """
    own = axis - (len(result.shape) - len(operand.shape))
    if own < 0:
        return ""
    index = "0" if operand.shape[own] == 1 != result.shape[axis] else "I"
    return f"[{', '.join([':'] * own + [index])}]"


def _keeps_types(before: Point, slices: Mapping[str, str | None], result: TensorFacts) -> bool:
    """Whether no slice of rank 0 loses its effect on type promotion, which counts such tensors less."""
    types = {before[name].dtype for name in slices}
    shrinks = any(text and len(before[name].shape) == 1 for name, text in slices.items())
    return len(types) == 1 or (not shrinks and all(before[name].shape for name in slices)) or not result.shape


def _empty(before: Point, operands: frozenset[str], result: TensorFacts) -> str:
    """The empty tensor of the loop: as the paper has it where an operand has the result's type."""
    for name in sorted(operands):
        if (before[name].shape, before[name].dtype) == (result.shape, result.dtype):
            return (
                f"torch.empty_like({name}).zero_()" if not before[name].overlapping else _full(name, result)
            )
    return _full(min(operands), result)


def _full(name: str, result: TensorFacts) -> str:
    return f"torch.empty({result.shape}, dtype={result.dtype}, device={name}.device).zero_()"
