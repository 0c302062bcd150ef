"""Pull requests of PyTorch's own repository, made from the installed torch's Python sources."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from bot.campaigns.plan.catalog import SourceCatalog
from bot.config.layouts import layouts
from bot.store import findings
from fuzzing.cases import Corpus, TestCase
from fuzzing.migrate.torch_opinfo import load_database, operator_cases
from tests.github.repository_double import RepositoryDouble
from tests.scenarios.deployment import Deployment

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.compiler_inductor]

DECOMPOSITIONS = "torch/_decomp/decompositions.py"
SOURCE = "torch-opinfo"
TORCH = version("torch").partition("+")[0]
CONFIG = f"""\
version: 1
backend: inductor
options: {{torch_backend: aot_eager_decomp_partition}}  # decompositions, without minutes of a C++ compiler
sources: [{SOURCE}]
budget: 10m
repeats: 2
toolchain:
  provisioner: [overlay, release]
reduction:
  cases: 0
reports:
  mode: auto
"""


def sources() -> dict[str, str | None]:
    """The files of the installed torch that an overlay carries, where PyTorch's repository has them."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    (layout,) = [one for one in layouts() if one.backend == "inductor"]
    assert layout.paths == {path: path for path in layout.paths}
    files: dict[str, str | None] = {
        file.relative_to(package.parent).as_posix(): file.read_text(encoding="utf-8")
        for path in layout.paths
        for file in (package.parent / path).rglob("*.py")
    }
    return {**files, "version.txt": f"{TORCH}a0\n"}


def write_cases(corpus: Path) -> None:
    """The cases of two operators, as the only ones of a source whose parts are all migrated."""
    entries = {entry.name: entry for entry in load_database()}
    made = [
        case
        for name in ("nn.functional.hardswish", "neg")
        for case in operator_cases(entries[name], name)
        if isinstance(case, TestCase)
    ][:6]
    for case in made:
        Corpus(corpus).add(case)
    for part in SourceCatalog(corpus, SOURCE).parts():
        part.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f'{{"id": "{case.id}"}}\n' for case in made] if part.number == 1 else []
        part.path.write_text("".join(lines) + json.dumps({"library": "torch", "skipped": {}}) + "\n")


@pytest.fixture
def pytorch(tmp_path: Path) -> Iterator[tuple[Deployment, RepositoryDouble]]:
    """A service with the real compiler, and the repository; its first commit is torch as it is installed."""
    with Deployment(tmp_path, real_compiler=True, hurried=False) as deployment:
        write_cases(deployment.data_dir / "corpus")
        repository = deployment.hub.repository("octo/pytorch")
        repository.commit({".github/assay.yml": CONFIG, **sources()}, message="Begin", quiet=True)
        yield deployment, repository
        assert deployment.internal_errors() == []


def test_a_wrong_decomposition_is_found(pytorch: tuple[Deployment, RepositoryDouble]) -> None:
    deployment, repository = pytorch
    text = sources()[DECOMPOSITIONS]
    assert text is not None
    right = "return self * torch.clamp(torch.clamp(self + 3, min=0), max=6) / 6"
    assert text.count(right) == 1
    changes: dict[str, dict[str, str | None]] = {
        "broken": {DECOMPOSITIONS: text.replace(right, right.replace("max=6", "max=5"))},
        "formatted": {DECOMPOSITIONS: f"# A comment.\n{text}\n\n"},
        "native": {"aten/src/ATen/native/Activation.cpp": "int x;\n"},
    }
    for branch, files in changes.items():
        repository.open_pull(files, branch=branch)
    deployment.wait_until_idle(1200.0)

    runs = {run.head_sha: str(run.fields["output"]) for run in repository.check_runs}
    campaigns = {one.head: one for one in deployment.campaigns(repository.name)}
    assert {one.state for one in campaigns.values()} == {"done"}
    with deployment.rows.reading() as session:
        found = list(findings.of_campaign(session, campaigns[repository.head("broken")].id))
    operators = {one.id: one.provenance.operator for one in Corpus(deployment.data_dir / "corpus")}
    assert {(operators[one.case_id], one.classification) for one in found} == {
        ("nn.functional.hardswish", "regression")
    }
    assert "1 new bug" in runs[repository.head("broken")]
    assert "Nothing here that a case could reach" in runs[repository.head("formatted")]
    assert "Not tested: only a build of the compiler has this change" in runs[repository.head("native")]
