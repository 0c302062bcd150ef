"""DocTer: calls drawn from torch's documentation, if torch accepts them.

`fuzzing.generate.docter` extracts the constraints and draws. Each draw runs in a worker first, so a crash of
torch costs one process and becomes a skip.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fuzzing.cases import TestCase
from fuzzing.errors import InfrastructureError, InternalError
from fuzzing.migrate.source_parts import Selection
from fuzzing.migrate.sources import Skip, register_source

NAME = "docter"
LIBRARY = "torch"
#: Calls drawn of each API, the first with its required parameters only.
PER_API = 10
SEED = 0

#: Why a draw becomes no case, by how its trial ended.
REASONS = {
    "rejected": "the library refuses the draw",
    "unusable": "an output has no form in a case",
    "crashed": "the library itself crashes",
    "hung": "the library itself hangs",
    "out of memory": "the library itself takes too much memory",
    "no draw": "no call was found that obeys its documentation",
}


@register_source(NAME, library=LIBRARY)
def migrate(
    part: Selection | None = None, seed: int = SEED, count: int = PER_API
) -> Iterator[TestCase | Skip]:
    """Conforming draws of every documented API of the installed torch; a part has whole APIs."""
    try:
        import torch
    except ImportError as error:
        raise InfrastructureError(f"{NAME} needs torch: pip install torch ({error})") from error
    from fuzzing.generate.docter import apis

    torch.set_num_threads(1)  # on a busy machine, threads that wait for one another cost twenty times more
    yield from draw_cases(
        (name for name in apis.list_apis() if part is None or part.contains(name)), count, seed
    )


def draw_cases(apis: Iterable[str], count: int, seed: int) -> Iterator[TestCase | Skip]:
    """`count` draws of each of `apis`: a case, or why it is none."""
    from fuzzing.generate.docter import trials

    for trial in trials.run(apis, trials.TrialPlan(count=count, seed=seed)):
        if trial.ending == "accepted" and trial.case is not None:
            yield _with_comparison(trial.case)
        else:
            yield Skip(trial.name, REASONS[trial.ending], trial.detail)


def _with_comparison(case: TestCase) -> TestCase | Skip:
    """The case with its comparison: by shapes if it is random or returns uninitialized memory.

    It ran in a worker before, so running it here is safe.
    """
    from fuzzing.generate.docter.observation import observed_comparison

    try:
        return replace(case, comparison=observed_comparison(case))
    except InternalError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever torch raises; it did not a moment ago
        return Skip(case.provenance.test, "the library takes the draw only now and then", repr(error)[:300])
