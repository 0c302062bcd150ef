"""Corrections of ONNX's evaluator for causal Attention with a mask."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzzing.backends.test_onnx_reference_corrections import Array, F, I, corrected, model


@pytest.mark.parametrize(
    "shape",
    [(3,), (1, 3), (1,), (1, 1), (2, 1), (2, 3), (1, 1, 1, 3)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_a_broadcast_mask_leaves_each_query_its_own_keys(shape: tuple[int, ...]) -> None:
    """Query i of a causal attention sees keys 0 to i, whatever the shape of the mask."""
    graph = (
        f"(float[1,1,2,1] q, float[1,1,3,1] k, float[{','.join(map(str, shape))}] m) "
        "=> (float[1,1,2,1] y) { y = Attention<is_causal = 1>(q, k, k, m) }"
    )
    keys = np.array([[[[1], [2], [3]]]], F)
    [found] = corrected(model(graph, 23), [np.zeros((1, 1, 2, 1), F), keys, np.zeros(shape, F)])
    np.testing.assert_allclose(found.ravel(), [1, 1.5])


@pytest.mark.parametrize("valid", [2, 3])
def test_a_mask_of_one_row_knows_how_many_keys_an_external_cache_has(valid: int) -> None:
    """The last query sees the last valid key, the one before it one less."""
    graph = (
        "(float[1,1,2,1] q, float[1,1,3,1] k, float[1,3] m, int64[1] n) => (float[1,1,2,1] y) "
        "{ y = Attention<is_causal = 1>(q, k, k, m, , , n) }"
    )
    keys = np.array([[[[1], [2], [3]]]], F)
    inputs: list[Array] = [
        np.zeros((1, 1, 2, 1), F),
        keys,
        np.zeros((1, 3), F),
        np.array([valid], I),
    ]
    [found] = corrected(model(graph, 24), inputs)
    means = [np.mean(keys[..., : valid - 1, :]), np.mean(keys[..., :valid, :])]
    np.testing.assert_allclose(found.ravel(), means, rtol=1e-6)
