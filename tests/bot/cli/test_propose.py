"""`assay propose --dry-run`, beside a service's database."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.store import Database, bugs, campaigns, outcomes
from bot.store.models import Campaign, Toolchain
from fuzzing.cases import Corpus
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from tests.bot.cli.command_helpers import assay
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
        (("--dry-run",), "give a BUG, or --coverage-gap TARGET"),
        (("--dry-run", "--coverage-gap", "octo/other"), "no commit of octo/other was tested yet"),
        (("1", "--dry-run", "--sign-off", "ada"), "write 'Name <address>'"),
        (("1", "--dry-run", "--repository", tmp_path / "empty", "--writer", "tvm-onx"), "tvm-onnx"),
        (("1", "--dry-run", "--repository", tmp_path / "empty", "--writer", "tvm-onnx"), "has a place"),
    ):
        ran = assay(data, "propose", *arguments)
        assert ran.code in (2, 3), arguments
        assert output in " ".join(ran.err.split()), ran.err
