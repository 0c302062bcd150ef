"""A test file that pytest runs under the recorder of Keras: see test_keras_recorder."""

from __future__ import annotations

import os
import signal
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
SEQUENCE = np.ones((2, 3, 4), np.float32)


def test_one_instance_is_one_case_however_it_is_written() -> None:
    ops.sum(X, 1)
    ops.sum(X, axis=1)
    ops.sum(X + 1, axis=1, keepdims=False)
    ops.sum(x=X, axis=1)
    layers.Dense(4)(X)
    layers.Dense(units=4, activation=None, name="named")(X)


def test_arguments_are_those_of_the_instance_called() -> None:
    first, second = layers.Dense(5, activation="relu"), layers.Dense(7)
    second(X)
    first(X)


def test_nested_layers() -> None:
    layers.Bidirectional(layers.GRU(3, return_sequences=True), merge_mode="sum")(SEQUENCE)
    layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)])(SEQUENCE)
    layers.Dense(
        2,
        kernel_initializer=keras.initializers.Constant(0.5),
        kernel_regularizer=keras.regularizers.L2(0.25),
        activation=keras.activations.tanh,
    )(X)


def test_tensors_keep_their_place() -> None:
    layers.GRU(2)(SEQUENCE, mask=np.ones((2, 3), bool))
    layers.MultiHeadAttention(2, 3)(SEQUENCE, SEQUENCE * 2, use_causal_mask=True, training=True)
    ops.einsum("ij,kj->ik", X, X)
    ops.add(2.0, X)
    ops.concatenate([X, X * 2], axis=-1)


def test_what_functions_take_of_real_tensors_alone() -> None:
    keras.activations.mish(X)
    keras.activations.softmax(X, axis=(0, 1))


def test_a_function_takes_the_type_it_is_given() -> None:
    ops.square(X.astype(np.float64))
    ops.square(X.astype(np.float16))


class Own(layers.Layer):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Dropout(0.25)

    def call(self, given: Any) -> Any:
        return self.inner(given)


def test_a_layer_of_the_tests_own_is_looked_through() -> None:
    Own()(X)


def test_only_the_outermost_call_counts() -> None:
    layers.Softmax()(X)  # calls keras.activations, which call keras.ops


def test_a_functional_model_is_its_layers() -> None:
    model = keras.Sequential([keras.Input((None, 3)), layers.LayerNormalization()])
    assert model.count_params() == 6


def test_values_are_kept_as_they_were() -> None:
    written = X.copy()
    ops.negative(written)
    written[:] = 9.0


def test_what_fails_is_not_recorded_and_may_yet_succeed() -> None:
    with pytest.raises(RuntimeError):
        ops.reshape(X, (7,))
    for value in (np.zeros((2, 2), np.float32), np.eye(2, dtype=np.float32)):
        try:
            ops.cholesky(value)
        except (RuntimeError, ValueError):
            assert not value.any()


def test_what_has_no_form() -> None:
    layers.Dense(4, activation=lambda x: x)(X)
    layers.RNN(layers.StackedRNNCells([OwnCell()]))(SEQUENCE)
    ops.zeros((2, 3))


class OwnCell(layers.Layer):  # type: ignore[misc]
    state_size = 2

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        return states[0], states


def test_identity_of_functions_is_kept() -> None:
    assert keras.activations.get("relu") is keras.activations.relu
    assert layers.Activation("gelu").get_config()["activation"] == "gelu"


def test_a_crash_keeps_what_was_recorded() -> None:
    ops.flip(X, axis=0)
    if "ASSAY_CRASH" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
