"""Cases derived from tests, without those that ONNX forbids.

A test of ONNX's own is a case whatever it breaks. What Assay derives from it may break a rule that the test
does not: a size that was an input is a constant, and a function's body then has a vector where ONNX wants a
scalar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fuzzing.cases import TestCase
from fuzzing.migrate.sources import Skip


def leave_out_illegal(items: Iterable[TestCase | Skip]) -> Iterator[TestCase | Skip]:
    """The items, with a Skip for each case that breaks an operator's rule (`fuzzing.graph.validity`).

    That ONNX's inference gives other types is no reason: it fails on legal models too, such as its own test
    of MeanVarianceNormalization, and an STFT of constant lengths.
    """
    from fuzzing.graph.case_validity import find_case_violations

    for item in items:
        if isinstance(item, TestCase) and (found := find_case_violations(item) - {"types"}):
            broken = ", ".join(sorted(found))
            yield Skip(item.provenance.test, "the derived model breaks a rule of ONNX", broken)
        else:
            yield item
