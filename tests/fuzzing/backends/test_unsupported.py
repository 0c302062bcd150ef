"""How compilers say that they lack something: each pattern against a message that its package printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from fuzzing import backends
from tests.fuzzing.backends.backend_kit import reason
from tests.fuzzing.backends.refusals import SAID, Said

BACKENDS = ("iree", "onnxruntime", "openvino", "tinygrad", "tvm")


class Failure(NamedTuple):
    """What a line of `docs/findings.md` raises: a bug, which no pattern may excuse."""

    backend: str
    finding: str
    error: str
    message: str


#: Each line that raises, on the releases of the page's sections. TVM's functions of bools are not among them:
#: its message, "requires the input tensor to have float dtype", states a limit.
FAILURES = [
    Failure(**item)
    for item in json.loads((Path(__file__).parent / "refusals" / "failures.json").read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said.backend}-{said.message[-40:]}")
def test_what_a_compiler_says_is_taken_for_what_it_means(said: Said) -> None:
    assert reason(said.backend, said.error, said.message) == said.why


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_pattern_is_without_a_message_that_only_it_explains(backend: str) -> None:
    spoken = {at for said in SAID if said.backend == backend for at in _first(said)}
    assert spoken == set(range(len(backends.get(backend).unsupported)))


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: f"{failure.backend}-{failure.finding}"[:60])
def test_no_finding_is_a_refusal(failure: Failure) -> None:
    assert reason(failure.backend, failure.error, failure.message) is None


#: What Python and numpy say where a compiler's own code gives them something wrong.
PYTHONS = (
    "'<' not supported between instances of 'NoneType' and 'int'",
    "unsupported operand type(s) for +: 'NoneType' and 'int'",
    "unsupported format string passed to NoneType.__format__",
    "ufunc 'bitwise_and' not supported for the input types, and the inputs could not be safely coerced to "
    "any supported types according to the casting rule ''safe''",
    "loop of ufunc does not support argument 0 of type NoneType which has no callable exp method",
)


@pytest.mark.parametrize("backend", backends.compilers())
@pytest.mark.parametrize("message", PYTHONS, ids=lambda message: message[:24])
def test_what_python_says_of_a_compilers_own_code_is_no_refusal(backend: str, message: str) -> None:
    assert reason(backend, "TypeError", message) is None


def _first(said: Said) -> list[int]:
    """The place of the pattern that explains `said`, [] if none does."""
    for at, pattern in enumerate(backends.get(said.backend).unsupported):
        if re.search(pattern.message, said.message) and re.search(pattern.error, said.error):
            return [at]
    return []
