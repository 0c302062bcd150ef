"""ONNX's reference evaluator with corrected operators.

onnx's implementations pass onnx's own node tests, but many are wrong on generated models or reject what the
operator reference allows. Then every compiler would fail, or no model of that operator could be checked.
CORRECTIONS holds the replacements, each written from the text of the reference, and the reason for each.
Correct implementations are kept. Needs onnx; runs in the reference worker.

A correction is a function (node, inputs…, attributes by name) → outputs. It need not handle which outputs are
requested, nor onnx's base classes. `node` is onnx's own object, with `onnx_node` and `run_params`; `node.own`
is the result of onnx's implementation.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Callable, Dict, NamedTuple, Tuple

from fuzzing.backends.onnx_reference import (
    attention,
    control_flow,
    indexing,
    pointwise,
    recurrent,
    sampling,
    sliding_windows,
    statistics,
)


class Correction(NamedTuple):
    """The replacement of onnx's implementation of an operator.

    why      what onnx does wrong, on which input; in onnx 1.23.2 unless noted
    since    the first opset whose form of the operator it is for
    until    the last one
    context  whether it runs a body, which reads the outer scope
    """

    run: Callable[..., Tuple[Any, ...]]
    why: str
    since: int = 1
    until: int = sys.maxsize
    context: bool = False


CORRECTIONS: Dict[str, Correction] = {
    "AffineGrid": Correction(sampling.affine_grid, "gives float32 whatever theta is, and rounds to it"),
    "Attention": Correction(
        attention.attention,
        "gives the scores of qk_matmul_output_mode 0 behind softcap, not before it; looks for the keys "
        "before each query by the rows of a mask that has one for all; pads a mask of one column",
    ),
    "AveragePool": Correction(
        sliding_windows.average_pool,
        "refuses ceil_mode with auto_pad; with ceil_mode, puts half of what a last "
        "window lacks before the image",
    ),
    "BatchNormalization": Correction(
        statistics.batch_normalization,
        "mixes the batch's statistics in where one output, and so test mode, is asked for",
        since=9,
        until=13,
    ),
    "ConvTranspose": Correction(
        sliding_windows.conv_transpose,
        "ignores output_shape unless auto_pad is SAME_*; mixes up channels where a group has several; "
        "passes over auto_pad VALID",
    ),
    "DequantizeLinear": Correction(
        statistics.dequantize_linear, "has none before opset 19", since=10, until=18
    ),
    "Det": Correction(statistics.det, "refuses float16"),
    "GRU": Correction(recurrent.gru, "ignores clip, activations and sequence_lens"),
    "GatherElements": Correction(
        indexing.gather_elements,
        "refuses an index shorter than the data along other axes, and more than 32 elements along its own",
    ),
    "GlobalLpPool": Correction(sliding_windows.global_lp_pool, "has none"),
    "GlobalMaxPool": Correction(
        sliding_windows.global_max_pool, "takes the maximum over wrong axes unless the rank is 4"
    ),
    "GridSample": Correction(
        sampling.grid_sample,
        "knows not the modes' names before opset 20, bilinear and bicubic; fails to reflect at an axis "
        "of length 1; "
        "rounds coordinates to float32 whatever the model's type; with cubic, moves what lies outside "
        "before it looks for neighbors",
    ),
    "LRN": Correction(
        sliding_windows.lrn, "sums over as many channels as the batch has images; refuses all ranks but 4"
    ),
    "LSTM": Correction(recurrent.lstm, "ignores clip, activations, sequence_lens and input_forget"),
    "LayerNormalization": Correction(
        statistics.layer_normalization,
        "computes in X's type, not in stash_type's, of which its other outputs are to be; refuses all but 1",
    ),
    "LogSoftmax": Correction(pointwise.log_softmax, "gives -inf where Softmax underflows", since=13),
    "Loop": Correction(
        control_flow.loop,
        "makes no trip if there is no condition; joins scan outputs along their first axis, not a new one; "
        "fails where there is no trip",
        context=True,
    ),
    "LpPool": Correction(
        sliding_windows.lp_pool,
        "refuses ceil_mode with auto_pad; with ceil_mode, blows up windows that reach beyond the padding",
    ),
    "MaxPool": Correction(
        sliding_windows.max_pool,
        "gives wrong shapes with auto_pad and strides, and no indices without; refuses "
        "ceil_mode with auto_pad",
    ),
    "MaxRoiPool": Correction(indexing.max_roi_pool, "has none"),
    "MaxUnpool": Correction(
        sliding_windows.max_unpool, "counts the indices in the smallest output, not in that of output_shape"
    ),
    "Mean": Correction(statistics.mean, "refuses a first input that is to be broadcast"),
    "NegativeLogLikelihoodLoss": Correction(
        statistics.negative_log_likelihood_loss,
        "counts ignored samples in the mean where ignore_index is -1, its own mark for none",
    ),
    "NonMaxSuppression": Correction(
        indexing.non_max_suppression, "refuses scalars, as the thresholds are to be, and their absence"
    ),
    "OneHot": Correction(
        indexing.one_hot,
        "refuses a depth of shape [1], compares indices that are no integers as they are, "
        "and computes with on - off, which rounds and overflows",
    ),
    "Optional": Correction(pointwise.optional, "gives a list of what it is given"),
    "Pad": Correction(indexing.pad, "refuses negative pads", since=11),
    "QLinearConv": Correction(
        statistics.qlinear_conv,
        "adds the zero point before it rounds, which moves ties if it is odd; has scales per "
        "channel in rank 4 only",
    ),
    "QLinearMatMul": Correction(
        statistics.qlinear_matmul, "adds the zero point before it rounds, which moves ties if it is odd"
    ),
    "RNN": Correction(
        recurrent.rnn,
        "ignores clip and sequence_lens; takes the first direction's activation for both",
    ),
    "ReduceSumSquare": Correction(statistics.reduce_sum_square, "gives int64 for int32"),
    "Resize": Correction(
        sampling.resize,
        "refuses negative axes and bool; with pytorch_half_pixel, and an output of length 1, reads "
        "at -0.5 instead "
        "of 0, or as if it were longer where the scale gives a fraction more",
        since=11,
    ),
    "RoiAlign": Correction(
        sampling.roi_align,
        "shifts coordinates by half a pixel, as only since opset 16",
        since=10,
        until=15,
    ),
    "Scan": Correction(
        control_flow.scan,
        "refuses directions and axes other than 0, and nothing to scan",
        since=9,
        context=True,
    ),
    "Softsign": Correction(pointwise.softsign, "refuses scalars"),
    "Unique": Correction(
        indexing.unique, "takes along axis 0 whatever the axis if sorted is 0, and sorts a lone output"
    ),
}


def evaluator(onnx: Any) -> Any:
    """The class of reference evaluators that use the corrections.

    A subclass, since `new_ops` does not reach the bodies of functions.
    """
    base: Any = onnx.reference.ReferenceEvaluator

    class Corrected(base):  # type: ignore[misc]
        """Looks operators up in CORRECTIONS first, also in subgraphs and functions."""

        def _load_impl(self, node: Any, *rest: Any) -> Any:
            if node.domain in ("", "ai.onnx") and node.op_type in CORRECTIONS:
                opset, correction = self.opsets[node.domain], CORRECTIONS[node.op_type]
                if correction.since <= opset <= correction.until:
                    return _corrected(node.op_type, opset)
            return super()._load_impl(node, *rest)

    return Corrected


@cache
def _corrected(op_type: str, opset: int) -> Any:
    """The class that onnx instantiates for a node of a corrected operator."""
    from onnx.defs import get_schema
    from onnx.reference.op_run import OpRun
    from onnx.reference.ops import load_op

    correction = CORRECTIONS[op_type]

    class Run(OpRun):
        """Returns as many outputs as the node has."""

        op_schema = get_schema(op_type, opset, "")  # for the attributes' defaults

        def _run(self, *inputs: Any, **attributes: Any) -> Tuple[Any, ...]:
            found = correction.run(self, *inputs, **attributes)
            return found[: len(self.onnx_node.output)]

        def need_context(self) -> bool:
            """Whether it receives the names of the outer scope."""
            return correction.context

        def own(self, *inputs: Any, **attributes: Any) -> Any:
            """The result of onnx's own implementation."""
            implementation = load_op("", op_type, opset)
            return implementation(self.onnx_node, self.run_params)._run(*inputs, **attributes)

    Run.__name__ = op_type
    return Run
