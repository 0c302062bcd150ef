"""`assay bisect`: releases really made, the case really run in each; a compiler that needs no network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli import main
from fuzzing.cases import Corpus
from tests.bot.bisection.tiny_index import BACKEND, GOOD, LACKS, NO_IMPORT, RAISES, WRONG, make_index
from tests.bot.cli.command_helpers import GOOD as CASE
from tests.bot.cli.command_helpers import CommandResult, assay

#: Wrong from 1.6 on, and mended in 2.0; one release cannot be imported, another breaks in its own way.
RELEASES = {
    "1.0": GOOD,
    "1.4": NO_IMPORT,
    "1.5": LACKS,
    "1.5.post1": GOOD,
    "1.6": WRONG,
    "1.7rc1": RAISES,
    "1.7": WRONG,
    "1.8": RAISES,
    "2.0": GOOD,
}
QUICK = ("--repeats", "2")


class BisectionFolder:
    """A data folder with one case, and an index of releases."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.env = make_index(folder, RELEASES)
        Corpus(self.data / "corpus").add(CASE)

    def bisect(self, between: str, *options: str) -> CommandResult:
        command = ("bisect", CASE.id[:12], "--releases", between, "--backend", BACKEND, *options)
        return assay(self.data, *command, env=self.env)


@pytest.fixture(scope="module")
def bisection_folder(tmp_path_factory: pytest.TempPathFactory) -> BisectionFolder:
    return BisectionFolder(tmp_path_factory.mktemp("bisect"))


@pytest.mark.slow
def test_killed_and_begun_again_it_names_the_release_and_says_what_each_did(
    bisection_folder: BisectionFolder,
) -> None:
    between = ("--releases", "tinyc:1.0..1.7", "--backend", BACKEND, *QUICK)
    command = [sys.executable, "-P", "-m", "bot.cli", "bisect", CASE.id, *between]
    env = os.environ | bisection_folder.env | {"ASSAY_DATA_DIR": str(bisection_folder.data)}
    with subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert any("tinyc 1.7: wrong_result ×2" in line for line in process.stderr)
        process.kill()
    ran = bisection_folder.bisect("tinyc:1.0..1.7", *QUICK)
    assert ran.code == 1, ran.err
    assert "began to fail in tinyc 1.6; tinyc 1.5.post1 does not fail\n" in ran.out
    assert "  ✓  clean  1.5.post1  pass ×" in ran.out
    assert "  ✗  fails  1.7        wrong_result ×2" in ran.out
    assert "of 6 releases" in ran.out, "a post-release is one, a pre-release is none"
    result = bisection_folder.bisect("tinyc:1.0..1.7", "--json", *QUICK).result
    assert (result["kind"], result["before"], result["release"]) == ("found", "1.5.post1", "1.6")
    assert (result["cost"]["installs"], result["cost"]["runs"]) == (0, 0), "all of it was known"
    assert result["cost"]["replayed"] == sum(row["good"] + row["bad"] for row in result["probed"])


def test_the_release_that_mended_it_lies_behind_one_that_fails_otherwise(
    bisection_folder: BisectionFolder,
) -> None:
    ran = bisection_folder.bisect("tinyc:1.7..2.0", "--fixed-by", *QUICK)
    assert ran.code == 1, ran.err
    assert "stopped failing after tinyc 1.7, in tinyc 2.0 at the latest" in ran.out
    assert "could not be judged: 1.8" in ran.out


def test_a_release_that_cannot_be_had_is_said_with_its_reason(bisection_folder: BisectionFolder) -> None:
    ran = bisection_folder.bisect("tinyc:1.4..1.4")
    assert ran.code == 3
    assert "no answer: no release could be judged" in ran.out
    assert "–  skipped  1.4" in ran.out
    assert "libadd.so" in ran.out


def test_no_change_is_no_failure_of_the_command(bisection_folder: BisectionFolder) -> None:
    ran = bisection_folder.bisect("tinyc:1.6..1.7", *QUICK)
    assert ran.code == 0, ran.err
    assert "tinyc 1.6 fails already: no older release in tinyc:1.6..1.7 is clean" in ran.out


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--releases", "tinyc", "--backend", BACKEND), "is no range of releases"),
        (("--releases", "tinyc:3..4", "--backend", BACKEND), "there is no release in tinyc:3..4"),
        (("--releases", "tinyc:1..2"), "no compiler's package"),
        (("--releases", "tinyc:1..2", "--backend", BACKEND, "--option", "mode=odd"), "fast, slow"),
    ],
)
def test_mistakes_are_explained(
    bisection_folder: BisectionFolder,
    arguments: tuple[str, ...],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in {**bisection_folder.env, "ASSAY_DATA_DIR": str(bisection_folder.data)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as left:
        main(["bisect", CASE.id, *arguments])
    assert left.value.code == 2
    assert what in capsys.readouterr().err
