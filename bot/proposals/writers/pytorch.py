"""PyTorch's tests of torch.compile: methods of `torch._dynamo.test_case.TestCase`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from bot.proposals.regression import Regression
from bot.proposals.tree import Tree
from bot.proposals.writer import Place, ProposalSettings, Writer, writer
from bot.reports.reproducer import full_configuration
from fuzzing.cases import Recipe, Tensor
from fuzzing.cases.torch_call import TorchCall
from fuzzing.outcomes import Phase, Verdict

_DYNAMO = Place("test/dynamo/test_repros.py", "ReproTests")
_CPU = Place("test/inductor/test_cpu_repro.py", "CPUReproTests")
_CUDA = Place("test/inductor/test_cuda_repro.py", "CudaReproTests")

#: `check_model` of test_torchinductor.py: compiles the whole graph, and compares with eager mode in float32.
_COMMON = re.compile(r"^    common = check_model$", re.MULTILINE)
_HALVES = ("float16", "bfloat16")


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
        """The program, its device, and whether the class' own `common` compares it with eager mode."""
        cuda = regression.outcome.device == "CUDA"
        common = not cuda and _fits_common(regression) and _COMMON.search(tree.read(_CPU.path) or "")
        return {
            **super().values(regression, tree),
            "moved": ".cuda()" if cuda else "",
            "common": bool(common),
        }

    def command(self, place: Place, name: str) -> tuple[str, ...]:
        """The file is run as a program, as `test/run_test.py` does."""
        return (place.path, f"{place.class_name}.{name}")


def _fits_common(regression: Regression) -> bool:
    """Whether it is one call that `common` runs as it failed; a function may break the graph.

    Half-precision inputs are left out because `common` compares with their results in float32.
    """
    options, _ = full_configuration(regression.outcome)
    plain = options.get("torch_backend") == "inductor" and options.get("dynamic") != "on"
    tensors = [value for _, value in regression.case.inputs if isinstance(value, (Recipe, Tensor))]
    whole = not any(str(one.dtype) in _HALVES for one in tensors)
    in_inductor = regression.outcome.phase is not Phase.CONVERT or not regression.outcome.verdict.is_failure
    is_call = isinstance(regression.case.program, TorchCall)
    return plain and whole and in_inductor and bool(tensors) and is_call
