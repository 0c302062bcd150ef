"""Python text in the source of every torch or keras program. It needs torch and numpy only.

It is text because the worker runs the same text that a reproducer prints.
"""

from __future__ import annotations

from typing import Tuple

from fuzzing.cases.arguments import TensorArg

#: Draws a module's parameters and buffers, each from a stream of its own, so that neither their order nor
#: torch's generator matters. PCG64's raw words are the same in every release of numpy; 53 bits of a word make
#: a float in [0, 1). Parameters are in [-0.5, 0.5), variances in [0.5, 1.5); integers are not drawn.
DRAW = '''
def draw(name, shape, seed):
    """Numbers in [0, 1) that depend on the name, the shape and the seed alone."""
    key = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "little")
    words = np.random.PCG64(key).random_raw(int(np.prod(shape, dtype=np.int64)))
    return ((np.asarray(words, np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)
'''

FILL = (
    DRAW
    + '''

def fill(module, seed, keep=False):
    """Gives every floating parameter and buffer of the module a value of its own; may keep the buffers."""
    for name, tensor in [*module.named_parameters(), *([] if keep else module.named_buffers())]:
        if tensor.is_floating_point():
            low = 0.5 if name.endswith("var") else -0.5
            tensor.data.copy_(torch.from_numpy(low + draw(name, tuple(tensor.shape), seed)))
        elif tensor.is_complex():
            real, imag = (draw(name + part, tuple(tensor.shape), seed) - 0.5 for part in (".real", ".imag"))
            tensor.data.copy_(torch.from_numpy(real + 1j * imag))
    return module.requires_grad_(False)
'''
)

RESTRIDE = '''
def restride(tensor, strides, offset):
    """The same elements, with these strides and this offset in a memory of their own."""
    size = offset + 1 + sum((dim - 1) * step for dim, step in zip(tensor.shape, strides) if dim)
    memory = torch.zeros(size, dtype=tensor.dtype, device=tensor.device)
    places = torch.arange(size, device=tensor.device).as_strided(tensor.shape, strides, offset).reshape(-1)
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # not every type can be indexed
    bits = widths.get(tensor.element_size(), tensor.dtype)
    memory.view(bits)[places] = tensor.view(bits).reshape(-1)
    return memory.as_strided(tensor.shape, strides, offset)
'''

#: The method that converts a dense tensor to each other layout.
SPARSE = {"sparse_coo": "to_sparse", "sparse_csr": "to_sparse_csr", "sparse_csc": "to_sparse_csc"}


def input_expression(tensor: TensorArg) -> str:
    """The expression for one input; always a fresh copy, since programs may write to it."""
    given = f"inputs[{tensor.name!r}]"
    if tensor.strides is not None:
        return f"restride({given}, {tensor.strides!r}, {tensor.offset})"
    if tensor.layout != "strided":
        return f"{given}.{SPARSE[tensor.layout]}()"
    return f"{given}.clone()"


def arrange(tensors: Tuple[TensorArg, ...]) -> str:
    """Text of the function `arrange`: from inputs by name to the list of the module's arguments."""
    lines = "".join(f"        {input_expression(tensor)},\n" for tensor in tensors)
    body = f"[\n{lines}    ]" if lines else "[]"
    return f"\ndef arrange(inputs):\n    return {body}\n"
