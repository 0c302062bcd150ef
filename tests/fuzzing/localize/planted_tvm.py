"""TVM with two passes of ours before its own: one that makes cosines of sines, one that cannot see Atan."""

from __future__ import annotations

from typing import Any, ClassVar

from fuzzing.backends.base import register
from fuzzing.backends.tvm import Tvm


@register
class PlantedTvm(Tvm):
    """See the head of this file."""

    name: ClassVar[str] = "planted_tvm"

    def load(self, device: str, options: dict[str, Any]) -> None:
        super().load(device, options)
        import tvm

        @tvm.transform.module_pass(opt_level=0, name="FuseSines")  # type: ignore[untyped-decorator]
        def fuse(module: Any, context: Any) -> Any:
            return _rewritten(module, {"relax.sin": tvm.relax.op.cos})

        @tvm.transform.module_pass(opt_level=0, name="CountAtans")  # type: ignore[untyped-decorator]
        def count(module: Any, context: Any) -> Any:
            if "R.atan(" in module.script():
                raise ValueError("an Atan was not expected here")
            return module

        assert self._pipeline is not None
        self._pipeline = tvm.transform.Sequential([fuse, count, self._pipeline])


def _rewritten(module: Any, swapped: dict[str, Any]) -> Any:
    """The module with calls of some operators made calls of others."""
    from tvm import relax

    @relax.expr_functor.mutator
    class Swap(relax.PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            return swapped[call.op.name](*call.args) if getattr(call.op, "name", "") in swapped else call

    swap = Swap(module)
    for name, function in module.functions_items():
        if isinstance(function, relax.Function):
            swap.builder_.update_func(name, swap.visit_expr(function))
    return swap.builder_.get()
