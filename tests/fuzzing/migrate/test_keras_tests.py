"""The source of Keras' own tests, over a few of its files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fuzzing.cases import KerasLayer, TestCase
from fuzzing.errors import InfrastructureError
from fuzzing.migrate import keras_runner, keras_tests, sources
from fuzzing.migrate.parts import Part
from fuzzing.migrate.sources import Skip

FILES = (
    "keras/src/layers/reshaping/flatten_test.py",  # imports the conftest that the wheel lacks
    "keras/src/layers/preprocessing/rescaling_test.py",  # imports TensorFlow
    "keras/src/layers/reshaping/permute_test.py",
)


@pytest.fixture(scope="module")
def migrated() -> list[TestCase | Skip]:
    return list(keras_tests.of_files(FILES))


@pytest.fixture(scope="module")
def cases(migrated: list[TestCase | Skip]) -> list[TestCase]:
    return [item for item in migrated if isinstance(item, TestCase)]


def test_each_file_gives_cases(cases: list[TestCase]) -> None:
    assert {case.provenance.test.split("::")[0] for case in cases} == set(FILES)


def test_the_layers_under_test_are_among_them(cases: list[TestCase]) -> None:
    layers = {case.program.layer for case in cases if isinstance(case.program, KerasLayer)}
    assert {"keras.layers.Flatten", "keras.layers.Rescaling", "keras.layers.Permute"} <= layers


def test_provenance(cases: list[TestCase]) -> None:
    from importlib.metadata import version

    assert {(case.provenance.source, case.provenance.library, case.provenance.version) for case in cases} == {
        ("keras-tests", "keras", version("keras"))
    }


def test_an_instance_is_there_once(cases: list[TestCase]) -> None:
    programs = [case.program.to_bytes() for case in cases]
    assert len(programs) == len(set(programs)) > 10


def test_no_file_was_in_trouble(migrated: list[TestCase | Skip]) -> None:
    assert [item for item in migrated if isinstance(item, Skip) and item.test in FILES] == []


def test_the_selection() -> None:
    files = keras_tests.test_files()
    assert set(FILES) <= set(files)
    assert files == sorted(files)
    assert len(files) > 100  # 133 in Keras 3.15.1
    assert not any("/saving/" in file or "/optimizers/" in file for file in files)


def test_the_parts_are_the_whole() -> None:
    files = keras_tests.test_files()
    shares = [[file for file in files if Part(number, 3).holds(file)] for number in (1, 2, 3)]
    assert sorted(file for share in shares for file in share) == files
    assert all(shares)


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras_tests, "find_spec", lambda name: None if name == "pytest" else object())
    with pytest.raises(InfrastructureError, match="pip install pytest"):
        next(iter(sources.get("keras-tests").migrate()))


TROUBLED = {
    "crash_test.py": ("import os, signal\ndef test():\n    os.kill(os.getpid(), signal.SIGSEGV)\n", -11),
    "good_test.py": ("def test():\n    pass\n", 0),
    "red_test.py": ("def test():\n    assert False\n", 1),
    "broken_test.py": ("import no_such_module\n", 2),
    "empty_test.py": ("", 5),
    "stand_in_test.py": ("import tensorflow.nowhere as tf\ndef test():\n    assert tf.anything\n", 0),
    "inside_test.py": ("def test():\n    import jax\n", 1),
}


@pytest.fixture(scope="module")
def exits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int | None]:
    """What the runner reports of files of ours, run one after another."""
    folder = tmp_path_factory.mktemp("files")
    for name, (text, _) in TROUBLED.items():
        (folder / name).write_text(text)
    report = folder / "report.jsonl"
    files = [str(folder / name) for name in TROUBLED]
    subprocess.run(
        [sys.executable, "-P", keras_runner.__file__, str(report), *files],
        check=True,
        env={"KERAS_BACKEND": "torch", "PATH": "/usr/bin:/bin", "HOME": str(folder), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )
    said = [json.loads(line) for line in report.read_text().splitlines()]
    return {Path(line["file"]).name: line["exit"] for line in said}


@pytest.mark.parametrize("name", TROUBLED)
def test_a_file_in_trouble_costs_itself(name: str, exits: dict[str, int | None]) -> None:
    assert exits[name] == TROUBLED[name][1]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (0, None),
        (1, None),
        (2, "the test file cannot be imported"),
        (5, "the test file holds no tests"),
        (-11, "the test file was ended by a signal"),
        (None, "the test file ran out of time"),
    ],
)
def test_exit_codes_become_reasons(code: int | None, reason: str | None) -> None:
    assert keras_tests.trouble(code) == reason
