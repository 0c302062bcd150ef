"""Pull requests of a compiler's own repository, made from the installed TVM's Python sources."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from bot.campaigns.plan.catalog import catalog_path
from bot.store import findings
from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from tests.github.repository_double import RepositoryDouble
from tests.scenarios.deployment import Deployment

pytestmark = pytest.mark.network

BINARY = "python/tvm/relax/op/binary.py"
FRONTEND = "python/tvm/relax/frontend/onnx/onnx_frontend.py"
SOURCE = "onnx-node-tests"
OPERATORS = ("Sub", "Mul", "Max")
CONFIG = f"""\
version: 1
backend: tvm
sources: [{SOURCE}]
budget: 10m
repeats: 2
toolchain:
  provisioner: [overlay, release]
  wheel: "{version("apache-tvm")}"
reduction:
  cases: 0
reports:
  mode: auto
"""


def sources() -> dict[str, str | None]:
    """The Python files of the installed TVM, where its repository has them."""
    spec = importlib.util.find_spec("tvm")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = Path(next(iter(spec.submodule_search_locations)))
    files = (path for path in package.rglob("*.py") if path.name != "_version.py")
    return {f"python/tvm/{path.relative_to(package).as_posix()}": path.read_text() for path in files}


def write_cases(corpus: Path) -> dict[str, str]:
    """A case of each operator, as the only ones of their source; operator → case."""
    from onnx import TensorProto, helper

    rng = np.random.default_rng(0)
    ids = {}
    for operator in OPERATORS:
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in "aby"]
        node = helper.make_node(operator, ["a", "b"], ["y"])
        graph = helper.make_graph([node], "test", infos[:2], infos[2:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        inputs = tuple((name, Tensor.of(rng.random((2, 3), np.float32))) for name in "ab")
        origin = Provenance(SOURCE, f"test_{operator.lower()}", operator, "onnx", version("onnx"))
        case = TestCase(OnnxModel(model.SerializeToString(deterministic=True)), inputs, origin)
        Corpus(corpus).add(case)
        ids[operator] = case.id
    catalog = catalog_path(corpus, SOURCE)
    catalog.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'{{"id": "{case_id}"}}\n' for case_id in ids.values()]
    catalog.write_text("".join(lines) + '{"library": "onnx", "skipped": {}}\n')
    return ids


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, RepositoryDouble]]:
    """A service with the real compiler, and the repository; its first commit is TVM as it is installed."""
    with Deployment(tmp_path_factory.mktemp("compiler"), real_compiler=True) as deployment:
        write_cases(deployment.data_dir / "corpus")
        repository = deployment.hub.repository("octo/tvm")
        repository.commit({".github/assay.yml": CONFIG, **sources()}, message="Begin", quiet=True)
        yield deployment, repository
        assert deployment.internal_errors() == []


def edited(text: str, before: str, after: str, path: str = FRONTEND) -> dict[str, str | None]:
    assert before in text
    return {path: text.replace(before, after, 1)}


def test_pull_requests_of_a_compiler(compiler: tuple[Deployment, RepositoryDouble]) -> None:
    deployment, repository = compiler
    text, binary = (sources()[path] for path in (FRONTEND, BINARY))
    assert text is not None
    assert binary is not None
    changes: dict[str, dict[str, str | None]] = {
        "broken": edited(text, "relax_op = relax.op.subtract", "relax_op = relax.op.add"),
        "formatted": {FRONTEND: f"# A comment.\n{text}\n\n"},
        "native": {"src/relax/op/op.cc": "int x;\n"},
        "renamed": edited(binary, "_ffi_api.subtract(", "_ffi_api.subtract_elements(", BINARY)
        | {"src/relax/op/tensor/binary.cc": '.def("relax.op.subtract_elements", subtract);\n'},
        "unusable": edited(text, "class Sub(BinaryBase)", "class Sub(NoSuchBase)"),
    }
    heads = {}
    for branch, files in changes.items():
        repository.open_pull(files, branch=branch)
        heads[branch] = repository.head(branch)
    fork = repository.fork("eve")
    repository.open_pull(changes["broken"], fork=fork, branch="evil")
    deployment.wait_until_idle(1200.0)

    runs = {run.head_sha: run for run in repository.check_runs}
    titles = {branch: str(runs[head].fields["output"]) for branch, head in heads.items()}
    campaigns = {one.head: one for one in deployment.campaigns(repository.name)}
    assert set(campaigns) == set(heads.values()), "that of the fork was not run"
    assert {one.state for one in campaigns.values()} == {"done"}

    assert "1 new bug" in titles["broken"]
    with deployment.rows.reading() as session:
        found = {
            branch: list(findings.of_campaign(session, campaigns[head].id)) for branch, head in heads.items()
        }
        flagged = [(one.case_id, one.classification) for one in found["broken"]]
    ids = {one.id: one.provenance.operator for one in Corpus(deployment.data_dir / "corpus")}
    assert [(ids[case], classification) for case, classification in flagged] == [("Sub", "regression")]

    ((case, classification, reason),) = [
        (ids[one.case_id], one.classification, one.reason) for one in found["renamed"]
    ]
    assert (case, classification) == ("Sub", "inconclusive")
    assert "src/relax/op/tensor/binary.cc of the commit names it" in reason
    assert "new bug" not in titles["renamed"]

    assert "Nothing here that a case could reach" in titles["formatted"]
    assert "Not tested: only a build of the compiler has this change" in titles["native"]
    for branch, conclusion in (("formatted", "success"), ("native", "neutral")):
        assert runs[heads[branch]].fields["conclusion"] == conclusion
        assert not found[branch]
    assert "only a build of the compiler has it: src/relax/op/op.cc" in titles["native"]
    assert "breaks importing or compiling everything" in titles["unusable"]
    assert "NoSuchBase" in titles["unusable"]

    (stranger,) = [run for run in repository.check_runs if run.head_sha == fork.head("evil")]
    assert "/assay run" in str(stranger.fields["output"])


def test_a_push_that_changes_nothing_of_the_compiler(compiler: tuple[Deployment, RepositoryDouble]) -> None:
    deployment, repository = compiler
    head = repository.commit({"docs/index.rst": "TVM\n"})
    deployment.wait_until_idle()
    (run,) = [one for one in repository.check_runs if one.head_sha == head]
    assert run.fields["conclusion"] == "success"
    assert "Nothing here that a case could reach" in str(run.fields["output"])
    assert not repository.issues
