"""Matches each finding of a campaign to a bug. Pure functions.

The program of a reduced case shows what its bug needs (docs/triage.md). A signature explains a similar one
that needs more; a failure belongs to the bug that needs least of those that explain it. A bug keeps its first
key, even if a later case shows that it needs less: its issue is found by that key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzing.outcomes import Verdict
from fuzzing.torch_aliases import canonical_api
from fuzzing.triage.signature import Signature, explains
from fuzzing.triage.traits import Traits
from fuzzing.triage.type_needs import type_oddness

#: Verdicts that name no cause.
_EFFECTS = frozenset(one.value for one in (Verdict.WRONG_RESULT, Verdict.HANG, Verdict.OUT_OF_MEMORY))
#: What a reduction adds to a signature, or puts in place of what the case was made to test and of the rewrite
#: that is blamed for a pair as it was found.
_REDUCTION_FIELDS = frozenset({"operator", "dtypes", "needs", "component", "root", "rewrite", "proven"})


@dataclass(frozen=True)
class KnownBug:
    """A bug, as far as it can explain failures.

    key     the target's key of it
    fields  fields of the signature of its reduced case
    """

    key: str
    fields: dict[str, Any]

    @property
    def needs(self) -> int:
        """How many needs it has, or what is wrong upstream has: of two bugs that explain a failure the one
        with fewer is taken.
        """
        shown = self.fields.get("needs", ())
        return len(self.fields.get("root", {}).get("needs", shown))


def match_bug_keys(signatures: Sequence[Signature], bugs: Iterable[KnownBug]) -> list[str]:
    """The bug key of each signature (of reduced cases), in order; independent of that order. `bugs`: those
    known.
    """
    there = sorted(bugs, key=_sort_key)
    fresh = sorted({one.key: KnownBug(one.key, one.fields) for one in signatures}.values(), key=_sort_key)
    return [_key_of(KnownBug(one.key, one.fields), there, fresh) for one in signatures]


def _sort_key(one: KnownBug) -> tuple[int, int, int, str]:
    return one.needs, len(one.fields.get("dtypes", ())), type_oddness(one.fields), one.key


def _key_of(mine: KnownBug, there: Sequence[KnownBug], fresh: Sequence[KnownBug]) -> str:
    least = next(one for one in fresh if _explains(one, mine))
    for wanted in (
        lambda one: one.key == least.key,
        lambda one: _explains(one, least),
        lambda one: _explains(least, one),  # it was known by a case that has more than the bug needs
    ):
        found = next((one.key for one in there if wanted(one)), None)
        if found is not None:
            return found
    return least.key


def _explains(one: KnownBug, other: KnownBug) -> bool:
    return explains(Signature(one.key, "", one.fields), Signature(other.key, "", other.fields))


def candidate_bugs(raw: Signature, bugs: Iterable[KnownBug]) -> list[KnownBug]:
    """The bugs that have the symptom of an unreduced failure."""
    return [one for one in bugs if same_symptom(raw.fields, one.fields)]


def underlying_bug(raw: Signature, traits: Traits, bugs: Iterable[KnownBug]) -> str:
    """The key of the bug behind an unreduced failure, "" if none is known.

    The symptom must be equal, and the case must contain what the bug needs, operators included. A program of
    several operators of which only the effect is known has none: any of them may be wrong.

    traits  of the unreduced case
    """
    if len(traits.operators) > 1 and not describes_cause(raw):
        return ""
    found = (one for one in candidate_bugs(raw, bugs) if _contains_requirements(traits, one.fields))
    best = min(found, key=_sort_key, default=None)
    return best.key if best else ""


def describes_cause(raw: Signature) -> bool:
    """Whether an unreduced failure shows more than that outputs differ, or that time or memory ran out."""
    return raw.fields["verdict"] not in _EFFECTS


def contradicts_reduced(raw: Signature) -> bool:
    """Whether an unreduced failure that no reduced one explains is another bug than they are.

    Wrong values have no words: where an operator's attribute or input that a bug needs is missing, nothing
    else shows that it is the same bug. An exception's message and frame do.
    """
    return bool(raw.fields["verdict"] == Verdict.WRONG_RESULT.value)


def same_symptom(fields: dict[str, Any], small: dict[str, Any]) -> bool:
    """Whether a reduced case (signature fields `small`) shows the symptom of the signature `fields`.

    Of several wrong outputs the reduced case needs to show only some, as in reduction.
    """
    mine, other = _symptom(fields), _symptom(small)
    if fields["verdict"] == Verdict.WRONG_RESULT.value:
        ways, shown = (set(str(one.pop("complaint")).split(", ")) for one in (mine, other))
        return mine == other and shown <= ways
    return mine == other


def _symptom(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _REDUCTION_FIELDS}


def _contains_requirements(traits: Traits, fields: dict[str, Any]) -> bool:
    """Whether a case contains the operators of a reduced signature's pattern, and what those operators need.

    Needs about types and shapes are skipped: they are about the inputs of the reduced program, which may be
    inner values of the original one.
    """
    if "needs" not in fields:
        return False
    operators = pattern_operators(str(fields["operator"]))
    needs = {need for need in fields["needs"] if need.replace(".", " ").split()[0] in operators}
    mine, others = ({canonical_api(name) for name in names} for names in (operators, traits.operators))
    return mine <= others and needs <= set(traits.needs)


def pattern_operators(pattern: str) -> list[str]:
    """The operators of a pattern: `Reshape(Transpose); Abs` → Reshape, Transpose, Abs.

    A digest in place of a long part matches no operator. Subgraphs stand in brackets, separated by bars;
    "=" is between equal graphs.
    """
    for mark in "()[],;|=":
        pattern = pattern.replace(mark, " ")
    return pattern.split()
