"""Where a planned case came from, read from its manifest alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from sys import intern

from bot.errors import InfrastructureError
from fuzzing.cases import Corpus
from fuzzing.cases.programs import get_kind
from fuzzing.errors import CaseFormatError


@dataclass(frozen=True)
class Origin:
    """Where a case came from.

    test      the library's own name of the test
    operator  the operator under test, "" if there is no single one
    size      bytes of the program
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


#: Ours: cases of which it is remembered where they came from, some 25 MB of them.
_REMEMBERED = 1 << 16

#: How the libraries spell their names.
_FRONTENDS = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras"}


@lru_cache(maxsize=_REMEMBERED)
def origin(corpus: Path, case_id: str) -> Origin:
    """The origin of a stored case; raises InfrastructureError if the corpus has lost or mangled it.

    The program is not read, and the rest once: a campaign asks this of every case it planned, several
    times. A case cannot change, for its id is its content's.
    """
    try:
        manifest = Corpus(corpus).manifest(case_id)
        told, size = manifest["provenance"], int(manifest["program"]["size"])
        kind = get_kind(str(manifest["program"]["kind"])).kind
        return Origin(
            intern(str(told["source"])), str(told["test"]), intern(str(told["operator"])), size, kind
        )
    except (CaseFormatError, TypeError, KeyError, ValueError) as error:
        raise InfrastructureError(
            f"the corpus has lost a planned case: {case_id}: {error}; "
            f"delete {corpus / 'catalogs'} to have the sources migrated again"
        ) from None
