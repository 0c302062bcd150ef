"""Torch programs as the graphs that other compilers take. What cannot be compared is refused here."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, List, Optional

from fuzzing.backends.base import Named, Unsupported
from fuzzing.backends.shared import torch_decompositions, torch_programs


def capture(built: torch_programs.Built, inputs: Named, how: str) -> Any:
    """`_torch.capture`, of a program that returns tensors and None only; raises Unsupported for others.

    A Python number has no element type: the tensor that a compiler makes of one cannot be held against it.
    Nor can what lies in memory between and beside the elements of an input, which as_strided can reach.
    """
    graph = torch_programs.capture(built, inputs, how)
    if not all(_is_dense(given) for given in built.arrange(inputs)):
        strided = [name for name in operators(graph) if "as_strided" in name]
        if strided:
            raise Unsupported(f"{strided[0]} of an input that is not dense: compilers are given its elements")
    if how == "exported":
        torch_decompositions.install_caches()  # for the compiler's importer, which is torch's again
        for given in graph.graph_signature.output_specs:
            kind = type(given.arg).__name__
            if kind != "TensorArgument" and getattr(given.arg, "value", given) is not None:
                raise Unsupported(
                    f"the program returns a Python value ({kind}), which compilers give no type"
                )
        _report_torch_failures(graph)
    return graph


def _is_dense(tensor: Any) -> bool:
    """Whether a tensor's memory is its elements in their order and no more; one without strides has none."""
    if str(tensor.layout) != "torch.strided":
        return True
    size = tensor.numel() * tensor.element_size()
    return bool(tensor.is_contiguous() and tensor.untyped_storage().nbytes() == size)


def _report_torch_failures(program: Any) -> None:
    """Has an ExportedProgram's decompositions, which importers ask for, be Unsupported where torch fails.

    A decomposition that the importer has brought along is its own.
    """
    decompose = program.run_decompositions

    def decomposed(*given: Any, **named: Any) -> Any:
        try:
            return decompose(*given, **named)
        except Exception as error:
            if _involves_other_code(error.__traceback__):
                raise
            lines = str(error).strip().splitlines() or [""]
            what = f"{type(error).__name__}: {lines[0][:300]}"
            raise Unsupported(f"torch cannot decompose what it has exported: {what}") from error

    program.run_decompositions = decomposed


def _involves_other_code(trace: Optional[TracebackType]) -> bool:
    """Whether on the way was code of others than torch, Python and us."""
    import torch

    ignored = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
    python = str(Path(os.__file__).parent)
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        third_party = not path.startswith(python) or "-packages" in path
        if third_party and not path.startswith(("<", *ignored)):  # "<": text that torch has made
            return True
        trace = trace.tb_next
    return False


def output_dtypes(graph: Any) -> List[str]:
    """The element types of what a captured graph returns, by torch's names; those it knows not left out."""
    if hasattr(graph, "graph_signature"):
        values = {node.name: node.meta.get("val") for node in graph.graph.nodes}
        found = [values.get(name) for name in graph.graph_signature.user_outputs]
        types = [getattr(value, "dtype", None) for value in found]
        return [str(dtype)[len("torch.") :] for dtype in types if dtype is not None]
    kinds = [value.type() for value in graph.inlined_graph.outputs()]
    leaves = [leaf for kind in kinds for leaf in (kind.elements() if kind.kind() == "TupleType" else [kind])]
    dtypes = [leaf.dtype() for leaf in leaves if leaf.kind() == "TensorType"]
    return [str(dtype)[len("torch.") :] for dtype in dtypes if dtype is not None]


def operators(graph: Any) -> List[str]:
    """The operators of a captured graph by torch's names, each once: `aten.add.Tensor`, `aten::add`."""
    if hasattr(graph, "graph_signature"):
        found = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    else:
        found = [node.kind() for node in graph.inlined_graph.nodes() if not node.kind().startswith("prim::")]
    return list(dict.fromkeys(found))
