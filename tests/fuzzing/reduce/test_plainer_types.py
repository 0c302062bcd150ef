"""A failure that does not need its element types ends in the plainest of a kind, and so has one signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import pytest

from fuzzing.cases import Tensor
from fuzzing.cases.plain_types import cast_tensor, oddness, plainer_types
from fuzzing.cases.values import RAW_DTYPES
from fuzzing.reduce.engine import CLEAN, SAME, reduce
from fuzzing.reduce.graph_state import GraphState
from fuzzing.reduce.graph_validity import is_valid
from fuzzing.reduce.graphs import SPEC
from tests.fuzzing.reduce.graph_states import state_of

CAST = "({old}[1] x) => ({new}[1] y) {{ y = Cast<to = {code}>(x) }}"
TO_DOUBLE = {old: CAST.format(old=old, new="double", code=11) for old in ("float16", "bfloat16")}
DOUBLE_TO_BFLOAT16 = CAST.format(old="double", new="bfloat16", code=16)
FROM_FLOAT8 = CAST.format(old="float8e5m2", new="float", code=1)
TO_FLOAT8 = CAST.format(old="float", new="float8e5m2fnuz", code=20)
ELU = {kind: f"({kind}[1] x) => ({kind}[1] y) {{ y = Elu(x) }}" for kind in ("float16", "bfloat16")}
ABS = "(uint32[1] x) => (uint32[1] y) { y = Abs(x) }"


def has(*dtypes: str) -> Callable[[set[str]], bool]:
    """A fault that any of these types shows."""
    return lambda found: not found.isdisjoint(dtypes)


EIGHT_BITS = has("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


@pytest.mark.parametrize(
    ("graph", "given", "shows", "left"),
    [
        # OpenVINO's cast of infinity by way of float64, whatever stands on the other side
        (TO_DOUBLE["float16"], np.float16, has("float64"), {"float32", "float64"}),
        (TO_DOUBLE["bfloat16"], ml_dtypes.bfloat16, has("float64"), {"float32", "float64"}),
        (DOUBLE_TO_BFLOAT16, np.float64, has("float64"), {"float32", "float64"}),
        # TVM's NaN of float8
        (FROM_FLOAT8, ml_dtypes.float8_e5m2, EIGHT_BITS, {"float32", "float8_e4m3fn"}),
        (TO_FLOAT8, np.float32, EIGHT_BITS, {"float32", "float8_e4m3fn"}),
        (ELU["bfloat16"], ml_dtypes.bfloat16, has("float16", "bfloat16"), {"float16"}),
        (ELU["float16"], np.float16, has("float16"), {"float16"}),
        (ELU["float16"], np.float16, has("float16", "float64"), {"float64"}),
        (ABS, np.uint32, has("uint8", "uint16", "uint32"), {"uint8"}),
        (ABS, np.uint32, has("int32", "uint8", "uint32"), {"int32"}),
        (ABS, np.uint32, has("float32", "uint32"), {"float32"}),
    ],
)
def test_types_that_do_not_matter_become_plainer(
    graph: str, given: type[np.generic], shows: Callable[[set[str]], bool], left: set[str]
) -> None:
    def classify(candidates: Sequence[GraphState]) -> list[str]:
        return [SAME if is_valid(one) and shows(types(one)) else CLEAN for one in candidates]

    best = reduce(state_of(graph, 22, x=np.ones(1, given)), SPEC, classify).best
    assert types(best) == left


def types(state: GraphState) -> set[str]:
    return {type_.dtype for type_ in state.graph.types}


def test_a_number_stays_that_number_in_another_type() -> None:
    """A NaN of one float8 must be tried as the NaN of another, and not as its bits."""
    numbers = np.array([np.nan, 1.5, -2], np.float32)
    for old in ("bfloat16", "float16", "float64", "float8_e5m2", "float8_e4m3fnuz"):
        odd = cast_tensor(Tensor.of(numbers), old)
        assert odd is not None
        assert odd.dtype == old
        for plain in plainer_types(old):
            found = cast_tensor(odd, plain)
            assert found is not None
            assert found.dtype == plain
            back = cast_tensor(found, "float32")
            assert back is not None
            np.testing.assert_array_equal(back.array(), numbers)


def test_each_replacement_is_plainer() -> None:
    for dtype in ("bfloat16", "float64", "uint64", "int4", *RAW_DTYPES):
        assert all(oddness([plain]) < oddness([dtype]) for plain in plainer_types(dtype))
    assert not oddness(["float32", "int64", "bool", "string"])
