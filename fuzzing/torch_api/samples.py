"""Shared by the sources that read torch's own databases: fixed seeds, and observation of calls."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import random
import types
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from fuzzing.backends.base import Named
from fuzzing.backends.shared.torch_programs import build, named_outputs, reseed
from fuzzing.cases import TestCase
from fuzzing.errors import InfrastructureError

#: From which torch's, numpy's and Python's generators draw the samples of one operator.
SEED = 0
#: Modules of torch.testing._internal that look for the test which asks for samples.
_LOOKING = ("common_utils", "opinfo.core")


@dataclass(frozen=True)
class BrokenSample:
    """Stands for the sample at which the library's own generator failed; none follows."""

    error: str


def load_table(source: str, module: str, name: str) -> list[Any]:
    """A table of torch's own tests, `name` of `torch.testing._internal.MODULE`, that `source` reads.

    Raises InfrastructureError where torch, or what its tests need, is not installed.
    """
    try:
        return list(getattr(importlib.import_module(f"torch.testing._internal.{module}"), name))
    except ImportError as error:
        raise InfrastructureError(
            f"{source} needs torch and what its tests import: pip install torch expecttest numpy ({error})"
        ) from error


def enumerate_samples(samples: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    """Each sample with its index; a BrokenSample last if the library cannot make the next."""
    place = 0
    while True:
        try:
            sample = next(samples)
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001 - the library's code, which may raise anything
            yield place, BrokenSample(repr(error)[:300])
            return
        yield place, sample
        place += 1


def seed_samples(samples: Callable[[], Iterator[Any]]) -> Generator[Any]:
    """The samples, drawn from SEED: two processes get the same bytes."""
    import numpy as np
    import torch

    torch.default_generator.manual_seed(SEED)
    np.random.seed(SEED)
    random.seed(SEED)
    with warnings.catch_warnings(), _seeding_cpu_only(), _without_test_lookup(), _ordered_products():
        warnings.simplefilter("ignore")
        yield from samples()


@contextlib.contextmanager
def _seeding_cpu_only() -> Iterator[None]:
    """Restricts `torch.manual_seed` to the CPU.

    torch's databases call it around each sample, and it formats a traceback for every unused kind of device:
    a third of a migration's time.
    """
    import torch

    original = torch.manual_seed
    torch.manual_seed = torch.default_generator.manual_seed
    try:
        yield
    finally:
        torch.manual_seed = original


@contextlib.contextmanager
def _without_test_lookup() -> Iterator[None]:
    """Keeps torch's databases from looking for a test in the source of each frame of the stack.

    There is none here, and looking takes 0.9 ms for an operator, making its samples 0.8 ms.
    """
    modules: list[Any] = [importlib.import_module(f"torch.testing._internal.{name}") for name in _LOOKING]
    originals = [(module, module.extract_test_fn) for module in modules if hasattr(module, "extract_test_fn")]
    for module, _ in originals:
        module.extract_test_fn = lambda: None
    try:
        yield
    finally:
        for module, original in originals:
            module.extract_test_fn = original


@contextlib.contextmanager
def _ordered_products() -> Iterator[None]:
    """Sorts sets that torch's databases give to `itertools.product`.

    The samples of meshgrid take theirs from a set of texts (torch 2.13), whose order differs from process to
    process, and with it the values that each sample draws.
    """
    module: Any = importlib.import_module("torch.testing._internal.common_methods_invocations")
    original = module.itertools

    def product(*given: Any, repeat: int = 1) -> Iterator[tuple[Any, ...]]:
        ordered = (sorted(one) if isinstance(one, (set, frozenset)) else one for one in given)
        return itertools.product(*ordered, repeat=repeat)

    module.itertools = types.SimpleNamespace(**{**vars(itertools), "product": product})
    try:
        yield
    finally:
        module.itertools = original


@dataclass(frozen=True)
class Observed:
    """The result of a call.

    random  it drew from torch's generator
    """

    outputs: Named
    random: bool


def observe(call: Callable[[], Any]) -> Observed:
    """Runs a call, without gradients, from the generator's standard state."""
    import torch

    reseed()
    before = torch.default_generator.get_state()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = named_outputs(call())
    return Observed(outputs, not torch.equal(before, torch.default_generator.get_state()))


def observe_case(case: TestCase) -> Observed:
    """Builds and runs the case as a judge does. Raises what its program raises."""
    built = build(case.program)
    arguments = built.arrange(list(case.values()))
    return observe(lambda: built.module(*arguments))
