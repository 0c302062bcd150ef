"""Where a planned case came from, read from its manifest."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any

from bot.errors import InfrastructureError
from fuzzing.cases import Corpus, EquivalentModels, EquivalentPair
from fuzzing.cases.programs import get_kind
from fuzzing.errors import CaseFormatError


@dataclass(frozen=True)
class Origin:
    """Where a case came from.

    test      the library's own name of the test
    operator  the operator under test, "" if there is no single one
    size      bytes of the program and its inputs
    kind      the program's kind
    """

    source: str
    test: str
    operator: str
    size: int
    kind: str = "OnnxModel"

    @property
    def frontend(self) -> str:
        """The frontend that loads it, as people call it."""
        frontend = get_kind(self.kind).frontend
        return _FRONTENDS.get(frontend, frontend)

    @property
    def rules(self) -> tuple[tuple[str, str], ...]:
        """Of a pair, what it is counted under: its rule and API, or its rewrites of a model, without API."""
        if self.kind == EquivalentModels.kind:
            return tuple((rewrite, "") for rewrite in self.operator.split())
        return ((self.test.partition("/")[0], self.operator),) if self.kind == EquivalentPair.kind else ()

    @property
    def subject(self) -> str:
        """What a signature names: the operator, for a pair with its rule. The bug is one for each of both.

        Nothing for a pair of models: which rewrites led to a failure is chance.
        """
        if self.kind == EquivalentModels.kind:
            return ""
        return f"{self.operator} by {self.rules[0][0]}" if self.kind == EquivalentPair.kind else self.operator


#: Origins kept in memory, about 25 MB; ours.
_REMEMBERED = 1 << 16

#: How the libraries spell their names.
_FRONTENDS = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras"}


@lru_cache(maxsize=_REMEMBERED)
def origin(corpus: Path, case_id: str) -> Origin:
    """The origin of a stored case; raises InfrastructureError if the manifest is missing or broken.

    Reads the manifest only, and caches it: a case is immutable, and a campaign asks several times.
    """
    try:
        manifest = Corpus(corpus).manifest(case_id)
        fields, size = manifest["provenance"], int(manifest["program"]["size"])
        size += sum(map(_input_bytes, manifest["inputs"]))
        kind = get_kind(str(manifest["program"]["kind"])).kind
        return Origin(
            intern(str(fields["source"])), str(fields["test"]), intern(str(fields["operator"])), size, kind
        )
    except (CaseFormatError, TypeError, KeyError, ValueError) as error:
        raise InfrastructureError(
            f"the corpus has lost a planned case: {case_id}: {error}; "
            f"delete {corpus / 'catalogs'} to have the sources migrated again"
        ) from None


def _input_bytes(fields: dict[str, Any]) -> int:
    """Bytes of an input: elements times the bits in its type's name, 8 for types without any."""
    bits = re.search(r"\d+", str(fields.get("dtype", "")))
    elements = math.prod(int(length) for length in fields.get("shape", (0,)))
    return elements * (int(bits[0]) if bits else 8) // 8
