"""The float64 check: whether a compiled program is worse than the library itself.

Two correct implementations of one program differ by rounding, by an amount that depends on the program. So an
output outside the tolerance of profile `default` is rechecked: the library runs the program again, in float64
and on inputs moved by a rounding, which measures how far rounding can move each element. Pure: the runs are
made by `fuzzing.execute.recheck`.

The measure. One unit, for each element, is one rounding of the output's type (IEEE 754's u times the float64
result) plus the effect of moving the inputs by a rounding. The compiled program is as good as the library if
it is at most

    ROUNDINGS + factor · (the library's own largest error in units)

units off the float64 result. Where terms cancel, ROUNDINGS of the largest element are allowed in addition.
The largest error of the elements counts. torch._dynamo.utils.same takes the root mean square for whole
models, where one wrong element among a million vanishes; a wrong index or border looks like that. The factors
are that function's and allow for chance: the maximum over few elements is less reliable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from fuzzing.cases import OnnxModel, Tensor, TestCase, Value
from fuzzing.oracles.decision import Decision, decide_wrong_result
from fuzzing.oracles.element_types import ROUNDING, decode
from fuzzing.oracles.mismatches import OutputPair, mismatch
from fuzzing.oracles.output_comparison import (
    Outputs,
    bounds_for,
    compare,
    elements_within,
    match_outputs,
    split_sequences,
)
from fuzzing.oracles.tolerance_profiles import DEFAULT, WITHOUT_FLOAT64, Bounds
from fuzzing.outcomes import Mismatch, Outcome, Phase, Verdict

Array = np.ndarray[Any, Any]

#: Messages of a check of the divisor: onnxruntime's, when it runs, and of TVM's importer, for a constant.
_DIVISION_BY_ZERO = re.compile(
    r"integer division by zero|Div with integer inputs encountered divisor value 0", re.IGNORECASE
)

#: Units always allowed. The default tolerance of float32 allows 22 roundings of a result (1.3e-6 / 2**-24);
#: this is the next power of two. The half types are computed in float32 and rounded at the edges of
#: operators, and their tolerance allows 2 to 4.
ROUNDINGS = 32
_HALF_ROUNDINGS = 8
#: A sum of n equal terms, one after the other, may round in one direction at each step, by half a unit of the
#: partial sum: up to n / 4 roundings of the result; Higham (4.2) has n as the bound. Moved inputs do not
#: show it.
_TERMS = 4
#: If moving the inputs by a rounding moves any element by more than this many of its own roundings, terms
#: cancel in the program. Algorithms for such sums (a fast Fourier transform, Winograd's convolution) keep the
#: error small relative to the largest element, not to each (Higham, chapters 23 and 24).
_CANCELS = 8
#: A library that is off by more roundings of the largest element than this computes in a narrower type: a
#: program of float64 that casts to float32 inside is off by 2**29, and the compiler may be by as much as in
#: float32. Sums of thousands of numbers are off by tens.
_NARROW = 2.0**10
#: The largest numbers of the types that wider ones are computed in (IEEE 754; bfloat16 has 8 bits).
_LARGEST = {"float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127, "float32": (2 - 2.0**-23) * 2.0**127}
_HALVES = frozenset({"float16", "bfloat16"})
#: Library and test disagree, so a compiler that agrees with either has no failure.
_LIBRARY_DISAGREES = "the library does not give what its test expects"

#: (elements up to, factor): get_multiplier in torch._dynamo.utils.same, torch 2.13, as PyTorch's own
#: accuracy checks call it, with use_larger_multiplier_for_smaller_tensor.
_SMALL = ((10, 10.0), (500, 8.0), (999, 3.0))
_FACTOR, _HALF_FACTOR = 2.0, 3.0


def error_factor(dtype: str, size: int) -> float:
    """The multiple of the library's own error allowed in an output of `size` elements."""
    for most, times in _SMALL:
        if size <= most:
            return times
    return _HALF_FACTOR if dtype in _HALVES else _FACTOR


@dataclass(frozen=True)
class ReferenceRuns:
    """Further runs of a case by the library. Outputs by name, in its own order.

    runs      unchanged, in different processes with different bytes in fresh memory
    float64   with every narrower float widened; None if that is not possible, with the reason in `problem`
    perturbed_equally  float64, inputs moved by at most a rounding, equal numbers by the same amount
    perturbed_independently  the same, each element by its own amount, so that ties break; one run has all
              moves reversed
    moved_constants  as `perturbed_equally`, with float constants of the model moved in place of inputs; only
              measures how far numbers move
    refilled  as `float64`, with another number wherever the standard leaves a result open
    """

    runs: tuple[Outputs, ...] = ()
    float64: Outputs | None = None
    perturbed_equally: tuple[Outputs, ...] = ()
    perturbed_independently: tuple[Outputs, ...] = ()
    moved_constants: tuple[Outputs, ...] = ()
    refilled: Outputs | None = None
    problem: str = ""


def needs_recheck(outcome: Outcome, profile: str) -> bool:
    """Whether reference runs are needed: numbers or shapes differ, or the program was `is_integer_trap`.

    For a pair also where types differ: the library's own types say which side is off. Under the default
    profile only.
    """
    if profile != DEFAULT:
        return False
    mismatches = outcome.evidence.mismatches
    differs = outcome.verdict is Verdict.WRONG_RESULT
    return is_integer_trap(outcome) or (
        differs
        and all(
            item.kind in ("value", "shape") or (item.kind == "type" and item.judged) for item in mismatches
        )
    )


def is_integer_trap(outcome: Outcome) -> bool:
    """Whether an integer division ended the program, by 0 or of the least integer by -1.

    The processor traps it during the run, or a check raises, possibly while folding constants.
    """
    if outcome.verdict is not Verdict.CRASH:
        return False
    died = outcome.phase is Phase.RUN and outcome.evidence.signal == "SIGFPE"
    return died or _DIVISION_BY_ZERO.search(outcome.evidence.message) is not None


def decide_trap(reference_runs: ReferenceRuns) -> Decision | None:
    """The decision on an `is_integer_trap` outcome; None if the program itself has no such division."""
    one, other = reference_runs.float64, reference_runs.refilled
    if one is None or other is None or one == other:
        return None
    return Decision(
        Verdict.UNSUPPORTED,
        "the program's own results are left open, and it ended over them: a division of integers by 0, or "
        "of the least by -1",
    )


def decide_outputs(
    case: TestCase,
    outputs: Outputs,
    reference_runs: ReferenceRuns,
    computed_in: Mapping[str, str] = MappingProxyType({}),
) -> Decision:
    """The decision on a compiled program's outputs; `case` must have its reference.

    computed_in  see `fuzzing.backends.base.Backend`
    """
    assert case.expected is not None
    nondeterminism = _find_nondeterminism(case, reference_runs.runs)
    if nondeterminism:
        return Decision(
            Verdict.NONDETERMINISTIC,
            f"the library itself gives two results: output {nondeterminism[0].output}: "
            f"{nondeterminism[0].detail}",
            nondeterminism,
        )
    problem = float64_problem(case, reference_runs)
    if not problem:
        return _decide_with_float64(case, case.expected, outputs, reference_runs, computed_in)
    if problem == _LIBRARY_DISAGREES and not _differences(case, reference_runs.runs[0], outputs, computed_in):
        excused = _differences(case, case.expected, outputs, computed_in)
        return Decision(Verdict.PASS, f"as the library gives it; {problem}", excused=excused)
    return _decide_without_float64(case, outputs, problem, computed_in)


def _find_nondeterminism(case: TestCase, runs: tuple[Outputs, ...]) -> tuple[Mismatch, ...]:
    """Differences between the library's own runs beyond the tolerance; () if there are none."""
    for other in runs[1:]:
        found = compare(runs[0], other, comparison=case.comparison)
        if found:
            return found
    return ()


def float64_problem(case: TestCase, reference_runs: ReferenceRuns) -> str:
    """Why no float64 run can be used; "" if one can."""
    if reference_runs.float64 is None or not reference_runs.runs:
        return reference_runs.problem or "no float64 run"
    assert case.expected is not None
    tolerance, comparison = case.tolerance, case.comparison
    if compare(case.expected, reference_runs.runs[0], tolerance=tolerance, comparison=comparison):
        return _LIBRARY_DISAGREES
    return ""


def _differences(
    case: TestCase, want: Outputs, outputs: Outputs, computed_in: Mapping[str, str]
) -> tuple[Mismatch, ...]:
    """How outputs differ from the expected ones, without knowledge of rounding."""
    return compare(
        want,
        outputs,
        tolerance=case.tolerance,
        comparison=case.comparison,
        profile=WITHOUT_FLOAT64,
        computed_in=computed_in,
    )


def _decide_without_float64(
    case: TestCase, outputs: Outputs, problem: str, computed_in: Mapping[str, str]
) -> Decision:
    assert case.expected is not None
    found = _differences(case, case.expected, outputs, computed_in)
    if found:
        return decide_wrong_result(found)
    return Decision(Verdict.PASS, f"no further off than rounding of the largest element ({problem})")


@dataclass
class _Tally:
    """Elements that differ without being errors, by reason; `excused`: outputs with some not compared."""

    rounding: int = 0
    undecided: int = 0
    left_open: int = 0
    excused: list[Mismatch] = field(default_factory=list)

    def __str__(self) -> str:
        reasons = (
            (self.rounding, "no further off float64 than the library"),
            (self.undecided, "not compared: rounding decides them"),
            (self.left_open, "not compared: the standard leaves them open"),
        )
        reasons_text = [f"{count} {why}" for count, why in reasons if count]
        return "; ".join(reasons_text) or "shapes not compared: rounding decides them"


def _decide_with_float64(
    case: TestCase,
    expected: Outputs,
    outputs: Outputs,
    reference_runs: ReferenceRuns,
    computed_in: Mapping[str, str],
) -> Decision:
    assert reference_runs.float64 is not None
    runs_by_part = _RunsByPart(expected, reference_runs)
    tally = _Tally()
    found: list[Mismatch] = []
    for (name, want), got in zip(expected, match_outputs(expected, outputs), strict=True):
        for part, mine, reference in split_sequences(name, got, want):
            for first in compare(
                ((part, reference),),
                () if mine is None else ((part, mine),),
                tolerance=case.tolerance,
                comparison=case.comparison,
                computed_in=computed_in,
            ):
                views = runs_by_part.of(part)
                found.extend(_check_part(first, mine, reference, views, case, computed_in, tally))
    if found:
        return decide_wrong_result(tuple(found))
    return Decision(Verdict.PASS, f"as good as the library: {tally}", excused=tuple(tally.excused))


@dataclass(frozen=True)
class _PartViews:
    """One part of the outputs of each reference run; None if a run lacks it."""

    library: Value | None
    float64: Value | None
    perturbed_equally: tuple[Value | None, ...]
    perturbed_independently: tuple[Value | None, ...]
    moved_constants: tuple[Value | None, ...]
    refilled: Value | None

    def all(self) -> tuple[Value | None, ...]:
        refilled = () if self.refilled is None else (self.refilled,)
        return (
            self.library,
            self.float64,
            *self.perturbed_equally,
            *self.perturbed_independently,
            *refilled,
        )

    def of_shape(self, shape: tuple[int, ...]) -> _PartViews:
        """Without the perturbed runs of another shape, where a size changed: they cannot be compared."""
        perturbed_equally, perturbed_independently, moved_constants = (
            tuple(run for run in runs if _shape(run) == shape)
            for runs in (self.perturbed_equally, self.perturbed_independently, self.moved_constants)
        )
        return replace(
            self,
            perturbed_equally=perturbed_equally,
            perturbed_independently=perturbed_independently,
            moved_constants=moved_constants,
        )


class _RunsByPart:
    """The outputs of the reference runs, by the names of their parts."""

    def __init__(self, expected: Outputs, reference_runs: ReferenceRuns) -> None:
        def by_part(outputs: Outputs | None) -> dict[str, Value | None]:
            pairs = zip(expected, match_outputs(expected, outputs or ()), strict=True)
            return {
                part: mine
                for (name, want), got in pairs
                for part, mine, _ in split_sequences(name, got, want)
            }

        self._library = by_part(reference_runs.runs[0])
        self._float64 = by_part(reference_runs.float64)
        self._equally = [by_part(run) for run in reference_runs.perturbed_equally]
        self._independently = [by_part(run) for run in reference_runs.perturbed_independently]
        self._moved = [by_part(run) for run in reference_runs.moved_constants]
        self._refilled = by_part(reference_runs.refilled)

    def of(self, part: str) -> _PartViews:
        return _PartViews(
            self._library.get(part),
            self._float64.get(part),
            tuple(run.get(part) for run in self._equally),
            tuple(run.get(part) for run in self._independently),
            tuple(run.get(part) for run in self._moved),
            self._refilled.get(part),
        )


def _check_part(
    first: Mismatch,
    got: Value | None,
    want: Value,
    views: _PartViews,
    case: TestCase,
    computed_in: Mapping[str, str],
    tally: _Tally,
) -> Iterator[Mismatch]:
    """The part of a mismatch that the reference runs do not explain: all, some, or None."""
    if first.kind == "shape":
        if isinstance(want, Tensor) and all(_shape(view) == want.shape for view in views.all()):
            yield first  # data-dependent shapes, such as NonZero's, are compared if all runs agree
        elif not isinstance(want, Tensor) and all(type(view) is type(want) for view in views.all()):
            yield first
        else:
            tally.excused.append(first)
        return
    if first.kind != "value" or not isinstance(got, Tensor) or not isinstance(want, Tensor):
        yield first
        return
    pair = OutputPair(first.output, got, want)
    bounds = bounds_for(want, case.tolerance, computed_in=computed_in)
    differs = ~elements_within(pair, bounds)
    if any(_shape(view) != want.shape for view in (views.library, views.float64)):
        tally.undecided += int(np.count_nonzero(differs))
        tally.excused.append(first)
    else:
        elements = _Elements(
            pair,
            bounds,
            differs,
            views.of_shape(want.shape),
            computed_in.get(want.dtype, want.dtype),
            _count_numbers(case) // max(1, differs.size),
        )
        yield from elements.remaining_mismatch(tally)


def _count_numbers(case: TestCase) -> int:
    """At most so many numbers are in the inputs and constants."""
    constants = len(case.program.model) // 4 if isinstance(case.program, OnnxModel) else 0
    return constants + sum(value.array().size for _, value in case.values() if isinstance(value, Tensor))


def _shape(value: Value | None) -> tuple[int, ...] | None:
    return value.shape if isinstance(value, Tensor) else None


@dataclass(frozen=True)
class _Elements:
    """The elements of one output that differ from the reference, before the check.

    dtype  the type that the compiler computes them in
    terms  numbers that the program is given for each of these elements
    """

    pair: OutputPair
    bounds: Bounds
    differs: Array
    views: _PartViews
    dtype: str
    terms: int

    def remaining_mismatch(self, tally: _Tally) -> Iterator[Mismatch]:
        """The mismatch that remains, if any; explained elements go into `tally`."""
        with np.errstate(all="ignore"):
            if self.pair.want.dtype in ROUNDING:
                undecided, wrong_, errors = self._floats()
            else:
                undecided, wrong_, errors = self._discrete()
        open_ = self._left_open
        tally.left_open += int(np.count_nonzero(self.differs & open_))
        tally.undecided += int(np.count_nonzero(self.differs & undecided & ~open_))
        tally.rounding += int(np.count_nonzero(self.differs & ~wrong_ & ~undecided & ~open_))
        wrong_ &= ~open_
        excused = self.differs & (open_ | undecided)
        if excused.any():
            tally.excused.append(mismatch(self.pair, excused, self.bounds))
        if wrong_.any():
            yield _with_errors(mismatch(self.pair, wrong_, self.bounds), errors)

    @cached_property
    def _left_open(self) -> Array:
        one, other = self.views.float64, self.views.refilled
        if not isinstance(one, Tensor) or not isinstance(other, Tensor) or _shape(one) != _shape(other):
            return np.zeros(self.differs.shape, bool)
        return ~OutputPair("", _like(other, one), one).same

    def _discrete(self) -> tuple[Array, Array, tuple[float | None, float | None]]:
        """Integers, bools, strings and one-byte floats: compared only where all reference runs agree.

        A comparison of equal numbers must not break ties: for bools only the runs that keep equal numbers
        equal count.
        """
        views = self.views
        compared = [views.library, views.float64, *views.perturbed_equally]
        compared += [] if self.pair.want.dtype == "bool" else views.perturbed_independently
        agreed = np.ones(self.differs.shape, bool)
        for view in compared:
            if isinstance(view, Tensor) and view.dtype == self.pair.want.dtype:
                agreed &= elements_within(OutputPair("", view, self.pair.want), self.bounds)
        return ~agreed, self.differs & agreed, (None, None)

    def _floats(self) -> tuple[Array, Array, tuple[float | None, float | None]]:
        dtype = self.dtype
        got, library, exact = self.pair.mine, _numbers(self.views.library), _numbers(self.views.float64)
        perturbed = [
            _numbers(view) for view in (*self.views.perturbed_equally, *self.views.perturbed_independently)
        ]
        agreed = _kind(library) == _kind(exact)
        for other in perturbed:
            agreed &= _kind(other) == _kind(exact)
        if dtype != self.pair.want.dtype:  # of larger numbers the narrower type makes infinity
            agreed &= ~np.isfinite(exact) | (np.abs(exact) <= _LARGEST[dtype])
        finite = agreed & np.isfinite(exact) & ~self._left_open

        rounding, least = ROUNDING[dtype]
        own = rounding * np.abs(exact) + least
        sensitivity = np.zeros(exact.shape)
        for other in (*perturbed, *map(_numbers, self.views.moved_constants)):
            sensitivity = np.fmax(sensitivity, np.abs(other - exact))
        unit = own + sensitivity
        mine, library_errors = np.abs(got - exact), np.abs(library - exact)
        usual = bounds_for(self.pair.want, None, computed_in={self.pair.want.dtype: dtype})
        roundings = _HALF_ROUNDINGS if dtype in _HALVES else max(ROUNDINGS, self.terms // _TERMS)
        counts = finite & (library_errors > usual.atol + usual.rtol * np.abs(exact))
        most = float((library_errors / unit).max(where=counts, initial=0.0))
        near = mine <= unit * (roundings + error_factor(dtype, got.size) * most)
        largest = float(np.abs(exact).max(where=finite, initial=0.0))
        off = float(library_errors.max(where=finite, initial=0.0))
        if off > _NARROW * rounding * largest:
            narrow = ROUNDINGS * ROUNDING["float32"][0] * np.abs(exact) if dtype == "float64" else 0.0
            near |= mine <= np.fmax(narrow, error_factor(dtype, got.size) * off)
        if (finite & (sensitivity > _CANCELS * own)).any():
            near |= mine <= min(roundings, ROUNDINGS) * rounding * largest
        wrong_ = self.differs & agreed & ~(near & finite)
        errors = _largest(mine, finite | wrong_), _largest(library_errors, finite)
        return ~agreed, wrong_, errors


def _largest(errors: Array, where: Array) -> float | None:
    most = float(errors.max(where=where, initial=0.0))
    return most if np.isfinite(most) else None


def _with_errors(found: Mismatch, errors: tuple[float | None, float | None]) -> Mismatch:
    mine, library_errors = errors
    if mine is None or library_errors is None:
        return found
    detail = f"{found.detail}; {mine:.3g} off a float64 run, the library {library_errors:.3g}"
    return replace(found, detail=detail, compiled_error=mine, library_error=library_errors)


def _numbers(view: Value | None) -> Array:
    assert isinstance(view, Tensor)
    array = decode(view.dtype, view.array())
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _like(other: Tensor, one: Tensor) -> Tensor:
    """`other` with the element type of `one`, which differs only if the library is inconsistent."""
    return other if other.dtype == one.dtype else replace(one)


def _kind(numbers: Array) -> Array:
    """0 for numbers, 1 and 2 for the infinities, 3 for NaN; all complex infinities are one."""
    if numbers.dtype.kind == "c":
        return np.where(np.isnan(numbers), 3, np.where(np.isinf(numbers), 1, 0))
    return np.select([np.isnan(numbers), numbers == np.inf, numbers == -np.inf], [3, 1, 2], 0)
