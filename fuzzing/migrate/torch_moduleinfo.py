"""torch's own database of modules: each input of each ModuleInfo becomes a TorchCall of the module's class.

`torch.testing._internal.common_modules.module_db`, in float32 and eval mode. Parameters are drawn as every
TorchCall draws them, so what a case computes is not what torch's own test of that module computes; that the
call itself works is checked by running it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from fuzzing.backends.base import Unsupported
from fuzzing.cases import Init, Provenance, TestCase, TorchCall
from fuzzing.migrate.parts import Part
from fuzzing.migrate.recorders.torch_modules import Making
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.migrate.torch_samples import SEED, Broken, numbered, observe_case, seeded, table

NAME = "torch-moduleinfo"
LIBRARY = "torch"


@register_source(NAME, library=LIBRARY, needs="expecttest")
def migrate(part: Part | None = None) -> Iterator[TestCase | Skip]:
    """Every input of every module of the installed torch, in its order; a part has whole modules."""
    import torch

    entries = database()
    torch.set_num_threads(1)  # on a busy machine, threads that wait for one another cost twenty times more
    for entry in entries:
        if part is None or part.holds(entry.name):
            yield from module_cases(entry)


def database() -> list[Any]:
    """All ModuleInfos; raises as `table`."""
    return table(NAME, "common_modules", "module_db")


@functools.cache
def _making() -> Making:
    """How the modules that samples are made from were made themselves; begun before there are any."""
    making = Making()
    making.begin()
    return making


@functools.cache
def _release() -> str:
    return version(LIBRARY)  # which reads and parses a file


def module_cases(entry: Any) -> Iterator[TestCase | Skip]:
    """The cases of one ModuleInfo."""
    for place, sample in numbered(samples(entry)):
        yield _case(entry, sample, f"{entry.name}/float32/{place}")


def samples(entry: Any) -> Iterator[Any]:
    """The ModuleInputs of a ModuleInfo on the CPU, drawn from fixed seeds."""
    import torch

    asked = {"device": "cpu", "dtype": torch.float32, "requires_grad": False, "training": False}
    _making()
    return seeded(lambda: entry.module_inputs_func(entry, **asked))


def _case(entry: Any, sample: Any, test: str) -> TestCase | Skip:
    from fuzzing.migrate.torch_arguments import CannotTellError, InitTeller, Teller, public_name

    if isinstance(sample, Broken):
        return Skip(test, "the library cannot make its sample", sample.error)
    if sample.forward_input is None:
        return Skip(test, "the library's sample does not call the module")
    made_so = _making().given
    teller, maker = Teller(made=made_so), InitTeller(made=made_so)
    made, called = sample.constructor_input, sample.forward_input
    try:
        init = Init(maker.args(made.args), maker.kwargs(made.kwargs))
        program = TorchCall(
            public_name(entry.module_cls), teller.args(called.args), teller.kwargs(called.kwargs), init
        )
    except CannotTellError as error:
        return Skip(test, str(error), error.detail)
    provenance = Provenance(NAME, test, entry.name, LIBRARY, _release(), SEED)
    case = TestCase(program, tuple(teller.inputs.items()), provenance)
    try:
        observed = observe_case(case)
    except Unsupported as error:
        return Skip(test, "an output has no form in a case", str(error))
    except Exception as error:  # noqa: BLE001 - whatever torch raises, on a sample of its own
        return Skip(test, "the library itself fails on its sample", repr(error)[:300])
    return replace(case, comparison="shapes" if observed.random else "values")
