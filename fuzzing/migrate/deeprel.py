"""DeepREL: inputs recorded for one API of torch, given to the APIs that are seen to behave like it.

The recorded calls are samples of torch's own databases (sources torch-opinfo and torch-moduleinfo). What is
yielded are the new calls only, each accepted by torch in a worker and seen to give the same twice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from fuzzing.cases import TestCase, TorchCall
from fuzzing.generate.deeprel.search import Bug, Search, Settings
from fuzzing.generate.deeprel.seeds import recorded
from fuzzing.migrate.sources import Skip, register_source

NAME = "deeprel"
LIBRARY = "torch"


@register_source(NAME, library=LIBRARY, needs="expecttest")
def migrate() -> Iterator[TestCase | Skip]:
    """New calls of torch's APIs; a call that the library dies of is a skip that says so."""
    settings = Settings()
    search = Search(recorded(settings.invocations), settings)
    for item in search.run():
        if isinstance(item, TestCase):
            yield item
        elif isinstance(item, Bug):
            yield Skip(item.case.provenance.test, "the library dies of it, or breaks its own assertion", told(item))
    sys.stderr.write(search.totals.text() + "\n")


def told(bug: Bug) -> str:
    """How the library died, and of what."""
    program = bug.case.program
    call = program.source() if isinstance(program, TorchCall) else bug.api
    return f"{bug.how}: {call}"
