"""DeepREL's recorded calls: samples of torch's own databases of operators and modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from fuzzing.cases import TestCase
from fuzzing.generate.deeprel.api_inventory import canonical_name
from fuzzing.migrate import torch_moduleinfo, torch_opinfo


def sample_calls(count: int, wanted: Callable[[str], bool] | None = None) -> Iterator[TestCase]:
    """Up to `count` cases of each operator and module of the installed torch, in its order.

    wanted  selects operators and modules by name below torch
    """
    import torch

    torch.set_num_threads(1)  # on a busy machine, threads that wait for one another cost twenty times more
    for entry in torch_opinfo.load_database():
        if wanted is None or wanted(f"torch.{entry.name}"):
            cases = (item for item in torch_opinfo.operator_cases(entry, entry.name))
            yield from islice((item for item in cases if isinstance(item, TestCase)), count)
    for entry in torch_moduleinfo.load_database():
        if wanted is None or wanted(f"torch.{entry.name}"):
            yield from islice(
                (item for item in torch_moduleinfo.module_cases(entry) if isinstance(item, TestCase)), count
            )


def list_sampled_apis() -> frozenset[str]:
    """The APIs of the databases, without sampling them."""
    entries = (*torch_opinfo.load_database(), *torch_moduleinfo.load_database())
    return frozenset(filter(None, (canonical_name(f"torch.{entry.name}") for entry in entries)))
