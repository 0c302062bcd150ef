"""Ours: by signature, and by its key alone."""

from __future__ import annotations

from collections.abc import Sequence

from fuzzing.deduplicate.strategies.base import Failure, register_strategy
from fuzzing.triage.signature import Signature, explains
from fuzzing.triage.type_needs import type_oddness


@register_strategy("signature")
def by_signature(failures: Sequence[Failure]) -> list[str]:
    """The key of the signature with the fewest needs that explains a failure's own.

    In which order failures come makes no difference.
    """
    signatures = [failure.signature() for failure in failures]
    known = sorted({signature.key: signature for signature in signatures}.values(), key=_order)
    return [next(one.key for one in known if explains(one, signature)) for signature in signatures]


def _order(signature: Signature) -> tuple[int, int, int, str]:
    needs, types = (len(signature.fields.get(name, ())) for name in ("needs", "dtypes"))
    return needs, types, type_oddness(signature.fields), signature.key


@register_strategy("key")
def by_key(failures: Sequence[Failure]) -> list[str]:
    """The signature's key: what a failure shows by itself."""
    return [failure.signature().key for failure in failures]
