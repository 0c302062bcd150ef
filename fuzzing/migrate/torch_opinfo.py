"""torch's own database of operators: each sample of each OpInfo becomes a TorchCall.

`torch.testing._internal.common_methods_invocations.op_db` is what torch's own tests run over. Taken are
all samples in float32, or, for operators without it, in the first integer, bool or other type they have;
and one sample in each of FURTHER. Samples draw from torch's, numpy's and Python's generators, seeded anew
for each operator and type, so that two processes get the same bytes.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from typing import Any

import numpy as np

from fuzzing.backends._torch import build, named_outputs, reseed
from fuzzing.backends.base import Named, Unsupported
from fuzzing.cases import Argument, Provenance, Tensor, TestCase, TorchCall, Value
from fuzzing.cases.values import RAW_DTYPES
from fuzzing.errors import CaseFormatError, InfrastructureError
from fuzzing.migrate.sources import Skip, register_source

NAME = "torch-opinfo"
LIBRARY = "torch"
#: Types of which one sample each is taken beside float32: those that compilers most often treat apart.
FURTHER = ("bfloat16", "int64", "complex64", "bool")
_FIRST = ("float32", "int64", "int32", "uint8", "bool", "complex64", "float16", "float64", "float8_e4m3fn")
_SEED = 0


@register_source(NAME, library=LIBRARY)
def migrate() -> Iterator[TestCase | Skip]:
    """Every sample of every operator of the installed torch, in its order."""
    import torch

    entries = database()
    torch.set_num_threads(1)  # on a busy machine, threads that wait for one another cost twenty times more
    seen: dict[str, int] = {}
    for entry in entries:
        yield from operator_cases(entry, _unique_name(entry, seen))


def database() -> list[Any]:
    """All OpInfos. Raises InfrastructureError where torch, or what its tests need, is not installed."""
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise InfrastructureError(
            f"{NAME} needs torch and what its tests import: pip install torch expecttest numpy ({error})"
        ) from error
    return list(op_db)


def _unique_name(entry: Any, seen: dict[str, int]) -> str:
    """The operator's name with its variant's; the database has a few twice, for real and complex types."""
    name = f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}.{seen[name]}"


def operator_cases(entry: Any, name: str) -> Iterator[TestCase | Skip]:
    """The cases of one OpInfo, which is called `name`."""
    told = _Operator(entry)
    types = [str(dtype).removeprefix("torch.") for dtype in entry.supported_dtypes("cpu")]
    first = next((dtype for dtype in _FIRST if dtype in types), None)
    if first is None:
        yield Skip(name, "the operator supports no type on the CPU")
        return
    yield from _typed_cases(told, name, first, None)
    for dtype in FURTHER:
        if dtype in types and dtype != first:
            yield from _typed_cases(told, name, dtype, 1)


def _typed_cases(operator: _Operator, name: str, dtype: str, count: int | None) -> Iterator[TestCase | Skip]:
    place = -1
    try:
        for place, sample in enumerate(islice(samples(operator.entry, dtype), count)):
            yield operator.case(sample, f"{name}/{dtype}/{place}")
    except Exception as error:  # noqa: BLE001 - a generator of torch's tests, of which some fail by themselves
        yield Skip(f"{name}/{dtype}/{place + 1}", "the library cannot make its sample", repr(error)[:300])


def samples(entry: Any, dtype: str) -> Iterator[Any]:
    """The SampleInputs of an OpInfo on the CPU, drawn from fixed seeds."""
    import torch

    torch.manual_seed(_SEED)
    np.random.seed(_SEED)
    random.seed(_SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from entry.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)


class _Operator:
    """One OpInfo, with the name by which its function is found in torch."""

    def __init__(self, entry: Any) -> None:
        self.entry = entry
        self._release = version(LIBRARY)
        self._tellings: list[Telling] = list(tellings(entry))

    def case(self, sample: Any, test: str) -> TestCase | Skip:
        """One sample as a case, or why it is none."""
        from fuzzing.migrate.torch_arguments import CannotTellError, Teller

        teller = Teller()
        try:
            args = teller.args((sample.input, *sample.args))  # before the call, which may write to them
            kwargs = teller.kwargs(sample.kwargs)
        except CannotTellError as error:
            return Skip(test, str(error), error.detail)
        try:
            wanted = observe(lambda: self.entry.op(sample.input, *sample.args, **sample.kwargs))
        except Unsupported as error:
            return Skip(test, "an output has no form in a case", str(error))
        except Exception as error:  # noqa: BLE001 - whatever torch raises, on a sample of its own
            return Skip(test, "the library itself fails on its sample", repr(error)[:300])
        for telling in list(self._tellings):
            case = TestCase(
                program=TorchCall(telling.api, telling.arrange(args), kwargs),
                inputs=tuple(teller.inputs.items()),
                provenance=Provenance(NAME, test, self.entry.name, LIBRARY, self._release, _SEED),
                comparison="shapes" if wanted.random or self.entry.has_nondeterministic_output else "values",
            )
            if agrees(case, wanted):
                self._tellings.remove(telling)
                self._tellings.insert(0, telling)  # the next sample tries first what has held
                return case
        return Skip(test, "no public call gives what its sample gave", f"{self.entry.op}")


@dataclass(frozen=True)
class Telling:
    """A way to tell an operator's call.

    api       the name in torch
    reversed  for a wrapper that hands its two arguments on the other way round
    """

    api: str
    reversed: bool = False

    def arrange(self, args: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """The sample's arguments in the order in which the API takes them."""
        return args[::-1] if self.reversed else args


def tellings(entry: Any) -> Iterator[Telling]:
    """The names that an operator's function may have. Guesses, each checked by running."""
    from fuzzing.migrate.torch_arguments import resolve

    name = entry.name.removeprefix("torch.")
    names = [f"torch.{name}", f"torch.Tensor.{name}"]
    for api in names:
        if resolve(api) is entry.op:
            yield Telling(api)
            return
    operator = str(entry.op)  # of an aten operator its own dotted name
    names += [f"torch.Tensor.{name}_", f"torch.ops.aten.{name}", f"torch.ops.{operator}"]
    for api in names:
        try:
            TorchCall(api)
        except CaseFormatError:
            continue
        if resolve(api) is not None:
            yield Telling(api)
            yield Telling(api, reversed=True)


@dataclass
class Observed:
    """What a call gave.

    random   it drew random numbers, or read memory that nobody wrote
    """

    outputs: Named
    random: bool


def observe(call: Callable[[], Any]) -> Observed:
    """Runs a call with the generators where every run starts, watching what it draws from."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    drawn: list[bool] = []

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            drawn.append(torch.Tag.nondeterministic_seeded in func.tags)
            return func(*args, **(kwargs or {}))

    reseed()
    with torch.no_grad(), Watch(), warnings.catch_warnings():  # type: ignore[no-untyped-call]
        warnings.simplefilter("ignore")
        outputs = named_outputs(call())
    return Observed(outputs, any(drawn))


def agrees(case: TestCase, wanted: Observed) -> bool:
    """Whether the case, built and run, gives what the sample gave: to rounding, or in shape if it draws."""
    try:
        outputs = build(case.program).run(list(case.values()))
    except Exception:  # noqa: BLE001 - a wrong guess may raise anything
        return False
    if [name for name, _ in outputs] != [name for name, _ in wanted.outputs]:
        return False
    exactly = case.comparison == "values"
    return all(alike(got, want, exactly) for (_, got), (_, want) in zip(outputs, wanted.outputs, strict=True))


def alike(got: Value, want: Value, exactly: bool) -> bool:
    """Whether two outputs agree: types and shapes, and to rounding the values."""
    if not isinstance(got, Tensor) or not isinstance(want, Tensor):
        return got == want
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    if not exactly or got.data == want.data:
        return True
    if got.dtype in RAW_DTYPES or got.array().dtype.kind not in "fc":
        return False
    return bool(np.allclose(got.array(), want.array(), rtol=1e-5, atol=1e-6, equal_nan=True))
