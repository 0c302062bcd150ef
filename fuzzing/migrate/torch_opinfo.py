"""torch's own database of operators: each sample of each OpInfo becomes a TorchCall.

`torch.testing._internal.common_methods_invocations.op_db` is what torch's own tests run over. Taken are all
samples in float32, or, for operators without it, in the first integer, bool or other type they have; and one
sample in each of FURTHER. Generators are seeded anew for each operator and type, so that two processes get
the same bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import islice
from typing import Any

import numpy as np

from fuzzing.backends.base import Named, Unsupported
from fuzzing.cases import Argument, Provenance, Tensor, TestCase, TorchCall, Value
from fuzzing.cases.values import RAW_DTYPES
from fuzzing.errors import CaseFormatError, InternalError
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.torch_api.samples import (
    SEED,
    BrokenSample,
    enumerate_samples,
    load_table,
    observe,
    observe_case,
    seed_samples,
)

NAME = "torch-opinfo"
LIBRARY = "torch"
#: Types of which one sample each is taken beside float32: those that compilers most often treat apart.
EXTRA_DTYPES = ("bfloat16", "int64", "complex64", "bool")
_DTYPE_PREFERENCE = (
    "float32",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex64",
    "float16",
    "float64",
    "float8_e4m3fn",
)


@register_source(NAME, library=LIBRARY, needs="expecttest")
def migrate(part: Selection | None = None) -> Iterator[TestCase | Skip]:
    """Every sample of every operator of the installed torch, in its order; a part has whole operators."""
    import torch

    entries = load_database()
    torch.set_num_threads(1)  # on a busy machine, threads that wait for one another cost twenty times more
    seen: dict[str, int] = {}
    for entry in entries:
        name = _unique_name(entry, seen)
        if part is None or part.contains(name):
            yield from operator_cases(entry, name)


def load_database() -> list[Any]:
    """All OpInfos; raises as `load_table`."""
    return load_table(NAME, "common_methods_invocations", "op_db")


def _unique_name(entry: Any, seen: dict[str, int]) -> str:
    """The operator's name with its variant's; the database has a few twice, for real and complex types."""
    name = f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}.{seen[name]}"


def operator_cases(entry: Any, name: str) -> Iterator[TestCase | Skip]:
    """The cases of one OpInfo, named `name`."""
    operator = _Operator(entry)
    types = [str(dtype).removeprefix("torch.") for dtype in entry.supported_dtypes("cpu")]
    first = next((dtype for dtype in _DTYPE_PREFERENCE if dtype in types), None)
    if first is None:
        yield Skip(name, "the operator supports no type on the CPU")
        return
    yield from _typed_cases(operator, name, first, None)
    for dtype in EXTRA_DTYPES:
        if dtype in types and dtype != first:
            yield from _typed_cases(operator, name, dtype, 1)


def _typed_cases(operator: _Operator, name: str, dtype: str, count: int | None) -> Iterator[TestCase | Skip]:
    for place, sample in islice(enumerate_samples(samples(operator.entry, dtype)), count):
        yield operator.case(sample, f"{name}/{dtype}/{place}")


def samples(entry: Any, dtype: str) -> Iterator[Any]:
    """The SampleInputs of an OpInfo on the CPU, drawn from fixed seeds."""
    import torch

    return seed_samples(lambda: entry.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False))


@functools.cache
def _torch_version() -> str:
    return version(LIBRARY)  # which reads and parses a file


class _Operator:
    """One OpInfo, with its function's name in torch."""

    def __init__(self, entry: Any) -> None:
        self.entry = entry
        self._torch_version = _torch_version()
        self._call_forms: list[CallForm] = list(candidate_call_forms(entry))

    def case(self, sample: Any, test: str) -> TestCase | Skip:
        """One sample as a case, or why it is none."""
        from fuzzing.torch_api.serializer import NotSerializableError, Serializer

        if isinstance(sample, BrokenSample):
            return Skip(test, "the library cannot make its sample", sample.error)
        serializer = Serializer()
        try:
            args = serializer.args((sample.input, *sample.args))  # before the call, which may write to them
            kwargs = serializer.kwargs(sample.kwargs)
        except NotSerializableError as error:
            return Skip(test, str(error), error.detail)
        try:
            wanted = observe(lambda: self.entry.op(sample.input, *sample.args, **sample.kwargs))
        except Unsupported as error:
            return Skip(test, "an output has no form in a case", str(error))
        except Exception as error:  # noqa: BLE001 - whatever torch raises, on a sample of its own
            return Skip(test, "the library itself fails on its sample", repr(error)[:300])
        for call_form in self._call_forms:
            case = TestCase(
                program=TorchCall(call_form.api, call_form.arrange(args), kwargs),
                inputs=tuple(serializer.inputs.items()),
                provenance=Provenance(NAME, test, self.entry.name, LIBRARY, self._torch_version, SEED),
            )
            if (checked := self._checked(case, wanted.outputs)) is not None:
                self._call_forms.sort(key=lambda other: other != call_form)  # what has held is tried first
                return checked
        return Skip(test, "no serialized call gives what its sample gave", f"{self.entry.op}")

    def _checked(self, case: TestCase, wanted: Named) -> TestCase | None:
        """The case, with its comparison, if its result equals the sample's.

        To rounding; in types and shapes for random or uninitialized results: OpInfo seeds its random
        operators in its own way, and marks the others.
        """
        try:
            found = observe_case(case)
        except InternalError:
            raise
        except Exception:  # noqa: BLE001 - a wrong guess may raise anything
            return None
        exactly = not found.random and not self.entry.has_nondeterministic_output
        if not outputs_match(found.outputs, wanted, exactly):
            return None
        return replace(case, comparison="values" if exactly else "shapes")


@dataclass(frozen=True)
class CallForm:
    """A way to spell an operator's call.

    api       the name in torch
    reversed  for a wrapper that swaps its two arguments
    """

    api: str
    reversed: bool = False

    def arrange(self, args: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """The sample's arguments in the order of the API."""
        return args[::-1] if self.reversed else args


def candidate_call_forms(entry: Any) -> Iterator[CallForm]:
    """The possible names of an operator's function, each checked by running."""
    from fuzzing.torch_api.serializer import resolve

    name = entry.name.removeprefix("torch.")
    names = [f"torch.{name}", f"torch.Tensor.{name}"]
    for api in names:
        if resolve(api) is entry.op:
            yield CallForm(api)
            return
    operator = str(entry.op)  # of an aten operator its own dotted name
    names += [f"torch.Tensor.{name}_", f"torch.ops.aten.{name}", f"torch.ops.{operator}"]
    for api in names:
        try:
            TorchCall(api)
        except CaseFormatError:
            continue
        if resolve(api) is not None:
            yield CallForm(api)
            yield CallForm(api, reversed=True)


def outputs_match(found: Named, wanted: Named, exactly: bool) -> bool:
    """Whether two runs gave the same outputs."""
    if [name for name, _ in found] != [name for name, _ in wanted]:
        return False
    return all(values_match(got, want, exactly) for (_, got), (_, want) in zip(found, wanted, strict=True))


def values_match(got: Value, want: Value, exactly: bool) -> bool:
    """Whether two outputs agree: types and shapes, and values to rounding."""
    if not isinstance(got, Tensor) or not isinstance(want, Tensor):
        return got == want
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    if not exactly or got.data == want.data:
        return True
    if got.dtype in RAW_DTYPES or got.array().dtype.kind not in "fc":
        return False
    return bool(np.allclose(got.array(), want.array(), rtol=1e-5, atol=1e-6, equal_nan=True))
