"""Converts a graph to torch: straight-line Python in which every edge is assigned once.

The text is a `fuzzing.cases.TorchProgram`: `forward(…)` takes the graph's inputs in order and returns its
outputs. It needs only torch.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fuzzing.cases.torch_program import MAX_BYTES
from fuzzing.cases.values import STRING
from fuzzing.errors import UnwritableError
from fuzzing.graph.constants import numbers
from fuzzing.graph.ir import Constant, Graph, Node
from fuzzing.graph.operator_spec import NodeContext, OperatorSpec
from fuzzing.graph.type_inference import find_specification
from fuzzing.graph.types import ABSENT, UnknownShapeError

#: Constants of more elements are bytes in the text: what a case allows as a literal (docs/programs.md).
MAX_LITERAL = 64

_NAME = re.compile(r"\bv\d+\b")
_PACKED = frozenset({"int4", "uint4", "int2", "uint2", "float4_e2m1fn", STRING})


def to_torch(graph: Graph) -> str:
    """The program text; edge 7 is the variable `v7`.

    Raises UnwritableError for operators without a torch equivalent (named in the text), for lengths that the
    program must state but only the data determine, and for constants that torch lacks or that are too large.
    """
    steps = [(node, _expression(graph, node)) for node in graph.nodes]
    missing = sorted({node.op for node, text in steps if text is None})
    if missing:
        raise UnwritableError(f"nothing in torch is known that does what {', '.join(missing)} does")
    lines = [f"{_targets(graph, node)} = {text}" for node, text in steps]
    used = set(_NAME.findall("\n".join(text or "" for _, text in steps)))
    used.update(f"v{edge}" for edge in graph.outputs)
    constants = {
        edge: constant
        for edge, constant in sorted(graph.constants.items())
        if f"v{edge}" in used and edge not in graph.inputs
    }
    text = _program(graph, constants, lines)
    if len(text) > MAX_BYTES:
        raise UnwritableError(
            f"the program would be longer than {MAX_BYTES} bytes; its constants are too large"
        )
    return text


def _program(graph: Graph, constants: Mapping[int, Constant], lines: Sequence[str]) -> str:
    encoded = {edge: constant for edge, constant in constants.items() if _is_encoded(constant)}
    literals = [
        f"v{edge} = C{edge}.to(DEVICE)" if edge in encoded else f"v{edge} = {_literal(constant)}"
        for edge, constant in constants.items()
    ]
    parameters = ", ".join(f"v{edge}" for edge in graph.inputs)
    head = [*(["import base64", ""] if encoded else []), "import torch", ""]
    if constants:
        head += ['DEVICE = "cpu"', ""]
    head += [f"C{edge} = {_encode(constant)}" for edge, constant in encoded.items()]
    if encoded:
        head.append("")
    body = [*literals, *lines, f"return {', '.join(f'v{edge}' for edge in graph.outputs)}"]
    return "\n".join([*head, "", f"def forward({parameters}):", *(f"    {line}" for line in body), ""])


def _expression(graph: Graph, node: Node) -> str | None:
    operator = find_specification(graph, node)
    if operator is None or operator.torch is None:
        return None
    context = NodeContext.from_node(operator, graph, node)
    names = ["None" if edge is None else f"v{edge}" for edge in context.edges]
    return _format_operator(operator, context, names)


def _format_operator(operator: OperatorSpec, context: NodeContext, names: list[str]) -> str | None:
    if isinstance(operator.torch, str):
        return operator.torch.format(*names)
    if operator.torch is None:
        return None
    try:
        return operator.torch(context, names)
    except UnknownShapeError as error:
        raise UnwritableError(f"{operator.name} cannot be written in torch: {error}") from error


def _targets(graph: Graph, node: Node) -> str:
    return ", ".join("_" if graph.types[edge] == ABSENT else f"v{edge}" for edge in node.outputs)


def _is_encoded(constant: Constant) -> bool:
    """Whether a constant is written as bytes: it has many elements, not all equal."""
    if constant.dtype in _PACKED:
        raise UnwritableError(f"torch has no {constant.dtype} tensors")
    if constant.dtype.startswith("float8"):
        return constant.array.size > 0
    return constant.array.size > MAX_LITERAL and not _is_uniform(constant)


def _is_uniform(constant: Constant) -> bool:
    flat = constant.array.reshape(-1)
    return flat.size > 0 and flat.tobytes() == flat[:1].tobytes() * flat.size


def _literal(constant: Constant) -> str:
    shape = constant.array.shape
    how = f"dtype=torch.{constant.dtype}, device=DEVICE"
    if constant.array.size == 0:
        return f"torch.zeros({shape}, {how})"
    if constant.array.size > 1 and _is_uniform(constant):
        return f"torch.full({shape}, {next(_format_elements(constant))}, {how})"
    return f"torch.tensor({_format_nested(list(_format_elements(constant)), shape)}, {how})"


def _format_nested(items: Sequence[str], shape: Sequence[int]) -> str:
    if not shape:
        return items[0]
    step = len(items) // shape[0]
    parts = [_format_nested(items[start : start + step], shape[1:]) for start in range(0, len(items), step)]
    return f"[{', '.join(parts)}]"


def _format_elements(constant: Constant) -> Iterator[str]:
    """Each element as Python, floats with enough digits to be exact in their type."""
    for item in numbers(constant).reshape(-1):
        if isinstance(item, np.complexfloating):
            # Not a sum of two parts, in which a negative zero would be lost.
            yield f"complex({_float(item.real)}, {_float(item.imag)})"
        elif isinstance(item, np.floating):
            yield _float(item)
        else:
            yield repr(item.item())


def _float(item: np.floating[Any]) -> str:
    return str(item) if np.isfinite(item) else f'float("{item}")'


def _encode(constant: Constant) -> str:
    data = base64.b64encode(constant.array.tobytes()).decode("ascii")
    buffer = f'bytearray(base64.b64decode("{data}"))'
    return f"torch.frombuffer({buffer}, dtype=torch.{constant.dtype}).reshape({constant.array.shape})"
