"""What operators of networks make is no larger than the limits say, or than what they take."""

from __future__ import annotations

import pytest

from fuzzing.graph import operators
from fuzzing.graph.operator_spec import GraphLimits
from tests.support.operators import single

GROWING = (
    "Conv", "ConvTranspose", "MaxUnpool", "Gemm", "MatMul", "Einsum", "MatMulInteger", "ConvInteger",
    "QLinearMatMul", "QLinearConv", "Attention", "RNN", "GRU", "LSTM", "Loop", "Scan", "DFT", "STFT",
)  # fmt: skip
MOST = 600
LIMITS = GraphLimits(max_rank=4, max_dim=16, max_inputs=8, max_elements=MOST)


@pytest.mark.parametrize("name", GROWING)
def test_outputs_keep_to_the_limits(name: str) -> None:
    operator = operators.get_specification(name, 23)
    dtype = "float32" if "float32" in operator.dtypes else "uint8"
    for seed in range(40):
        graph = single(name, seed, 23, (dtype,), LIMITS).graph
        node = next(node for node in graph.nodes if node.op == name)
        taken = max(graph.types[edge].elements for edge in node.used_edges())
        if name == "DFT":
            taken *= 2  # real numbers become complex ones
        for edge in node.outputs:
            assert graph.types[edge].elements <= max(MOST, taken), (node, graph.types)
