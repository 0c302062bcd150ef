"""Ties and overflow of integers: what torch does not promise accuses nobody; what it does must be right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzzing import backends
from fuzzing.backends.base import Named
from fuzzing.cases import Provenance, Tensor, TestCase, TorchProgram
from fuzzing.execute.limits import Limits
from fuzzing.execute.recheck import Rechecker, RecheckRequest
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.oracles.float64_check import needs_recheck
from fuzzing.outcomes import Outcome, Phase, Verdict

pytestmark = pytest.mark.compiler_torch_eager

#: The two largest are any two of three.
GIVEN = np.array([[5, 1, 5, 5]])


def recheck_request_for(text: str, claimed: np.ndarray[Any, np.dtype[Any]]) -> RecheckRequest:
    """A case whose last output a compiler claims to be this."""
    module = backends.get("torch_eager")()
    module.load("CPU", {})
    program = TorchProgram(f"def forward(x):\n    return {text}\n")
    values: Named = [("x", Tensor.of(GIVEN))]
    expected = tuple(module.run(module.convert(program, []), values))
    case = TestCase(program, tuple(values), Provenance("tests", text, "", "", ""), expected=expected)
    outputs = (*expected[:-1], (expected[-1][0], Tensor.of(claimed)))
    execution = Execution(ending="returned", phase=Phase.RUN, outputs=outputs)
    outcome = decide_outcome(case, execution, backends.get("inductor"), "digest", "CPU")
    assert needs_recheck(outcome, "default"), outcome
    return RecheckRequest(case, True, outputs, outcome)


@pytest.fixture(scope="module")
def rechecked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What the referee makes of each claim, all heard at once."""
    recheck_requests = {
        "topk, other ties": recheck_request_for("x.topk(2)", np.array([[3, 0]])),
        "sort, other ties": recheck_request_for("x.sort()", np.array([[1, 3, 2, 0]])),
        "sort, not the least": recheck_request_for("x.sort()", np.array([[0, 1, 2, 3]])),
        "stable": recheck_request_for("x.sort(stable=True)", np.array([[1, 3, 2, 0]])),
        "argmax": recheck_request_for("x.argmax(1)", np.array([3])),
        # 200 does not fit, 40 does
        "saturated": recheck_request_for("x.to(torch.int8) * 40", np.array([[127, 40, 127, 127]], np.int8)),
        "wrong beside": recheck_request_for(
            "x.to(torch.int8) * 40", np.array([[127, 41, 127, 127]], np.int8)
        ),
        "unsigned": recheck_request_for("x.to(torch.uint8) * 60", np.array([[255, 60, 255, 255]], np.uint8)),
    }
    corpus: Path = tmp_path_factory.mktemp("corpus")
    reference_runners = ReferenceRunners(corpus, sys.executable, Limits(), keep_workers=True)
    try:
        found = list(Rechecker(reference_runners).recheck(list(recheck_requests.values())))
    finally:
        reference_runners.close()
    return dict(zip(recheck_requests, found, strict=True))


@pytest.mark.parametrize("claim", ["topk, other ties", "sort, other ties", "saturated"])
def test_what_torch_leaves_open_is_no_error(claim: str, rechecked: dict[str, Outcome]) -> None:
    assert rechecked[claim].verdict is Verdict.PASS
    assert rechecked[claim].summary.endswith("not compared: the standard leaves them open")


@pytest.mark.parametrize("claim", ["sort, not the least", "stable", "argmax", "wrong beside", "unsigned"])
def test_what_torch_promises_is_held_to(claim: str, rechecked: dict[str, Outcome]) -> None:
    assert rechecked[claim].verdict is Verdict.WRONG_RESULT
