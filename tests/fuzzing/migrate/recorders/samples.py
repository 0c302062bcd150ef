"""Small cases for the tests of recording."""

from __future__ import annotations

from fuzzing.cases import Provenance, Recipe, TensorArg, TestCase, TorchCall


def call_case(api: str, shape: tuple[int, ...], test: str = "a test") -> TestCase:
    """A call of `api` with one tensor of zeros."""
    given = Recipe("constant", "float32", shape, 0.0, 0.0, 0)
    provenance = Provenance("collected", test, api.removeprefix("torch."), "torch", "0")
    return TestCase(TorchCall(api, (TensorArg("x"),)), (("x", given),), provenance)
