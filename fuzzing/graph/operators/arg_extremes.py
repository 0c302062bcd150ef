"""ArgMax and ArgMin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzing.graph.attribute_domains import Axis, Choice, Computed
from fuzzing.graph.intervals import Interval, full_range
from fuzzing.graph.operator_spec import ANY_RANK, AttributeSpec, NodeContext, OperatorSpec
from fuzzing.graph.operators import register
from fuzzing.graph.operators.reduction import is_flag, reduced
from fuzzing.graph.types import NUMBERS, TensorType


def _keepdims_of_axis(context: NodeContext) -> int:
    return 1 if context.rank == 1 and context.limits.min_rank > 0 else context.rng.below(2)


def _index_type(context: NodeContext) -> tuple[TensorType, ...]:
    if context.x.shape is None:
        return (TensorType("int64", None),)
    return (TensorType("int64", reduced(context.shape, {context.axis()}, context.get("keepdims"))),)


def _index_text(function: str) -> Callable[[NodeContext, Sequence[str]], str]:
    def text(context: NodeContext, names: Sequence[str]) -> str:
        x, axis, keep = names[0], context.axis(), bool(context.get("keepdims"))
        if not context.get("select_last_index"):
            return f"torch.{function}({x}, dim={axis}, keepdim={keep})"
        last = context.dims(0)[axis] - 1
        return f"{last} - torch.{function}(torch.flip({x}, ({axis},)), dim={axis}, keepdim={keep})"

    return text


register(
    *(
        OperatorSpec(
            name,
            13,
            ranks=ANY_RANK[1:],
            dtypes=NUMBERS,
            within=full_range,
            infer=_index_type,
            values=lambda context: Interval(0, context.dims(0)[context.axis()] - 1),
            attribute_specs=(
                AttributeSpec("axis", Axis(), omit=0.2, default=0),
                AttributeSpec("keepdims", Computed(_keepdims_of_axis, is_flag), omit=0.4, default=1),
                AttributeSpec("select_last_index", Choice(0, 1), omit=0.6, default=0),
            ),
            torch=_index_text(name.lower()),
        )
        for name in ("ArgMax", "ArgMin")
    )
)
