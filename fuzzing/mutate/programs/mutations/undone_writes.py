"""In-place operations that the next statement undoes."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, Proposal, register_mutation
from fuzzing.mutate.programs.profile import TensorFacts
from fuzzing.mutate.programs.program_tree import ProgramTree, parse_statements

_NEGATE = ("neg_()", "neg_()")
_BOOLEAN = ("logical_not_()", "logical_not_()")


@register_mutation("undone-writes")
class UndoneWrites:
    """Sound: negation and changes of shape are their own inverse or have an exact one, and nothing reads the
    tensor, or a tensor that shares its memory, in between.

    parameters: `before`, the statement; `tensor`; `write` and `undo`, the two calls.
    """

    exact = True

    def propose(self, proposal: Proposal) -> Parameters | None:
        """A point, a tensor and a pair of operations."""
        program, rng = proposal.program, proposal.rng
        block = rng.choice(program.blocks)
        index = rng.below(len(block.statements))
        before = program.name(block.statements[index])
        point = proposal.profile.before(block, index)
        if point is None or program.find(before) is None or not point:
            return None
        name = rng.choice(sorted(point))
        pairs = _pairs(point[name])
        if not pairs:
            return None
        write, undo = rng.choice(pairs)
        return {"before": before, "tensor": name, "write": write, "undo": undo}

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """Both calls before the statement."""
        del number
        found = program.find(parameters["before"])
        if found is None:
            return None
        block, index = found
        tensor = parameters["tensor"]
        calls = parse_statements(f"{tensor}.{parameters['write']}\n{tensor}.{parameters['undo']}")
        return program.replace(block, [*block.statements[:index], *calls, *block.statements[index:]])


def _pairs(facts: TensorFacts) -> list[tuple[str, str]]:
    """Operations that may be applied to a tensor, each with the one that undoes it."""
    rank = len(facts.shape)
    pairs = [("unsqueeze_(0)", "squeeze_(0)"), ("unsqueeze_(-1)", "squeeze_(-1)")]
    if rank >= 2:
        pairs += [("transpose_(0, 1)", "transpose_(0, 1)"), ("swapaxes_(0, -1)", "swapaxes_(-1, 0)")]
    if not facts.overlapping:
        kind = str(facts.dtype)
        pairs += [_BOOLEAN] if kind == "torch.bool" else [_NEGATE]
    return pairs
