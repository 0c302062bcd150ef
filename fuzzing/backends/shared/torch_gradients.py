"""Gradients of a torch program: its backward pass, and the results that are compared.

Python 3.8; torch is imported late, in the worker.
"""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple


def run_backward(module: Any, arguments: List[Any]) -> Tuple[Any, List[Tuple[str, Any]]]:
    """The module's result, and the gradient of each argument as ("gradient.0", tensor).

    The gradient is that of a weighted sum of all results; weights differ, so that an exchange of elements
    shows. Arguments of whole numbers have none, and one that no result depends on has zeros: whether torch
    leaves such a gradient out depends on how the graph was cut. The module gets copies, since a program may
    write to its inputs, which autograd forbids for leaves.
    """
    import torch

    leaves = [one.detach().requires_grad_(one.is_floating_point() or one.is_complex()) for one in arguments]
    with torch.enable_grad():
        result = module(*[leaf.clone() if leaf.requires_grad else leaf for leaf in leaves])
        roots = [one for one in _tensors(result) if one.requires_grad]
        places = [place for place, leaf in enumerate(leaves) if leaf.requires_grad]
        given = [leaves[place] for place in places]
        gradients = [torch.zeros_like(leaf) for leaf in given]
        if roots and given:
            weights = [_weights(root) for root in roots]
            gradients = list(
                torch.autograd.grad(roots, given, weights, allow_unused=True, materialize_grads=True)
            )
    return result, [(f"gradient.{place}", one) for place, one in zip(places, gradients)]


def _weights(root: Any) -> Any:
    """Numbers from 1 to 2, none of them twice in seven neighbors."""
    import torch

    steps = torch.arange(root.numel(), device=root.device) % 7
    return (1 + steps / 7).to(root.dtype).reshape(root.shape)


def _tensors(result: Any) -> Iterator[Any]:
    import torch

    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, dict):
        for item in result.values():
            yield from _tensors(item)
    elif isinstance(result, (tuple, list)):
        for item in result:
            yield from _tensors(item)
