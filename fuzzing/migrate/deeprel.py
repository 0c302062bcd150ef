"""DeepREL: inputs recorded for one API of torch, given to the APIs that are seen to behave like it.

The recorded calls are samples of torch's own databases (sources torch-opinfo and torch-moduleinfo). What is
yielded are the new calls only, each accepted by torch in a worker and seen to give the same twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fuzzing.cases import TestCase, TorchCall
from fuzzing.entry_point import note
from fuzzing.generate.deeprel.api_pairs import LibraryBug
from fuzzing.generate.deeprel.search import Search, SearchSettings
from fuzzing.migrate.deeprel_seeds import list_sampled_apis, sample_calls
from fuzzing.migrate.source_parts import Part
from fuzzing.migrate.sources import Skip, register_source

NAME = "deeprel"
LIBRARY = "torch"


@register_source(NAME, library=LIBRARY, needs="expecttest")
def migrate(part: Part | None = None) -> Iterator[TestCase | Skip]:
    """New calls of torch's APIs; a call that the library dies of is a skip that says so.

    A part begins with the recorded calls of some families of APIs, and pursues what it reaches among them.
    What several families lend to one API is several parts' work: there they give the same cases.
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


def _part_contains(part: Part, api: str) -> bool:
    return part.contains(family_name(api))


def family_name(api: str) -> str:
    """What relatives have in common: of torch.relu_, torch.nn.ReLU6 and torch.Tensor.relu it is relu.

    Most of what a source reaches is of its own family, so that parts seldom do the same work twice.
    """
    return api.rsplit(".", 1)[-1].lower().rstrip("_0123456789")


def describe_bug(bug: LibraryBug) -> str:
    """How the library died, and of what."""
    program = bug.case.program
    call = program.source() if isinstance(program, TorchCall) else bug.api
    return f"{bug.reason}: {call}"
