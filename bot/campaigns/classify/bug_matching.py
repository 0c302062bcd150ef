"""Signing: which bug each finding of a campaign belongs to. Pure functions.

Of a case that was reduced the program tells what the bug needs (docs/triage.md). A signature explains another
that is alike and needs more; so a failure belongs to the bug that needs the least of those that explain it.
A bug keeps the key it was first known by, also where a later case shows that it needs less: an issue on
GitHub goes by that key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.campaigns.services import Signature
from fuzzing.outcomes import Verdict
from fuzzing.triage.signature import Signature as Signed
from fuzzing.triage.signature import explains
from fuzzing.triage.traits import Traits

#: What a reduction adds to a signature, or puts in place of what the case was made to test.
_REDUCTION_FIELDS = frozenset({"operator", "dtypes", "needs", "component", "root"})


@dataclass(frozen=True)
class KnownBug:
    """A bug, as far as it can explain failures.

    key     by which the target knows it
    fields  what the signature of its reduced case is made of
    """

    key: str
    fields: dict[str, Any]

    @property
    def needs(self) -> int:
        """How much it needs; of two that explain a failure the one that needs less is the bug."""
        return len(self.fields.get("needs", ()))


def match_bug_keys(signatures: Sequence[Signature], bugs: Iterable[KnownBug]) -> list[str]:
    """The key of the bug that each signature, made of a reduced case, belongs to; in their order.

    `bugs` are those that the target has. In which order signatures come makes no difference.
    """
    there = sorted(bugs, key=lambda one: (one.needs, one.key))
    fresh = sorted({one.key: KnownBug(one.key, one.fields) for one in signatures}.values(), key=_sort_key)
    return [_key_of(KnownBug(one.key, one.fields), there, fresh) for one in signatures]


def _sort_key(one: KnownBug) -> tuple[int, str]:
    return one.needs, one.key


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
    return explains(Signed(one.key, "", one.fields), Signed(other.key, "", other.fields))


def candidate_bugs(raw: Signature, bugs: Iterable[KnownBug]) -> list[KnownBug]:
    """The bugs with the symptom of a failure whose case was not reduced."""
    return [one for one in bugs if same_symptom(raw.fields, one.fields)]


def underlying_bug(raw: Signature, traits: Traits, bugs: Iterable[KnownBug]) -> str:
    """The key of the bug that is behind a failure whose case was not reduced; "" if none is known to be.

    The symptom must be the bug's, and what the bug needs, operators included, must be in the case.

    traits  of the case as it is
    """
    found = (one for one in candidate_bugs(raw, bugs) if _contains_requirements(traits, one.fields))
    best = min(found, key=_sort_key, default=None)
    return best.key if best else ""


def same_symptom(fields: dict[str, Any], small: dict[str, Any]) -> bool:
    """Whether what a reduced case shows, in the signature `small`, is what the signature `fields` tells of.

    Where outputs are wrong in several ways, one that shows some of them is enough, as it is to a reduction.
    """
    mine, other = _symptom(fields), _symptom(small)
    if fields["verdict"] == Verdict.WRONG_RESULT.value:
        ways, shown = (set(str(one.pop("complaint")).split(", ")) for one in (mine, other))
        return mine == other and shown <= ways
    return mine == other


def _symptom(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in _REDUCTION_FIELDS}


def _contains_requirements(traits: Traits, fields: dict[str, Any]) -> bool:
    """Whether a case has what a reduced signature names: the operators of its pattern, and what those need.

    Types and shapes are told of a program's inputs. Those of a reduced case may have been inside the program,
    so that they say nothing here.
    """
    if "needs" not in fields:
        return False
    operators = pattern_operators(str(fields["operator"]))
    needs = {need for need in fields["needs"] if need.replace(".", " ").split()[0] in operators}
    return set(operators) <= set(traits.operators) and needs <= set(traits.needs)


def pattern_operators(pattern: str) -> list[str]:
    """The operators that a pattern names: `Reshape(Transpose); Abs` → Reshape, Transpose, Abs.

    What was too long to be told stands there as a digest, which is no operator's name and matches none. The
    bodies of an operator stand in brackets, with bars between them.
    """
    for mark in "()[],;|":
        pattern = pattern.replace(mark, " ")
    return pattern.split()
