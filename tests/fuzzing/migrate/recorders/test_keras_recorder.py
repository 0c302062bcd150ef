"""The recorder of Keras, in a pytest run that ends by a crash; what it recorded, replayed by eager Keras."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from fuzzing.cases import KerasLayer, NewObject, Recipe, Tensor, TestCase
from fuzzing.execute.reference_runner import ReferenceRunners
from fuzzing.migrate.recorders import recording
from fuzzing.migrate.sources import Skip

pytestmark = pytest.mark.compiler_keras_eager

FILE = Path(__file__).with_name("recorded_keras.py")


@pytest.fixture(scope="module")
def recorded() -> recording.Recording:
    """pytest over FILE, whose last test ends the process by a signal."""
    pytest_run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(FILE)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_CRASH", "1")
        patch.setenv("OMP_NUM_THREADS", "1")
        return recording.record("keras", pytest_run, FILE.parent)


@pytest.fixture(scope="module")
def cases(recorded: recording.Recording) -> dict[str, list[TestCase]]:
    """The cases by the function that made them, in order."""
    found: dict[str, list[TestCase]] = {}
    for item in recorded.items:
        if isinstance(item, TestCase):
            found.setdefault(item.provenance.test.split("::")[-1], []).append(item)
    return found


def calls(cases: list[TestCase]) -> list[str]:
    """Each case's call, as its Python text says it."""
    texts = []
    for case in cases:
        assert isinstance(case.program, KerasLayer)
        text = case.program.source()
        of_function = re.search(r"(?m)^        return (keras\..*)$", text)
        of_layer = re.search(r"(?m)^    model = keras\.Model\(\[.*?\], (.*)\)$", text)
        found = of_function or of_layer
        assert found is not None
        texts.append(found[1])
    return texts


def test_the_crash_was_one(recorded: recording.Recording) -> None:
    assert recorded.exit_code == -9
    assert recorded.bugs == []
    assert recorded.processes == 1


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        (
            "test_one_instance_is_one_case_however_it_is_written",
            ["keras.ops.sum(x, axis=1)", "keras.layers.Dense(units=4)(inputs)"],
        ),
        (
            "test_arguments_are_those_of_the_instance_called",
            ["keras.layers.Dense(units=7)(inputs)", "keras.layers.Dense(activation='relu', units=5)(inputs)"],
        ),
        (
            "test_nested_layers",
            [
                "keras.layers.Bidirectional(layer=keras.layers.GRU(return_sequences=True, units=3), "
                "merge_mode='sum')(sequences)",
                "keras.layers.RNN(cell=[keras.layers.LSTMCell(units=2), keras.layers.GRUCell(units=3)])"
                "(sequences)",
                "keras.layers.Dense(activation=keras.activations.tanh, kernel_initializer="
                "keras.initializers.Constant(value=0.5), kernel_regularizer=keras.regularizers.L2(l2=0.25), "
                "units=2)(inputs)",
            ],
        ),
        (
            "test_tensors_keep_their_place",
            [
                "keras.layers.GRU(units=2)(sequences, mask=mask)",
                "keras.layers.MultiHeadAttention(key_dim=3, num_heads=2)(query, value, use_causal_mask=True)",
                "keras.ops.einsum('ij,kj->ik', operands, operands)",
                "keras.ops.add(x1=2.0, x2=x2)",
                "keras.ops.concatenate([xs, xs1], axis=-1)",
            ],
        ),
        (
            "test_what_functions_take_of_real_tensors_alone",
            ["keras.activations.mish(x)", "keras.activations.softmax(x, axis=(0, 1))"],
        ),
        ("test_a_layer_of_the_tests_own_is_looked_through", ["keras.layers.Dropout(rate=0.25)(inputs)"]),
        ("test_only_the_outermost_call_counts", ["keras.layers.Softmax()(inputs)"]),
        ("test_a_functional_model_is_its_layers", ["keras.layers.LayerNormalization()(inputs)"]),
        ("test_what_fails_is_not_recorded_and_may_yet_succeed", ["keras.ops.cholesky(x)"]),
        ("test_a_crash_keeps_what_was_recorded", ["keras.ops.flip(x, axis=0)"]),
    ],
)
def test_what_a_test_calls(test: str, wanted: list[str], cases: dict[str, list[TestCase]]) -> None:
    assert calls(cases[test]) == wanted


def test_values_are_those_of_the_call(cases: dict[str, list[TestCase]]) -> None:
    [case] = cases["test_values_are_kept_as_they_were"]
    [(name, value)] = case.values()
    assert name == "x"
    assert isinstance(value, Tensor)
    np.testing.assert_array_equal(value.array(), np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))


def test_unknown_dimensions_of_symbolic_tensors_get_sizes(cases: dict[str, list[TestCase]]) -> None:
    [case] = cases["test_a_functional_model_is_its_layers"]
    assert case.inputs == (("inputs", Recipe("uniform", "float32", (2, 3, 3), 0.0, 1.0, 0)),)


def test_objects_are_told_as_calls(cases: dict[str, list[TestCase]]) -> None:
    program = cases["test_nested_layers"][0].program
    assert isinstance(program, KerasLayer)
    assert dict(program.kwargs)["layer"] == NewObject(
        "keras.layers.GRU", (), (("return_sequences", True), ("units", 3))
    )


def test_what_has_no_form_has_a_reason(recorded: recording.Recording) -> None:
    skips = Counter(
        (item.reason, item.detail.split()[0]) for item in recorded.items if isinstance(item, Skip)
    )
    assert skips == {
        ("an argument is a function without a name in Keras", "keras.layers.Dense"): 1,
        ("an argument is an object that is not Keras's own", "keras.layers.RNN"): 1,
        ("the call takes no tensor", "keras.ops.zeros"): 1,
    }


def test_provenance(recorded: recording.Recording) -> None:
    for item in recorded.items:
        if isinstance(item, TestCase):
            prov = item.provenance
            assert (prov.library, prov.version) == ("keras", version("keras"))
            assert isinstance(item.program, KerasLayer)
            assert prov.operator == item.program.layer
            assert "recorded_keras.py::test_" in prov.test


def test_a_function_computes_in_the_type_it_was_given(
    cases: dict[str, list[TestCase]], tmp_path: Path
) -> None:
    """Not in float32, as the layer that calls it would by default."""
    found = cases["test_a_function_takes_the_type_it_is_given"]
    library = ReferenceRunners(tmp_path, sys.executable, recording.LIMITS).of(found[0])
    for case, execution in library.run((case, case) for case in found):
        [(_, given)], [(_, output)] = case.values(), execution.outputs
        assert isinstance(given, Tensor)
        assert isinstance(output, Tensor)
        np.testing.assert_array_equal(output.array(), np.square(given.array()), strict=True)


def test_keras_runs_every_case_again(recorded: recording.Recording, tmp_path: Path) -> None:
    again = [item for item in recording.replay(recorded, tmp_path) if isinstance(item, TestCase)]
    assert again == [item for item in recorded.items if isinstance(item, TestCase)]
    assert len(again) == 22
