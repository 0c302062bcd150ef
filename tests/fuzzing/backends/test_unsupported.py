"""How compilers say that they lack something: each pattern against a message that its package printed."""

from __future__ import annotations

import re

import pytest

from fuzzing import backends
from tests.fuzzing.backends.backend_kit import reason
from tests.fuzzing.backends.refusals import SAID, Said

BACKENDS = ("iree", "onnxruntime", "openvino", "tinygrad", "tvm")


@pytest.mark.parametrize("said", SAID, ids=lambda said: f"{said.backend}-{said.message[-40:]}")
def test_what_a_compiler_says_is_taken_for_what_it_means(said: Said) -> None:
    assert reason(said.backend, said.error, said.message) == said.why


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_pattern_is_without_a_message_that_only_it_explains(backend: str) -> None:
    spoken = {at for said in SAID if said.backend == backend for at in _first(said)}
    assert spoken == set(range(len(backends.get(backend).unsupported)))


def _first(said: Said) -> list[int]:
    """The place of the pattern that explains `said`, [] if none does."""
    for at, pattern in enumerate(backends.get(said.backend).unsupported):
        if re.search(pattern.message, said.message) and re.search(pattern.error, said.error):
            return [at]
    return []
