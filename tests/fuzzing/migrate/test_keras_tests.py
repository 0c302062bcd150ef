"""The source of Keras' own tests, over a few of its files."""

from __future__ import annotations

import pytest

from fuzzing.cases import KerasLayer, TestCase
from fuzzing.errors import InfrastructureError
from fuzzing.migrate import keras_tests, sources
from fuzzing.migrate.source_parts import Part
from fuzzing.migrate.sources import Skip

FILES = (
    "keras/src/layers/reshaping/flatten_test.py",  # imports the conftest that the wheel lacks
    "keras/src/layers/preprocessing/rescaling_test.py",  # imports TensorFlow
    "keras/src/layers/reshaping/permute_test.py",
)


#: Files of ours that run among them, with the reason why one is a skip.
_CALL = "    import keras, numpy\n    keras.ops.{}(numpy.ones((2, 3), 'float32'))\n"
OURS = {
    "crash_test.py": (
        "import os, signal\ndef test():\n"
        + _CALL.format("sinh")
        + "    os.kill(os.getpid(), signal.SIGSEGV)\n",
        "the test file was ended by a signal",
    ),
    "red_test.py": ("def test():\n" + _CALL.format("cosh") + "    assert False\n", None),
    "broken_test.py": ("import no_such_module\n", "the test file cannot be imported"),
    "empty_test.py": ("", "the test file holds no tests"),
    "stand_in_test.py": ("import tensorflow.nowhere as tf\ndef test():\n" + _CALL.format("tanh"), None),
    "inside_test.py": ("def test():\n    import tensorflow\n" + _CALL.format("sin"), None),
    "left_out_test.py": ("def test(): pass\ndef test_quantize():\n" + _CALL.format("cos"), None),
}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> list[TestCase | Skip]:
    folder = tmp_path_factory.mktemp("files")
    for name, (text, _) in OURS.items():
        (folder / name).write_text(text)
    return list(keras_tests.record_files([*FILES, *(str(folder / name) for name in OURS)]))


@pytest.fixture(scope="module")
def cases(migrated: list[TestCase | Skip]) -> list[TestCase]:
    return [item for item in migrated if isinstance(item, TestCase)]


def test_each_file_gives_cases(cases: list[TestCase]) -> None:
    assert set(FILES) <= {case.provenance.test.split("::")[0] for case in cases}


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
    shares = [[file for file in files if Part(number, 3).contains(file)] for number in (1, 2, 3)]
    assert sorted(file for share in shares for file in share) == files
    assert all(shares)


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras_tests, "find_spec", lambda name: None if name == "pytest" else object())
    with pytest.raises(InfrastructureError, match="pip install pytest"):
        next(iter(sources.get("keras-tests").migrate()))


@pytest.mark.parametrize("name", OURS)
def test_a_file_in_trouble_costs_itself(name: str, migrated: list[TestCase | Skip]) -> None:
    found = [item.reason for item in migrated if isinstance(item, Skip) and item.test.endswith("/" + name)]
    wanted = OURS[name][1]
    assert found == ([] if wanted is None else [wanted])


def test_what_our_files_called_was_recorded(cases: list[TestCase]) -> None:
    """Before a crash and in a red test; with a stand-in at a file's top, none inside a test; not by name."""
    called = {case.provenance.operator.rsplit(".", 1)[-1] for case in cases}
    assert {"sinh", "cosh", "tanh"} <= called
    assert not {"sin", "cos"} & called


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
    assert keras_tests.failure_reason(code) == reason
