"""`assay run` on the real compilers, as people and scripts see it."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from bot.cli.campaigns.run import name_option
from bot.errors import UsageError
from bot.reports.run_findings import read_run
from bot.toolchains.installer import UnknownReleaseError
from fuzzing.cases import Corpus, Provenance, Tensor, TestCase
from fuzzing.cases.arguments import TensorArg
from fuzzing.cases.keras_layer import KerasLayer
from tests.bot.cli.command_helpers import GOOD, SINGLE_SOURCE, SOURCE, WRONG, CommandResult, assay

RealRun = Callable[[str], tuple[CommandResult, Path]]
WriteCatalogue = Callable[..., Path]


COMPILERS = [
    pytest.param(name, marks=getattr(pytest.mark, f"compiler_{name}")) for name in ("onnxruntime", "openvino")
]


class _Page(HTMLParser):
    """Counts what opens and closes, and keeps the text."""

    VOID = frozenset({"meta", "br", "hr", "img", "input", "link", "path", "rect", "line", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.slow
@pytest.mark.parametrize("backend", COMPILERS)
def test_the_reports_of_a_real_campaign_are_there_and_parse(backend: str, real_run: RealRun) -> None:
    ran, report = real_run(backend)
    result = json.loads((report / "report.json").read_bytes())
    assert ran.result == result | {"report": str(report)}
    assert result["toolchains"]["head"]["versions"][backend] == version(backend)
    cases = result["cases"]
    assert cases["run"] == sum(result["verdicts"]["head"].values()) > 0
    assert cases["run"] + cases["not_run"] == cases["planned"] > 1000
    assert result["stopped"] == ("budget" if cases["not_run"] else "")
    assert result["verdicts"]["head"]["pass"] > 0
    page = _Page()
    page.feed((report / "report.html").read_text())
    page.close()
    assert page.open == []
    assert result["headline"] in page.text
    assert (report / "report.md").read_text().startswith("#")
    for group in result["groups"]:
        ast.parse((report / group["reproducer"]).read_text())


@pytest.mark.parametrize("backend", COMPILERS)
def test_json_is_one_object_on_stdout_and_all_else_on_stderr(backend: str, real_run: RealRun) -> None:
    ran, _ = real_run(backend)
    accused = [group for group in ran.result["groups"] if group["classification"] == "inconclusive"]
    assert ran.code == (1 if accused else 0)
    lines = ran.err.splitlines()
    assert any("running cases at head" in line for line in lines)
    assert all(line.startswith("[") for line in lines), "each line of progress is one line"


@pytest.mark.compiler_onnxruntime
def test_a_failing_case_is_exit_code_1(catalogue_of: WriteCatalogue, tmp_path: Path) -> None:
    data, report = catalogue_of(GOOD, WRONG), tmp_path / "report"
    ran = assay(data, "run", "--backend", "onnxruntime", *SINGLE_SOURCE, "--report", report)
    assert ran.code == 1, ran.err
    assert f"onnxruntime {version('onnxruntime')}: 2 of 2 cases ran: 1 pass, 1 wrong_result" in ran.out
    assert sys.executable not in ran.out + "".join(path.read_text() for path in report.glob("report.*"))
    assert f"report: {report}/report.html" in ran.out
    result = json.loads((report / "report.json").read_bytes())
    [group] = result["groups"]
    assert (group["classification"], group["example"]["case"]) == ("inconclusive", WRONG.id)
    assert Path(group["reproducer"]).stem == group["signature"], "nothing about a base in its name"
    [found] = read_run(report / "report.json").findings
    assert found.message.startswith("1 case, failing: ")
    assert group["shown"][0]["head"] == {"failed": 3, "runs": 3}, "three fresh processes stand behind it"
    assert f"{WRONG.id[:8]}  {group['title']}" in ran.out
    assert f"next: assay replay {WRONG.id[:16]} --backend onnxruntime" in ran.out


@pytest.mark.compiler_onnxruntime
def test_any_two_toolchains_are_compared(catalogue_of: WriteCatalogue) -> None:
    data = catalogue_of(GOOD, WRONG)
    options = ("--base", sys.executable, *SINGLE_SOURCE, "--json")
    ran = assay(data, "run", "--backend", "onnxruntime", *options)
    assert ran.code == 0, ran.err
    assert [group["classification"] for group in ran.result["groups"]] == ["already_broken"]
    assert ran.result["toolchains"]["head"] == ran.result["toolchains"]["base"]


@pytest.mark.compiler_onnxruntime
def test_a_sample_of_a_source(catalogue_of: WriteCatalogue) -> None:
    """--seed is for it too, though the source is not generated."""
    data = catalogue_of(GOOD, WRONG)
    options = ("run", "--backend", "onnxruntime", *SINGLE_SOURCE, "--repeats", "1", "--sample", "1")
    ran = [assay(data, *options, "--seed", seed, "--json").result for seed in "0123"]
    assert {result["cases"]["planned"] for result in ran} == {1}
    assert {(one["cases"], one["drawn"]) for result in ran for one in result["sources"]} == {(2, 1)}
    assert len({tuple(result["verdicts"]["head"]) for result in ran}) == 2, "each seed draws anew"
    shown = assay(data, *options, "--seed", "0")
    assert f"{SOURCE}: 2 cases; 1 of 2 cases drawn (50.0%)" in shown.out


@pytest.mark.compiler_onnxruntime
def test_nothing_found_is_exit_code_0(catalogue_of: WriteCatalogue, tmp_path: Path) -> None:
    data, report = catalogue_of(GOOD), tmp_path / "report"
    ran = assay(data, "run", "--backend", "onnxruntime", *SINGLE_SOURCE, "--report", report)
    assert ran.code == 0, ran.err
    assert "1 of 1 cases ran: 1 pass" in ran.out
    assert "Nothing fails in 1 case" in ran.out
    assert "next: assay" not in ran.out
    assert json.loads((report / "report.json").read_bytes())["groups"] == []


@pytest.mark.slow
@pytest.mark.compiler_onnxruntime
def test_a_second_run_compiles_nothing(catalogue_of: WriteCatalogue) -> None:
    data, options = (
        catalogue_of(GOOD, WRONG),
        ("run", "--backend", "onnxruntime", "--source", SOURCE, "--workers", "1", "--repeats", "1"),
    )
    first = assay(data, *options, "--json").result
    assert first["cached"] == {"head": 0}
    assert first["report"] is None
    running = first["work"]["running"]
    assert (running["runs"], running["workers"]) == (2, 1)
    assert running["overhead"] > 0
    assert running["rate"] > 0
    assert running["phases"].keys() == {"convert", "compile", "run"}
    assert first["phases"]["head"] == {"run": {"pass": 1, "wrong_result": 1}}
    assert first["work"]["confirming"]["runs"] == 2, "the failure again, and what passes for the noise"
    again = assay(data, *options, "--json")
    assert again.code == 1, "what was found stays found"
    assert again.result["work"] == {}
    assert again.result["cached"] == {"head": 2}
    assert again.result["groups"] == first["groups"]
    shown = assay(data, *options)
    assert "2 verdicts from the cache; nothing was compiled" in shown.out
    assert ["run", "1", "wrong_result"] in [line.split() for line in shown.out.splitlines()]
    assert "use --report FOLDER for a report" in shown.out
    other = assay(data, *options, "--option", "optimization=disabled", "--json").result
    assert (other["cached"], other["configuration"]) == ({"head": 0}, "optimization=disabled")
    assert other["work"]["running"]["runs"] == 2
    [group] = other["groups"]
    assert group["example"]["head"]["configuration"] == "optimization=disabled"
    assert group["example"]["head"]["evidence"]["component"] == "kernels", "the repeat climbed the ablation"


@pytest.mark.slow
@pytest.mark.compiler_onnxruntime
def test_sources_with_commas_are_ranked_together(catalogue_of: WriteCatalogue) -> None:
    """The planted catalog, and one that is really collected beside it."""
    data = catalogue_of(GOOD, WRONG)
    named = ("--source", f"{SOURCE}, onnx-simple-tests", "--source", SOURCE, "--strategy", "random")
    ran = assay(data, "run", "--backend", "onnxruntime", *named, "--repeats", "1", "--json")
    assert ran.code == 1, ran.err
    planted_source, other = ran.result["sources"]
    assert (planted_source["source"], planted_source["cases"]) == (SOURCE, 2)
    assert (other["source"], other["whole"], other["library"]) == (
        "onnx-simple-tests",
        1,
        f"onnx {version('onnx')}",
    )
    assert ran.result["cases"]["planned"] == 2 + other["cases"] > 10
    result = ran.result["ranking"]
    assert (result["strategy"], result["asked"], result["failed"], result["history"]) == (
        "random",
        "random",
        "",
        None,
    )
    shown = assay(data, "run", "--backend", "onnxruntime", *named, "--repeats", "1")
    lines = [line.strip() for line in shown.out.splitlines()]
    assert f"{SOURCE}: 2 cases" in lines
    assert any(line.startswith("Cases ordered by strategy random, using the history") for line in lines)


@pytest.mark.slow
@pytest.mark.compiler_onnxruntime
def test_the_cases_of_a_folder(tmp_path: Path) -> None:
    """What the backend, or the frontend asked for, does not take is counted."""
    corpus = Corpus(tmp_path / "mine")
    keras = KerasLayer("keras.layers.ReLU", (), (TensorArg("x", dtype="float32", shape=(2,)),))
    x = Tensor.of(np.ones(2, np.float32))
    layer = TestCase(keras, (("x", x),), Provenance("mine", "relu", "relu", "keras", "3"))
    for case in (GOOD, layer):
        corpus.add(case)
    argv = ("run", "--backend", "onnxruntime", "--cases", corpus.root, "--frontend", "onnx", "--no-cache")
    ran = assay(tmp_path / "data", *argv, "--json")
    assert ran.code == 0, ran.err
    assert ran.result["cases"] == {"planned": 1, "run": 1, "not_run": 0}
    assert ran.result["skipped"] == {"a program of kind KerasLayer": 1}
    assert not (tmp_path / "data" / "runs").exists(), "--no-cache keeps nothing"
    empty = assay(tmp_path / "data", "run", "--backend", "openvino", "--cases", tmp_path / "data")
    assert empty.code == 2
    assert "holds no case of kind" in empty.err


@pytest.mark.compiler_onnxruntime
def test_a_folder_that_is_half_written_is_a_mistake(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "mine")
    for case in (GOOD, WRONG):
        corpus.add(case)
    broken = corpus.folder(GOOD.id) / "case.json"
    broken.write_bytes(broken.read_bytes()[:40])
    ran = assay(tmp_path, "run", "--backend", "onnxruntime", "--cases", corpus.root, "--no-cache", "--json")
    assert ran.code == 2, ran.out
    assert f"--cases {corpus.root}: broken case: " in ran.result["error"]["what"]
    assert str(corpus.folder(GOOD.id)) in ran.result["error"]["next"]
    assert "catalogs" not in ran.out + ran.err


@pytest.mark.parametrize("backend", COMPILERS)
def test_a_device_that_is_not_here_is_exit_code_3(backend: str, tmp_path: Path) -> None:
    """No case fails for want of it."""
    device = "CUDA" if backend == "onnxruntime" else "GPU"
    corpus = Corpus(tmp_path / "mine")
    corpus.add(GOOD)
    options = ("--device", device, "--cases", corpus.root, "--no-cache", "--json")
    hidden = {"CUDA_VISIBLE_DEVICES": "", "OCL_ICD_VENDORS": "/nowhere"}
    ran = assay(tmp_path, "run", "--backend", backend, *options, env=hidden)
    assert ran.code == 3, ran.out
    assert device in ran.result["error"]["what"]


@pytest.mark.network
@pytest.mark.compiler_onnxruntime
def test_with_a_base_only_regressions_count(catalogue_of: WriteCatalogue, tmp_path: Path) -> None:
    """The same release twice: the case fails on both sides, so nothing is new."""
    release = version("onnxruntime")
    options = ("--release", release, "--base", release, "--with", "six==1.17.0", *SINGLE_SOURCE, "--json")
    ran = assay(
        catalogue_of(GOOD, WRONG),
        "run",
        "--backend",
        "onnxruntime",
        *options,
        "--report",
        tmp_path / "report",
    )
    assert ran.code == 0, ran.err
    assert [group["classification"] for group in ran.result["groups"]] == ["already_broken"]
    assert "six==1.17.0" in ran.result["toolchains"]["head"]["requirements"]


MISTAKES = {
    "a release that is not a version": (["--release", "banana"], "--release banana: not a version"),
    "a seed without a generated source": (
        ["--backend", "onnxruntime", "--source", "onnx-node-tests", "--seed", "7"],
        "--seed is for generated sources",
    ),
    "models without a source that takes them": (
        ["--backend", "onnxruntime", "--source", "onnx-node-tests", "--models", "."],
        "--models is for generated sources; add --source with one of: onnx-mutants",
    ),
    "backend": (
        ["--backend", "openvivo"],
        "did you mean 'openvino'? there are: inductor, iree, keras, onnxruntime, ",
    ),
    "the reference": (["--backend", "onnx_reference"], "it is a reference"),
    "source": (["--source", "onnx-node-test"], "did you mean 'onnx-node-tests'?"),
    "profile": (["--profile", "oprea"], "did you mean 'opera'?"),
    "source with a space": (["--source", "a b"], "onnx-node-tests"),
    "budget without a unit": (["--budget", "3"], "such as 90s, 5m or 1h"),
    "budget of nothing": (["--budget", "0s"], "--budget 0s"),
    "budget of a month": (["--budget", "1000h"], "--budget 1000h"),
    "device": (["--device", "NPU"], "'NPU' is not a device of onnxruntime"),
    "frontend": (["--frontend", "torch"], "'torch' is not a frontend of onnxruntime; there are: onnx, keras"),
    "option": (["--option", "optimisation=basic"], "did you mean 'optimization'?"),
    "option's value": (["--option", "optimization=basci"], "--option optimization: cannot be 'basci'"),
    "sources twice over": (["--cases", ".", "--source", "onnx-node-tests"], "keep one"),
    "one source of several": (["--source", "onnx-node-tests,onnx-nod-tests"], "--source onnx-nod-tests: "),
    "a source of another library": (["--source", "torch-opinfo"], "torch-opinfo' has torch cases"),
    "strategy": (
        ["--strategy", "oprea"],
        "--strategy oprea: 'oprea' is not a strategy; did you mean 'opera'?",
    ),
    "two to test": (["--release", "1.20.0", "--python", "python3"], "name two compilers to test"),
    "two heads": (["--repo", ".", "--head", "a", "--base", "b", "--python", "p"], "without --head"),
    "release": (["--release", "banana"], "--release banana: not a version"),
    "base": (["--release", "1.20.0", "--base", "banana"], "--base banana: not a version"),
    "a package beside no release": (["--with", "torch==2.1.0"], "name one with --release"),
    "a package without a version": (
        ["--release", "1.20.0", "--with", "torch>=2"],
        "--with torch>=2: must be pinned exactly",
    ),
    "repeats": (["--repeats", "0"], "1<=x<=20"),
    "workers": (["--workers", "0"], "--workers"),
}


@pytest.mark.parametrize(("argv", "helps"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_exit_code_2_before_anything_is_done(
    argv: list[str], helps: str, tmp_path: Path
) -> None:
    report, data = tmp_path / "report", tmp_path / "data"
    given = argv if "--backend" in argv else ["--backend", "onnxruntime", *argv]
    ran = assay(data, "run", *given, "--report", report)
    assert ran.code == 2, ran.err
    assert ran.out == ""
    first, *_, last = ran.err.splitlines()
    assert first.startswith("assay: ")
    assert helps in ran.err
    assert last.startswith("  next: ")
    assert not report.exists()
    assert not (data / "corpus").exists()


def test_an_unknown_release_is_blamed_on_its_option() -> None:
    with (
        pytest.raises(UsageError, match=r"--base 99\.0\.0: openvino"),
        name_option("--base", "99.0.0"),
    ):
        raise UnknownReleaseError("openvino 99.0.0 cannot be installed")


def test_mistakes_are_json_where_json_was_asked_for(tmp_path: Path) -> None:
    ran = assay(tmp_path, "run", "--backend", "nope", "--json", "--report", tmp_path / "report")
    assert ran.code == 2
    assert (ran.result["error"]["kind"], ran.result["error"]["code"]) == ("UnknownNameError", 2)
    assert ran.err.startswith("assay: no backend is called 'nope'")


def test_a_report_that_cannot_be_written_is_said_before_the_campaign(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = assay(tmp_path, "run", "--backend", "onnxruntime", "--report", tmp_path / "file" / "report")
    assert ran.code == 2, ran.err
    assert f"--report {tmp_path}/file/report" in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "corpus").exists()


def test_an_interpreter_without_the_compiler_is_exit_code_3(
    catalogue_of: WriteCatalogue, empty_python: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    options = ("--source", SOURCE, "--python", empty_python, "--report", report, "--json")
    ran = assay(catalogue_of(GOOD), "run", "--backend", "openvino", *options)
    assert ran.code == 3
    error = ran.result["error"]
    assert "collecting" not in ran.err, "said before any case is collected"
    assert f"{empty_python} cannot import openvino" in error["what"]
    assert f"`assay doctor --python {empty_python}` says what to install for openvino" in error["next"]
    assert not (report / "report.json").exists()
