"""Where a planned case came from, read from its manifest alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.errors import InfrastructureError
from fuzzing.cases import Corpus
from fuzzing.cases.case import parse_manifest
from fuzzing.cases.corpus import MAX_MANIFEST_BYTES
from fuzzing.cases.programs import kind_named
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
        frontend = kind_named(self.kind).frontend
        return _FRONTENDS.get(frontend, frontend)


#: How the libraries spell their names.
_FRONTENDS = {"onnx": "ONNX", "torch": "PyTorch", "keras": "Keras"}


def origin(corpus: Path, case_id: str) -> Origin:
    """The origin of a stored case; raises InfrastructureError if the corpus has lost or mangled it.

    The program is not read: a campaign asks this of every case it planned.
    """
    path = Corpus(corpus).folder(case_id) / "case.json"
    try:
        with open(path, "rb") as file:
            manifest = parse_manifest(file.read(MAX_MANIFEST_BYTES))
        told, size = manifest["provenance"], int(manifest["program"]["size"])
        kind = kind_named(str(manifest["program"]["kind"])).kind
        return Origin(str(told["source"]), str(told["test"]), str(told["operator"]), size, kind)
    except (OSError, CaseFormatError, TypeError, KeyError, ValueError) as error:
        raise InfrastructureError(
            f"the corpus has lost a planned case: {path}: {error}; "
            f"delete {corpus / 'catalogues'} to have the sources migrated again"
        ) from None
