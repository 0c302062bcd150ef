"""torch's own database of modules: each input of each ModuleInfo becomes a TorchCall of the module's class.

`torch.testing._internal.common_modules.module_db`, in float32 and eval mode. Parameters are drawn as for
every TorchCall, so results differ from torch's own test of the module; each call is run once to check that it
works.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from fuzzing.backends.base import Unsupported
from fuzzing.cases import Init, Provenance, TestCase, TorchCall
from fuzzing.migrate.recorders.torch_constructors import ConstructorRecorder
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source
from fuzzing.torch_api.samples import (
    SEED,
    BrokenSample,
    enumerate_samples,
    load_table,
    observe_case,
    seed_samples,
)

NAME = "torch-moduleinfo"
LIBRARY = "torch"


@register_source(NAME, library=LIBRARY, needs="expecttest")
def migrate(part: Selection | None = None) -> Iterator[TestCase | Skip]:
    """Every input of every module of the installed torch, in its order; a part has whole modules."""
    import torch

    entries = load_database()
    torch.set_num_threads(1)  # on a busy machine, threads that wait for one another cost twenty times more
    for entry in entries:
        if part is None or part.contains(entry.name):
            yield from module_cases(entry)


def load_database() -> list[Any]:
    """All ModuleInfos; raises as `load_table`."""
    return load_table(NAME, "common_modules", "module_db")


@functools.cache
def _constructor_recorder() -> ConstructorRecorder:
    """Records the constructors of modules in samples; begun before any are made."""
    making = ConstructorRecorder()
    making.begin()
    return making


@functools.cache
def _torch_version() -> str:
    return version(LIBRARY)  # which reads and parses a file


def module_cases(entry: Any) -> Iterator[TestCase | Skip]:
    """The cases of one ModuleInfo."""
    for place, sample in enumerate_samples(samples(entry)):
        yield _case(entry, sample, f"{entry.name}/float32/{place}")


def samples(entry: Any) -> Iterator[Any]:
    """The ModuleInputs of a ModuleInfo on the CPU, drawn from fixed seeds."""
    import torch

    options = {"device": "cpu", "dtype": torch.float32, "requires_grad": False, "training": False}
    _constructor_recorder()
    return seed_samples(lambda: entry.module_inputs_func(entry, **options))


def _case(entry: Any, sample: Any, test: str) -> TestCase | Skip:
    from fuzzing.torch_api.serializer import InitSerializer, NotSerializableError, Serializer, public_name

    if isinstance(sample, BrokenSample):
        return Skip(test, "the library cannot make its sample", sample.error)
    if sample.forward_input is None:
        return Skip(test, "the library's sample does not call the module")
    made_so = _constructor_recorder().given
    serializer, maker = Serializer(made=made_so), InitSerializer(made=made_so)
    made, called = sample.constructor_input, sample.forward_input
    try:
        init = Init(maker.args(made.args), maker.kwargs(made.kwargs))
        program = TorchCall(
            public_name(entry.module_cls),
            serializer.args(called.args),
            serializer.kwargs(called.kwargs),
            init,
        )
    except NotSerializableError as error:
        return Skip(test, str(error), error.detail)
    provenance = Provenance(NAME, test, entry.name, LIBRARY, _torch_version(), SEED)
    case = TestCase(program, tuple(serializer.inputs.items()), provenance)
    try:
        observed = observe_case(case)
    except Unsupported as error:
        return Skip(test, "an output has no form in a case", str(error))
    except Exception as error:  # noqa: BLE001 - whatever torch raises, on a sample of its own
        return Skip(test, "the library itself fails on its sample", repr(error)[:300])
    return replace(case, comparison="shapes" if observed.random else "values")
