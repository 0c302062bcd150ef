"""Conventions of torch's names that its documentation does not state.

Each rule appears in the evidence of every constraint made from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Parameters about where or how a result is stored, not what is computed: never drawn.
LEFT_OUT: Mapping[str, str] = {
    "out": "it is written to",
    "generator": "it is an object of the process",
    "requires_grad": "it asks for gradients",
    "device": "it is the campaign's choice",
    "layout": "sparse layouts are another source's",
    "pin_memory": "it needs a device",
    "names": "named tensors are a prototype",
    "memory_format": "it is about memory",
    "size_average": "it is deprecated",
    "reduce": "it is deprecated",
    "inplace": "it overwrites the input, which a case keeps",
    "async_op": "it is about processes",
    "check_errors": "it raises by design",
    "driver": "it names a library of CUDA",
    "sparse": "gradients alone are sparse",
    "sparse_grad": "gradients alone are sparse",
    "scale_grad_by_freq": "it is about gradients",
    "device_mesh": "it is about processes",
}
#: The structure of a parameter by its name, where neither text nor type shows it.
STRUCTURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"input\d?|other|self|tensor\d?|target|weight|bias|x\d?|y|A|B|mat\d?|vec\d?|src|index|mask|values?_tensor|indices"
     r"|query|key|hx|running_mean|running_var|anchor|positive|negative|log_probs|tau|LU|pivots", ("tensor",)),
    (r"tensors|matrices", ("list(tensor)",)),
    (r"dim\d?|axis\d?|n|k|groups|chunks|diagonal|offset|\w*_(size|features|channels|dim|layers)", ("int",)),
    (r"dims|axes|shape|size|sizes|shifts|normalized_shape", ("list(int)",)),
    (r"p|eps|alpha|beta|lambd|margin|momentum|negative_slope|value|threshold|\w*dropout|lower", ("float",)),
    (r"keepdim|affine|training|batch_first|bidirectional|upper|left|descending|largest|sorted", ("bool",)),
)  # fmt: skip
#: Parameters that name one or several dimensions of the first tensor.
DIMENSION = re.compile(r"dims?\d?|axis\d?|axes|start_dim|end_dim|source|destination|split_dim")
#: Symbols of documented shapes that are a parameter's value under another name.
SYMBOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("C_in", ("in_channels",)),
    ("C_out", ("out_channels",)),
    ("C", ("num_features", "num_channels")),
    ("H_in", ("in_features", "input_size")),
    ("E", ("embed_dim",)),
)
#: Modules of torch that compute on floating-point numbers unless documented otherwise.
FLOATING = ("torch.nn.functional.", "torch.nn.", "torch.linalg.", "torch.special.")
#: What torch.nn.functional calls the lengths in torch.nn's formulas.
_FUNCTIONAL_SYMBOLS = {"iT": "D_in", "iH": "H_in", "iW": "W_in", "minibatch": "N"}
#: Unless a module is asked for another type, its parameters are float32, and so must be its inputs.
MODULE_DTYPES = ("float32",)
#: What floating-point modules compute on; what takes others documents it.
FUNCTIONAL_DTYPES = ("float32", "float64")


def rename_symbols(pattern: tuple[str, ...], api: str) -> tuple[str, ...]:
    """A shape of torch.nn.functional in torch.nn's symbols, so that formulas of one hold for the other."""
    symbols = _FUNCTIONAL_SYMBOLS | ({"iW": "L_in"} if "1d" in api else {})
    return tuple(symbols.get(token, token) for token in pattern)


def structures_by_name(name: str) -> tuple[str, ...]:
    """The structures implied by a name, () if none."""
    return next((options for pattern, options in STRUCTURES if re.fullmatch(pattern, name)), ())
