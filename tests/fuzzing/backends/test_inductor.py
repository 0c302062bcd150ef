"""Inductor on the real compiler: what it gives, what it blames, what it asks of a machine."""

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fuzzing import backends
from fuzzing.backends.base import Named
from fuzzing.cases import Provenance, Tensor, TestCase
from fuzzing.cases.arguments import TensorArg
from fuzzing.cases.programs import Program
from fuzzing.cases.torch_call import TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.errors import ToolchainError
from fuzzing.execute.ablation import run_ablation
from fuzzing.execute.compiler_cache import resolve_cache_folder
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.execute.supervisor import Supervisor
from fuzzing.execute.worker_command import WorkerCommand
from fuzzing.execution import Execution
from fuzzing.oracles import decide_outcome
from fuzzing.outcomes import Outcome, Verdict

pytestmark = pytest.mark.compiler_inductor

PLANTED = str(Path(__file__).parent / "planted_inductor.py")
X = Tensor.of(np.linspace(-0.9, 0.9, 12, dtype=np.float32).reshape(3, 4))
TORCH_BACKENDS = [
    torch_backend.options["torch_backend"] for torch_backend in backends.get("inductor").ablation
]


def case(program: Program) -> TestCase:
    return TestCase(program, (("x", X),), Provenance("tests", "", "", "", ""))


def call(api: str) -> TestCase:
    return case(TorchCall(api, (TensorArg("x"),)))


def program(text: str) -> TestCase:
    return case(TorchProgram(f"import torch\n\n\n{text}"))


GOOD = {
    "one operator": call("torch.tanh"),
    "a view of an input written to": program(
        "def forward(x):\n    x[:, 1:3].mul_(2)\n    return x.t(), x.sum(0), x.to(torch.bfloat16)\n"
    ),
    "state kept from call to call": program(
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.calls = 0\n"
        "        self.register_buffer('seen', torch.zeros(3, 4))\n"
        "\n"
        "    def forward(self, x):\n"
        "        self.calls += 1\n"
        "        self.latest = x\n"
        "        self.seen += x\n"
        "        return self.seen * self.calls\n"
    ),
    "random numbers": program(
        "def forward(x):\n    return torch.rand_like(x), torch.nn.functional.dropout(x, 0.5, True)\n"
    ),
    "a graph break": program(
        "def forward(x):\n"
        "    if x.sum().item() > 5:\n"
        "        return x\n"
        "    return {'a': (x + 1, None), 'b': int(x.argmax())}\n"
    ),
}


#: API → the component its fault is planted in, and how it shows.
PLANTS = {
    "torch.sin": ("dynamo", Verdict.WRONG_RESULT),
    "torch.erf": ("aot_autograd", Verdict.WRONG_RESULT),
    "torch.nn.functional.silu": ("decompositions and partitioner", Verdict.WRONG_RESULT),
    "torch.tan": ("inductor", Verdict.WRONG_RESULT),
    "torch.asin": ("inductor", Verdict.CRASH),
}
SIZES = "torch.trunc"  # of which the planted inductor says whether its sizes are symbols


def run(backend: str, cases: Sequence[TestCase], **options: str) -> list[Execution]:
    cache = resolve_cache_folder(
        WorkerCommand(sys.executable, "inductor")
    )  # one header for all tests, planted faults or not
    supervisor: Supervisor[int] = Supervisor(
        WorkerCommand(sys.executable, backend, options=options, cache=cache)
    )
    ended = dict(supervisor.run(enumerate(cases)))
    return [ended[place] for place in range(len(cases))]


def on_cuda(backend: str, given: TestCase) -> Execution:
    supervisor: Supervisor[None] = Supervisor(WorkerCommand(sys.executable, backend, device="CUDA"))
    [(_, execution)] = supervisor.run([(None, given)])
    return execution


def classified(given: TestCase, execution: Execution) -> Outcome:
    return decide_outcome(given, execution, backends.get("inductor"), "toolchain", "CPU")


@pytest.fixture(scope="module")
def expected() -> dict[str, TestCase]:
    """All cases, by name or API, with what eager torch makes of them."""
    cases = GOOD | {api: call(api) for api in PLANTS}
    executions = run("torch_eager", list(cases.values()))
    return {
        name: replace(given, expected=execution.outputs)
        for (name, given), execution in zip(cases.items(), executions, strict=True)
    }


@pytest.fixture(scope="module")
def compiled() -> dict[str, Execution]:
    return dict(zip(GOOD, run("inductor", list(GOOD.values())), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_the_second_call_gives_what_the_librarys_only_call_gives(
    name: str, expected: dict[str, TestCase], compiled: dict[str, Execution]
) -> None:
    outcome = classified(expected[name], compiled[name])
    assert outcome.verdict is Verdict.PASS, f"{outcome.summary}\n{outcome.evidence}"
    assert expected[name].expected
    assert list(compiled[name].durations) == ["convert", "compile", "run"]


@pytest.fixture(scope="module")
def ablation_runs(
    expected: dict[str, TestCase], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Execution]]:
    """Rung → API → execution on the inductor with planted faults; only inductor itself finds a g++."""
    names = [*PLANTS, SIZES]
    cases = [expected.get(api) or call(api) for api in names]
    found = {}
    for torch_backend in TORCH_BACKENDS:
        with pytest.MonkeyPatch.context() as patch:
            if torch_backend != "inductor":
                patch.setenv("PATH", str(tmp_path_factory.mktemp("no-compiler")))
            found[torch_backend] = dict(
                zip(names, run(PLANTED, cases, torch_backend=torch_backend), strict=True)
            )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("api", PLANTS)
def test_the_ladder_names_the_layer_that_a_fault_was_planted_in(
    api: str, expected: dict[str, TestCase], ablation_runs: dict[str, dict[str, Execution]]
) -> None:
    component, verdict = PLANTS[api]

    def outcome(options: dict[str, str]) -> Outcome:
        return classified(expected[api], ablation_runs[options["torch_backend"]][api])

    failing = outcome({"torch_backend": "inductor"})
    assert failing.verdict is verdict, failing.summary
    ablation = run_ablation(expected[api], outcome, backends.get("inductor"), failing)
    assert ablation.component == component
    assert [found for _, found in ablation.ablation_runs] == ["pass"] * (len(ablation.ablation_runs) - 1) + [
        verdict.value
    ]


def test_sizes_are_symbols_only_where_asked_for(ablation_runs: dict[str, dict[str, Execution]]) -> None:
    assert "sizes are numbers" in ablation_runs["eager"][SIZES].message
    [requested] = run(PLANTED, [call(SIZES)], torch_backend="eager", dynamic="on")
    assert "sizes are symbols" in requested.message


def test_without_a_cpp_compiler_the_toolchain_is_broken_not_torch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"inductor needs a C\+\+ compiler.*install g\+\+"):
        run("inductor", [call("torch.tanh")])


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has a CUDA device")
def test_without_a_cuda_device_loading_says_so() -> None:
    with pytest.raises(RuntimeError, match="torch finds no CUDA device"):
        backends.get("inductor")().load("CUDA", {})


@pytest.mark.gpu
@pytest.mark.parametrize("name", GOOD)
def test_cuda_gives_what_eager_torch_gives_there(name: str) -> None:
    eager, found = (on_cuda(backend, GOOD[name]) for backend in ("torch_eager", "inductor"))
    assert classified(replace(GOOD[name], expected=eager.outputs), found).verdict is Verdict.PASS


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be",
        "CUDA error: device-side assert triggered",
        "CUDA error: unspecified launch failure",
        "Triton Error [CUDA]: misaligned address",
        "cudaStreamSynchronize: cudaErrorLaunchTimeout: the launch timed out and was terminated",
    ],
)
def test_what_no_cuda_process_survives_is_sticky(message: str) -> None:
    assert any(re.search(pattern, message) for pattern in backends.get("inductor").sticky)


@pytest.mark.parametrize("message", ["CUDA out of memory. Tried to allocate 2 GiB", "AssertionError: sizes"])
def test_other_trouble_is_not_sticky(message: str) -> None:
    assert not any(re.search(pattern, message) for pattern in backends.get("inductor").sticky)


@pytest.mark.parametrize(
    ("first_call", "seen"), [("same", [3, 3]), ("values", [3, 3]), ("shape", [6, 3]), ("unfit", [3, 3])]
)
def test_the_first_call_may_have_other_inputs(first_call: str, seen: list[int]) -> None:
    check = "    assert x.shape[0] == 3\n" if first_call == "unfit" else ""
    body = f"{check}    SEEN.append(x.shape[0])\n    return x, torch.tensor(SEEN[-2:])\n"
    text = f"SEEN = []\n\n\ndef forward(x):\n{body}"
    given = program(text)
    backend = backends.get("inductor")()
    options = {"torch_backend": "eager", "first_call": "shape" if first_call == "unfit" else first_call}
    backend.load("CPU", options)
    made = backend.compile(backend.convert(given.program, list(given.values())))
    (_, x), (_, sizes) = backend.run(made, list(given.values()))
    assert x == X
    assert isinstance(sizes, Tensor)
    assert sizes.array().tolist() == seen


def test_programs_may_register_one_name_for_different_operators() -> None:
    """torch keeps the signature of a name, from which inductor matches a call to the operator's schema."""
    backend = backends.get("inductor")()
    backend.load("CPU", {"torch_backend": "eager"})
    for parameters in ("x", "x, y"):
        typed = ", ".join(f"{name}: torch.Tensor" for name in parameters.split(", "))
        text = (
            "import torch\nfrom torch.fx.operator_schemas import normalize_function\n\n\n"
            f"@torch.library.custom_op('assay_test::one', mutates_args=())\n"
            f"def one({typed}) -> torch.Tensor:\n    return x + 1\n\n\n"
            "def forward(x):\n"
            f"    given = (x,) * {len(parameters.split(', '))}\n"
            "    assert normalize_function(torch.ops.assay_test.one.default, given)\n"
            "    return one(*given)\n"
        )
        given: Named = [("x", X)]
        built = backend.convert(TorchProgram(text), given)
        [(_, found)] = built[0].run(given)
        assert isinstance(found, Tensor)
        assert found.array().tolist() == (X.array() + 1).tolist()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # Dynamo asks each argument for it
def test_the_first_call_has_the_same_inputs_where_the_library_cannot_differentiate_others() -> None:
    """The forward run of a scatter may have more elements than indices; its derivative may not."""
    scatter = "torch.zeros(3).scatter_reduce(0, torch.arange(3), x, 'sum')"
    text = f"import torch\n\n\ndef forward(x):\n    return {scatter}\n"
    x = Tensor.of(np.array([1, 2, 3], np.float32))
    backend = backends.get("inductor")()
    backend.load("CPU", {"torch_backend": "eager", "first_call": "shape", "backward": "on"})
    given: Named = [("x", x)]
    found = dict(backend.run(backend.compile(backend.convert(TorchProgram(text), given)), given))
    assert found["0"] == x


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # Dynamo asks each argument for it
@pytest.mark.parametrize("torch_backend", ["eager", "aot_eager"])
def test_gradients_are_outputs_on_request(torch_backend: str) -> None:
    x, n = Tensor.of(np.array([0.5, 1.0], np.float32)), Tensor.of(np.array([3, 2], np.int64))
    body = "    y = x * n\n    x[0] = 2\n    return y, x * x, n + 1\n"
    text = f"import torch\n\n\ndef forward(x, n):\n{body}"
    backend = backends.get("inductor")()
    given: Named = [("x", x), ("n", n)]
    backend.load("CPU", {"torch_backend": torch_backend, "backward": "on"})
    found = dict(backend.run(backend.compile(backend.convert(TorchProgram(text), given)), given))
    assert list(found) == ["0", "1", "2", "gradient.0"]
    gradient = found["gradient.0"]
    assert isinstance(gradient, Tensor)
    # Of sum(w * x * n), and of sum(w * x * x) after x[0] = 2, with the weights w = 1, 8 / 7.
    wanted = [3, 8 / 7 * (2 + 2 * 1.0)]
    assert gradient.array().tolist() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.slow
def test_gradients_are_compared_with_the_librarys(tmp_path: Path) -> None:
    given = [call("torch.tanh"), call("torch.sigmoid")]
    options = {"torch_backend": "aot_eager_decomp_partition", "backward": "on"}
    ids = tuple(one.id for one in given)
    with Evaluator(
        Shard(str(tmp_path), ids, PLANTED, "planted", sys.executable, options=options)
    ) as evaluator:
        planted, sound = evaluator.evaluate(given)
    assert planted.verdict is Verdict.WRONG_RESULT, planted.summary
    assert {mismatch.output for mismatch in planted.evidence.mismatches} == {"gradient.0"}
    assert sound.verdict is Verdict.PASS, sound.summary
