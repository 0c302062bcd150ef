"""PyTorch's tests of torch.compile: methods of `torch._dynamo.test_case.TestCase`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer, writer
from fuzzing.outcomes import Phase, Verdict

_DYNAMO = Place("test/dynamo/test_repros.py", "ReproTests")
_CPU = Place("test/inductor/test_cpu_repro.py", "CPUReproTests")
_CUDA = Place("test/inductor/test_cuda_repro.py", "CudaReproTests")


@writer
class PyTorchWriter(Writer):
    """The reproducers of `test/inductor` by device, and of `test/dynamo` for programs not captured.

    Open bugs are accepted with `unittest.expectedFailure`.
    """

    name = "pytorch"
    backend = "inductor"
    frontend = "torch"
    expects_failures = True
    suite: ClassVar[tuple[str, ...]] = ("test/inductor/test_*.py", "test/dynamo/test_*.py")
    companions: ClassVar[tuple[str, ...]] = ("test/inductor/test_torchinductor.py", "test/dynamo/utils.py")

    def place(self, regression: Regression, tree: Tree, settings: ProposalSettings) -> Place | None:
        """The file of the failing part, if the repository has it."""
        del settings
        outcome = regression.outcome
        place = _CUDA if outcome.device == "CUDA" else _CPU
        if outcome.verdict is not Verdict.WRONG_RESULT and outcome.phase is Phase.CONVERT:
            place = _DYNAMO
        return place if tree.has(place.path) else None

    def values(self, regression: Regression, tree: Tree) -> Mapping[str, Any]:
        """The program and its device."""
        cuda = regression.outcome.device == "CUDA"
        return {**super().values(regression, tree), "moved": ".cuda()" if cuda else ""}

    def command(self, place: Place, name: str) -> tuple[str, ...]:
        """The file is run as a program, as `test/run_test.py` does."""
        return (place.path, f"{place.class_name}.{name}")
