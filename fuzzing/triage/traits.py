"""Traits: what identifies the bug of a reduced case besides the symptom.

A reduction leaves two kinds of thing. Operators and how they are connected it takes away reliably: what is
left of them is the bug's, and two bugs with different *patterns* are two. Attributes, ranks and lengths it
takes away one at a time, and ends where two would have to go together (a convolution's `group` and its
channels): those are *needs*, of which some may be the case's and not the bug's. So of two cases that are
alike otherwise, the one with fewer needs explains the other: where it fails, the other must fail too.

A kind of program registers how its traits are read: one file in `fuzzing.triage.trait_readers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fuzzing.cases import Recipe, Tensor, TestCase
from fuzzing.cases.case import Input
from fuzzing.cases.values import RAW_DTYPES
from fuzzing.registry import Registry


@dataclass(frozen=True)
class Traits:
    """What makes two reduced cases of one symptom the same bug.

    pattern    the operators, and which feeds which
    dtypes     classes of element types that the program is given, sorted
    needs      what else is left, sorted: attributes, optional inputs, ranks and the like
    operators  the operators or the API, sorted, each once
    root       the symptom of what is wrong upstream of what the case shows
               (`fuzzing.reduce.root_cause`), which all of the above is then about; with `operator`, `dtypes`
               and `needs` if it is a part of what the library makes of a call, and the above about the call;
               None where the case shows its bug itself
    proven     needs of attributes, and classes of inputs, that a finished reduction tried to do without, one
               at a time, and could not (`fuzzing.triage.proven_needs`); also attributes with their default
    proven_inputs  the same of optional inputs
    """

    pattern: str
    dtypes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    root: Mapping[str, Any] | None = None
    proven: tuple[str, ...] = ()
    proven_inputs: tuple[str, ...] = ()

    def unproven(self) -> Traits:
        """These traits of a case whose reduction did not end: what else it could do without is not known."""
        return replace(self, proven=(), proven_inputs=())


TraitsReader = Callable[[TestCase], Traits]
_READERS: Registry[TraitsReader] = Registry("traits reader", "fuzzing.triage.trait_readers")
#: Registers a function that reads the traits of these kinds of program.
register_traits = _READERS.register


def read_traits(case: TestCase) -> Traits:
    """The traits of a case."""
    return (_READERS.find(case.program.kind) or traits_from_provenance)(case)


def traits_from_provenance(case: TestCase) -> Traits:
    """The traits of a case whose kind has no reader: the operator of its provenance."""
    operator = case.provenance.operator
    return Traits(operator, operators=(operator,))


#: Classes of element types that are integers.
INTEGER_CLASSES = frozenset({"int", "uint"})


def dtype_class(dtype: str) -> str:
    """The class of an element type. One code serves a class, mostly; exotic types are a class each."""
    if dtype in RAW_DTYPES:
        return dtype
    for prefix in ("float", "uint", "int", "complex"):
        if dtype.startswith(prefix):
            return prefix
    return dtype


def dtypes_of(inputs: Iterable[Input]) -> tuple[str, ...]:
    """The classes of what a program is given, sorted."""
    return tuple(
        sorted({dtype_class(given.dtype) for given in inputs if isinstance(given, (Tensor, Recipe))})
    )


def shape_needs(shapes: Iterable[tuple[int, ...]]) -> set[str]:
    """What shapes there must be: a rank needs all lower ones, so that fewer dimensions are fewer needs.

    Lengths are left out: they mostly come from the seed, not from the bug.
    """
    shapes = list(shapes)
    needs = {f"rank {rank}" for rank in range(1, max(map(len, shapes), default=0) + 1)}
    return needs | ({"zero-size"} if any(0 in shape for shape in shapes) else set())
