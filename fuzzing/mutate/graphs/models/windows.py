"""What ONNX demands of the parameters of convolutions and pools, and its own inference does not enforce.

Source: the operators' pages in the ONNX reference. Combinations are refused too that the reference leaves
open: windows that `ceil_mode` begins behind the input, and SAME padding with dilation or with steps longer
than the kernel, of which runtimes make different things.
"""

from __future__ import annotations

from fuzzing.graph.operator_spec import NodeContext
from fuzzing.graph.operators import sliding_windows

#: Convolutions: the place of their weights, and whether these are transposed (channels first).
_CONVOLUTIONS = {
    "Conv": (1, False),
    "ConvInteger": (1, False),
    "ConvTranspose": (1, True),
    "QLinearConv": (3, False),
}
_POOLS = ("AveragePool", "LpPool", "MaxPool")
_COUNTS = ("strides", "dilations", "kernel_shape")


def keeps_rules(context: NodeContext) -> bool:
    """Whether a node with windows keeps them; True for any other node. Its inputs are static."""
    name = context.operator.name
    if name not in _CONVOLUTIONS and name not in _POOLS:
        return True
    space = context.dims(context.operator.primary)[2:]
    weights = context.dims(_CONVOLUTIONS[name][0]) if name in _CONVOLUTIONS else ()
    kernel = tuple(weights[2:]) if weights else tuple(context.get("kernel_shape") or ())
    if len(kernel) != len(space) or tuple(context.get("kernel_shape") or kernel) != kernel:
        return False
    pads = tuple(context.get("pads") or (0,) * (2 * len(space)))
    lists = [tuple(context.get(one) or (1,) * len(space)) for one in _COUNTS[:2]]
    if len(pads) != 2 * len(space) or min(pads) < 0:
        return False
    if any(len(one) != len(space) or min(one) < 1 for one in (*lists, kernel)):
        return False
    return _padding_fits(context, kernel, pads, *lists) and (not weights or _groups_fit(context, weights))


def _padding_fits(
    context: NodeContext,
    kernel: tuple[int, ...],
    pads: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> bool:
    auto = context.get("auto_pad") or "NOTSET"
    if auto != "NOTSET" and any(pads):
        return False
    covers = all(size >= stride for size, stride in zip(kernel, strides, strict=True))
    if auto.startswith("SAME") and not (covers and set(dilations) == {1}):
        return False
    if context.operator.name in _POOLS:
        if any(pad >= size for pad, size in zip(pads, kernel * 2, strict=True)):
            return False
        if context.get("ceil_mode") and sliding_windows.overhangs(context, context.dims(0)[2:], kernel):
            return False
        return set(dilations) == {1} or not any(pads)  # else a window may hold padding alone
    if context.operator.name == "ConvTranspose":
        extra = tuple(context.get("output_padding") or (0,) * len(kernel))
        return len(extra) == len(kernel) and all(
            0 <= more < max(stride, dilation)
            for more, stride, dilation in zip(extra, strides, dilations, strict=True)
        )
    return True


def _groups_fit(context: NodeContext, weights: tuple[int, ...]) -> bool:
    """Channels are those of all groups, and filters divide into groups."""
    groups, channels = context.get("group") or 1, context.shape[1]
    transposed = _CONVOLUTIONS[context.operator.name][1]
    if not isinstance(groups, int) or groups < 1 or channels is None or channels % groups:
        return False
    if transposed:
        return weights[0] == channels
    return weights[1] * groups == channels and weights[0] % groups == 0
