"""Coverage feedback: the lines of the compiler that mutants reach decide which are mutated again, and how.

A greybox loop as in AFL: a mutant that reaches a line that none before it reached becomes a parent. Half of
the next mutants are parents with one more mutation, drawn by how often mutations have led to new lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field

from fuzzing.mutate.programs import mutations
from fuzzing.mutate.programs.mutant_names import MutantName
from fuzzing.mutate.programs.mutants import Mutant
from fuzzing.rng import Rng

#: A line of a file.
Line = tuple[str, int]

#: The share of mutants that extend a parent, if there is one; the others keep the search wide.
_EXTENDED = 0.5
#: Parents to choose from, the latest: they reached what all before them had not.
_PARENTS = 32
#: Draws of one mutation: an extension is a draw times the number of mutations, plus the mutation's place.
_DRAWS = 1 << 16


@dataclass
class Guide:
    """The lines reached so far, and what they say about the next mutant.

    reached  lines
    """

    reached: set[Line] = field(default_factory=set)
    _parents: list[MutantName] = field(default_factory=list)
    _runs: Counter[str] = field(default_factory=Counter)
    _gains: Counter[str] = field(default_factory=Counter)

    def choose(self, fresh: MutantName, rng: Rng) -> MutantName:
        """The next mutant: a parent with one more mutation, or the fresh one."""
        if not self._parents or not rng.chance(_EXTENDED):
            return fresh
        names = mutations.names()
        # A mutation that has not run yet counts as one that gained.
        shares = [(1 + self._gains[name]) / (1 + self._runs[name]) for name in names]
        aim, place = rng.random() * sum(shares), 0
        while place < len(names) - 1 and aim >= shares[place]:
            aim -= shares[place]
            place += 1
        parent = rng.choice(self._parents[-_PARENTS:])
        return parent.extend(rng.below(_DRAWS) * len(names) + place)

    def record(self, name: MutantName, mutant: Mutant, lines: Set[Line]) -> int:
        """Takes in the lines that a mutant reached; returns how many are new."""
        new = len(lines - self.reached)
        self.reached |= lines
        for mutation in {step.mutation for step in mutant.steps}:
            self._runs[mutation] += 1
            self._gains[mutation] += new > 0
        if new:
            self._parents.append(name)
        return new
