"""Mutate-then-recover: an entry of a tensor is overwritten, and restored before anybody reads the tensor."""

from __future__ import annotations

import torch

from fuzzing.mutate.programs.mutations import Parameters, Proposal, register_mutation
from fuzzing.mutate.programs.profile import TensorFacts
from fuzzing.mutate.programs.program_tree import Block, ProgramTree, parse_statements
from fuzzing.rng import Rng


@register_mutation("mutate-recover")
class MutateRecover:
    """The entry is saved, overwritten and restored (seed paper, M2).

    Sound: the backup is a copy, as an index gives a view. The tensor is restored before the first statement
    of the block that reads it or any variable that ever shares its memory, through functions too, and at the
    end of the block at the latest, so that nothing reads the other value. Tensors whose elements share memory
    are left out: one write would change several.

    parameters: `before`, the statement, of the overwriting; `tensor`, `index`, `value`; `aliases`, the
    variables that share its memory; `backup`: clone, item.
    """

    exact = True

    def propose(self, proposal: Proposal) -> Parameters | None:
        """A point, a tensor and an entry of it."""
        program, rng = proposal.program, proposal.rng
        block = rng.choice(program.blocks)
        index = rng.below(len(block.statements))
        before = program.name(block.statements[index])
        point = proposal.profile.before(block, index)
        if point is None or program.find(before) is None:
            return None
        tensors = sorted(name for name, facts in point.items() if _is_writable(facts))
        if not tensors:
            return None
        name = rng.choice(tensors)
        facts = point[name]
        aliases = proposal.profile.aliases(facts.storage)
        until = _first_reader(program, block, index, aliases)
        if proposal.profile.before(block, until) is None:
            return None  # a statement in between raises, and the tensor would not be restored
        index_text, whole = _draw_index(facts.shape, rng)
        return {
            "before": before,
            "tensor": name,
            "index": index_text,
            "value": _draw_value(facts.dtype, rng),
            "aliases": sorted(aliases),
            "backup": rng.choice(("clone", "item")) if whole else "clone",
        }

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """Backup and overwriting before one statement, the restoring before a later one."""
        found = program.find(parameters["before"])
        if found is None:
            return None
        block, index = found
        entry, backup = f"{parameters['tensor']}[{parameters['index']}]", f"saved{number}"
        statements = block.statements
        until = _first_reader(program, block, index, frozenset(parameters["aliases"]))
        return program.replace(
            block,
            [
                *statements[:index],
                *parse_statements(
                    f"{backup} = {entry}.{parameters['backup']}()\n{entry} = {parameters['value']}"
                ),
                *statements[index:until],
                *parse_statements(f"{entry} = {backup}"),
                *statements[until:],
            ],
        )


def _first_reader(program: ProgramTree, block: Block, start: int, aliases: frozenset[str]) -> int:
    """The index of the first statement that reads or writes one of the variables, or leaves the block."""
    for index in range(start, len(block.statements)):
        statement = block.statements[index]
        names = program.names(statement)
        if (program.reads_deep(statement) | names.stores) & aliases or names.leaves:
            return index
    return len(block.statements)


def _is_writable(facts: TensorFacts) -> bool:
    return facts.values.numel() > 0 and not facts.overlapping and not facts.dtype.is_complex


def _draw_index(shape: tuple[int, ...], rng: Rng) -> tuple[str, bool]:
    """An index, and whether it names one element."""
    if not shape:
        return "...", True
    given = rng.between(1, len(shape))
    places = [rng.below(length) for length in shape[:given]]
    # Negative indices count from the end.
    texts = [
        str(place - length if rng.chance(0.25) else place)
        for place, length in zip(places, shape, strict=False)
    ]
    return ", ".join(texts), given == len(shape)


def _draw_value(dtype: torch.dtype, rng: Rng) -> bool | int | float:
    if dtype == torch.bool:
        return rng.chance(0.5)
    if dtype.is_floating_point:
        return round(rng.random() * 4 - 2, 2)
    return rng.between(0, 9)
