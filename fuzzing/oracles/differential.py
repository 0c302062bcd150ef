"""The differential oracle: which compiler disagrees with all others on one case. Pure.

Independent implementations seldom have the same error: if all but one agree, that one is the suspect. The
library counts as one of them. Agreement is that of profile `without-float64` with the first member of a
group, in the order given, so that groups are deterministic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fuzzing.cases import Tensor, Tolerance, Value
from fuzzing.cases.case import Comparison
from fuzzing.cases.values import STRING
from fuzzing.oracles.element_types import decode
from fuzzing.oracles.output_comparison import Outputs, compare, match_outputs, split_sequences
from fuzzing.oracles.tolerance_profiles import WITHOUT_FLOAT64

_ENOUGH = 2  # implementations that must agree against one


@dataclass(frozen=True)
class Row:
    """One backend's row in the table.

    to_reference, to_float64  largest distance of any element; None if there is nothing to measure: no such
             outputs, another shape or type, or NaN or infinity on one side only
    group    backends with the same number agree, those in group 0 with the library; None without outputs
    outlier  whether all others with outputs, and the library, agree with one another and not with this; they
             are at least two
    """

    to_reference: float | None
    to_float64: float | None
    group: int | None
    outlier: bool


def differential(
    outputs: Mapping[str, Outputs | None],
    reference: Outputs,
    float64: Outputs | None = None,
    *,
    tolerance: Tolerance | None = None,
    comparison: Comparison = "values",
) -> dict[str, Row]:
    """The row of each label; `outputs` holds None for a backend without outputs."""
    aligned = {
        label: None if given is None else _aligned(reference, given) for label, given in outputs.items()
    }
    groups = _groups(reference, aligned, tolerance, comparison)
    outlier = _find_outlier(groups)
    return {
        label: Row(
            to_reference=_distance(reference, given, reference),
            to_float64=None if float64 is None else _distance(reference, given, float64),
            group=groups.get(label),
            outlier=label == outlier,
        )
        for label, given in outputs.items()
    }


def _aligned(reference: Outputs, given: Outputs) -> Outputs:
    """The outputs under the reference's names, as some compilers rename theirs."""
    found = zip(reference, match_outputs(reference, given), strict=True)
    return tuple((name, value) for (name, _), value in found if value is not None)


def _groups(
    reference: Outputs,
    aligned: Mapping[str, Outputs | None],
    tolerance: Tolerance | None,
    comparison: Comparison,
) -> dict[str, int]:
    leaders = [reference]
    groups: dict[str, int] = {}
    for label, given in aligned.items():
        if given is None:
            continue
        for number, leader in enumerate(leaders):
            if _agree(leader, given, tolerance, comparison):
                groups[label] = number
                break
        else:
            groups[label] = len(leaders)
            leaders.append(given)
    return groups


def _agree(one: Outputs, other: Outputs, tolerance: Tolerance | None, comparison: Comparison) -> bool:
    return len(one) == len(other) and not compare(
        one, other, tolerance=tolerance, comparison=comparison, profile=WITHOUT_FLOAT64
    )


def _find_outlier(groups: Mapping[str, int]) -> str | None:
    """The one label that is alone in its group while all others share one."""
    members: dict[int, list[str]] = {0: [""]}  # the library
    for label, group in groups.items():
        members.setdefault(group, []).append(label)
    by_size = sorted(members.values(), key=len)
    if len(by_size) == 1:
        return None
    smallest, *others = by_size
    if len(others) > 1:
        return None
    [largest_group] = others
    return smallest[0] or None if len(smallest) == 1 and len(largest_group) >= _ENOUGH else None


def _distance(reference: Outputs, given: Outputs | None, target: Outputs) -> float | None:
    """The largest |difference| between `given` and `target` over the outputs that `reference` names."""
    if given is None:
        return None
    largest = 0.0
    for (name, want), mine, theirs in zip(
        reference, match_outputs(reference, given), match_outputs(reference, target), strict=True
    ):
        theirs_by_part = {part: value for part, value, _ in split_sequences(name, theirs, want)}
        for part, value, _ in split_sequences(name, mine, want):
            distance = _between(value, theirs_by_part.get(part))
            if distance is None:
                return None
            largest = max(largest, distance)
    return largest


def _between(one: Value | None, other: Value | None) -> float | None:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return 0.0 if one is not None and one == other else None
    if one.shape != other.shape or STRING in (one.dtype, other.dtype):
        return 0.0 if one == other else None
    mine, theirs = decode(one.dtype, one.array()), decode(other.dtype, other.array())
    wide = np.complex128 if "c" in (mine.dtype.kind, theirs.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        gap = np.abs(mine.astype(wide) - theirs.astype(wide))
        same = (mine == theirs) | (np.isnan(mine.astype(wide)) & np.isnan(theirs.astype(wide)))
        largest = float(np.where(same, 0.0, gap).max(initial=0.0))
    return largest if np.isfinite(largest) else None
