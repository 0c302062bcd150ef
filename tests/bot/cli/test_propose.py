"""`assay propose --dry-run`, beside a service's database."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.store import Database, bugs, campaigns, outcomes
from bot.store.models import Campaign, Toolchain
from fuzzing.cases import Corpus
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from tests.bot.cli.command_helpers import assay, create_empty_venv
from tests.bot.proposals.plants import PLANTS, Plant, planted_start
from tests.bot.proposals.regressions import cumsum
from tests.bot.proposals.trees import make_tree

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    case = cumsum()
    Corpus(tmp_path / "corpus").add(case)
    mismatch = Mismatch("y", "value", "differs", worst=(0, 0), got="1.5", want="1.0", rtol=1e-3, atol=1e-5)
    outcome = Outcome(
        case.id,
        "onnxruntime",
        "new",
        "CPU",
        Verdict.WRONG_RESULT,
        Phase.RUN,
        "wrong",
        {},
        Evidence(mismatches=(mismatch,)),
    )
    database = Database(f"sqlite:///{tmp_path}/assay.db")
    database.migrate()
    with database.transaction() as session:
        toolchain = Toolchain(
            digest="new", backend="onnxruntime", provisioner="release", label="ort 1", python="/x/python",
            versions={"onnxruntime": "1.0"}, requirements=["onnxruntime==1.0"], created_at=NOW,
        )  # fmt: skip
        session.add(toolchain)
        outcomes.record(session, [outcome], NOW)
        row = Campaign(
            target="octo/compiler", head="a" * 40, base="b" * 40, trigger="push", head_toolchain="new",
            created_at=NOW, updated_at=NOW,
        )  # fmt: skip
        campaign, _ = campaigns.create(session, row)
        by = bugs.Sighting(campaign.id, False, case.id, "onnxruntime", "CPU", "", {}, {"operator": "CumSum"})
        bugs.record_sighting(session, "octo/compiler", "abc1", "[ONNX] CumSum: wrong values", NOW, "", by)
    database.close()
    return tmp_path


def test_the_patch_applies_to_the_checkout(data: Path, tmp_path: Path) -> None:
    checkout = make_tree(tmp_path / "checkout", "onnxruntime")
    ran = assay(data, "propose", "abc1", "--dry-run", "--repository", checkout)
    assert ran.code == 0, ran.err
    subprocess.run(["git", "apply", "-"], cwd=checkout, input=ran.out, text=True, check=True, timeout=60)
    again = assay(data, "propose", "1", "--dry-run", "--repository", checkout, "--json")
    output = json.loads(again.out)
    assert (output["patch"], output["test"]) == ("", "test_cum_sum_exclusive_reverse_values")
    assert output["command"][1:] == [
        "onnxruntime/test/python/onnxruntime_test_python.py",
        "TestInferenceSession.test_cum_sum_exclusive_reverse_values",
    ]


def test_a_signed_commit_is_applied_in_the_repositorys_form(data: Path, tmp_path: Path) -> None:
    checkout = make_tree(tmp_path / "checkout", "onnxruntime")
    (checkout / "word").write_text("")

    def git(*arguments: str, stdin: str = "") -> str:
        identity = ["-c", "user.name=Bo", "-c", "user.email=bo@example.org"]
        command = ["git", *identity, *arguments]
        done = subprocess.run(command, cwd=checkout, input=stdin, text=True, check=True, capture_output=True)
        return done.stdout

    git("init", "-q")
    git("add", ".")
    for number in range(6):
        git("commit", "-q", "--allow-empty", "-m", f"tests: add {number}")
    signer = "Ada L <ada@example.org>"
    ran = assay(data, "propose", "abc1", "--dry-run", "--repository", checkout, "--sign-off", signer)
    assert ran.code == 0, ran.err
    git("am", "-q", stdin=ran.out)
    message = "tests: add a regression test for values of CumSum\n\nSigned-off-by: Ada L <ada@example.org>\n"
    assert git("log", "-1", "--format=%an <%ae>%n%B").strip() == f"{signer}\n{message}".strip()
    assert not git("status", "--porcelain")


def test_passing_cases_that_add_to_the_suite_are_one_patch(data: Path, tmp_path: Path) -> None:
    checkout = make_tree(tmp_path / "checkout", "onnxruntime")
    case = cumsum()
    database = Database(f"sqlite:///{data}/assay.db")
    with database.transaction() as session:
        newest = campaigns.newest(session, "octo/compiler", "")
        assert newest is not None
        newest.config = {"backend": "onnxruntime", "device": "CPU"}
        campaigns.write_plan(session, newest.id, [case.id])
        passed = Outcome(case.id, "onnxruntime", "newer", "CPU", Verdict.PASS, Phase.RUN, "", {}, Evidence())
        row = Toolchain(
            digest="newer", backend="onnxruntime", provisioner="release", label="ort 2", python="/x/python",
            versions={}, requirements=[], created_at=NOW,
        )  # fmt: skip
        session.add(row)
        session.flush()
        newest.head_toolchain = "newer"
        outcomes.record(session, [passed], NOW)
    database.close()
    given = ("propose", "--coverage-gap", "octo/compiler", "--dry-run", "--repository", checkout, "--json")
    ran = assay(data, *given)
    assert ran.code == 0, ran.err
    output = json.loads(ran.out)
    (test,) = output["tests"]
    assert (test["test"], test["operators"]) == ("test_cum_sum_exclusive_reverse", ["CumSum"])
    subprocess.run(
        ["git", "apply", "-"], cwd=checkout, input=output["patch"], text=True, check=True, timeout=60
    )
    again = json.loads(assay(data, *given).out)
    assert (again["tests"], again["patch"], again["cases"]) == ([], "", 1)


def test_mistakes_are_explained(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, output in (
        (("1",), "/assay propose"),
        (("7", "--dry-run"), "unknown bug 7"),
        (("--dry-run",), "give a BUG, --case CASE or --coverage-gap TARGET"),
        (("--dry-run", "--coverage-gap", "octo/other"), "no commit of octo/other was tested yet"),
        (("1", "--dry-run", "--sign-off", "ada"), "write 'Name <address>'"),
        (("1", "--dry-run", "--repository", tmp_path / "empty", "--writer", "tvm-onx"), "tvm-onnx"),
        (("1", "--dry-run", "--repository", tmp_path / "empty", "--writer", "tvm-onnx"), "has a place"),
    ):
        ran = assay(data, "propose", *arguments)
        assert ran.code in (2, 3), arguments
        assert output in " ".join(ran.err.split()), ran.err


@pytest.mark.compiler_onnxruntime
def test_a_case_that_fails_here_gives_a_test_without_a_service(tmp_path: Path) -> None:
    checkout = make_tree(tmp_path / "checkout", "onnxruntime")
    (plant,) = (one for one in PLANTS if one.repository == "onnxruntime")
    corpus = Corpus(tmp_path / "data/corpus")
    corpus.add(plant.case)
    given = ("--backend", "onnxruntime", "--dry-run", "--repository", checkout)
    faulty = ("--python", planted_venv(tmp_path / "venv", plant))
    by_id = assay(tmp_path / "data", "propose", "--case", plant.case.id[:12], *given, *faulty)
    by_folder = assay(tmp_path / "other", "propose", "--case", corpus.folder(plant.case.id), *given, *faulty)
    assert (by_id.code, by_folder.code) == (0, 0), by_id.err + by_folder.err
    assert "def test_cum_sum_exclusive_reverse_values" in by_id.out
    assert by_folder.out == by_id.out
    subprocess.run(["git", "apply", "-"], cwd=checkout, input=by_id.out, text=True, check=True, timeout=60)

    passes = assay(tmp_path / "data", "propose", "--case", plant.case.id[:12], *given)
    assert passes.code == 2
    assert f"{plant.case.id[:16]} is no failing case: pass on onnxruntime" in passes.err


def planted_venv(folder: Path, plant: Plant) -> Path:
    """The interpreter of an environment with our packages, in each process of which a fault is planted."""
    python = create_empty_venv(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    start = f"import os\n\nos.environ.pop('PLANTED', None)\n{planted_start([plant])}"
    (site / "sitecustomize.py").write_text(start)
    return python


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--case", "abcd"), "--case and --backend go together"),
        (("7", "--backend", "tvm"), "--case and --backend go together"),
        (("--case", "abcd", "--backend", "tvm"), "--case needs --repository"),
        (("7", "--profile", "eagle"), "--python, --device, --option and --profile need --case"),
        (("7", "--case", "abcd", "--backend", "tvm"), "give a BUG, --case CASE or --coverage-gap TARGET"),
    ],
)
def test_options_that_do_not_fit_are_named(tmp_path: Path, given: tuple[str, ...], said: str) -> None:
    ran = assay(tmp_path, "propose", "--dry-run", *given)
    assert ran.code == 2
    assert said in ran.err
