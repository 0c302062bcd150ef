"""The result of reducing one failing case, as a row of the database and as `fuzzing.reduce` sends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.errors import RunnerError
from bot.store.models import Reduction
from fuzzing.outcomes import Outcome
from fuzzing.triage.traits import Traits

PROGRAM = "fuzzing.reduce"


@dataclass(frozen=True)
class ReducedCase:
    """The result of a reduction.

    case      id of the reduced case
    outcome   of a fresh process
    traits    of its program
    others    other failing cases met on the way, smallest first
    """

    case: str
    outcome: Outcome
    traits: Traits
    others: tuple[str, ...]


def read_reduction(row: Reduction) -> ReducedCase | None:
    """The result in a row; None if the case could not be reduced."""
    if not row.reduced:
        return None
    body = row.body
    others = tuple(map(str, body.get("others", ())))
    return ReducedCase(
        row.reduced, Outcome.from_json(body["outcome"]), traits_from_json(body["traits"]), others
    )


def traits_from_json(obj: Mapping[str, Any]) -> Traits:
    """The inverse of `dataclasses.asdict`. Raises RunnerError: malformed data of a program."""
    try:
        lists = {name: tuple(map(str, obj[name])) for name in ("dtypes", "needs", "operators")}
        # A row of an earlier Assay has no root, and nothing proven.
        lists |= {name: tuple(map(str, obj.get(name, ()))) for name in ("proven", "proven_inputs")}
        root = obj.get("root")
        return Traits(pattern=str(obj["pattern"]), **lists, root=None if root is None else dict(root))
    except (TypeError, KeyError) as error:
        raise RunnerError(f"{PROGRAM} sent traits that are none: {error!r}") from None
