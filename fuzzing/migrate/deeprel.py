"""DeepREL: inputs recorded for one API of torch, run on APIs that behave like it.

The recorded calls are samples of torch's own databases (sources torch-opinfo and torch-moduleinfo). Only new
calls are yielded, each accepted by torch in a worker, with equal results in two runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fuzzing.cases import TestCase, TorchCall
from fuzzing.entry_point import note
from fuzzing.generate.deeprel.api_pairs import LibraryBug
from fuzzing.generate.deeprel.search import Search, SearchSettings
from fuzzing.migrate.deeprel_seeds import list_sampled_apis, sample_calls
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source

NAME = "deeprel"
LIBRARY = "torch"


@register_source(NAME, library=LIBRARY, needs="expecttest")
def migrate(part: Selection | None = None) -> Iterator[TestCase | Skip]:
    """New calls of torch's APIs; a call that crashes the library is a skip.

    A part begins with the recorded calls of some families of APIs and continues with the APIs reached. A call
    reached from several families is in several parts, as the same case.
    """
    settings = SearchSettings()
    if part is None:
        search = Search(sample_calls(settings.invocations), settings)
    else:
        mine = partial(_part_contains, part)
        search = Search(
            sample_calls(settings.invocations, mine),
            settings,
            source_filter=mine,
            covered=list_sampled_apis(),
        )
    note(f"{NAME}: {search.totals.seeds} calls of {search.totals.sources} APIs; trying their candidates")
    for item in search.run():
        if isinstance(item, TestCase):
            yield item
        elif isinstance(item, LibraryBug):
            yield Skip(
                item.case.provenance.test,
                "the library dies of it, or breaks its own assertion",
                describe_bug(item),
            )
    note(search.totals.text())


def _part_contains(part: Selection, api: str) -> bool:
    return part.contains(family_name(api))


def family_name(api: str) -> str:
    """The name shared by similar APIs: relu for torch.relu_, torch.nn.ReLU6 and torch.Tensor.relu.

    Most of what a source reaches is in its own family, so parts seldom do the same work twice.
    """
    return api.rsplit(".", 1)[-1].lower().rstrip("_0123456789")


def describe_bug(bug: LibraryBug) -> str:
    """The crash and its call."""
    program = bug.case.program
    call = program.source() if isinstance(program, TorchCall) else bug.api
    return f"{bug.reason}: {call}"
