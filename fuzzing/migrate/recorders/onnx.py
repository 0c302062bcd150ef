"""Records models made with `onnx.helper`: each node by itself, and small models whole.

A graph is recorded when it becomes a model, which has the opset; one that becomes a node's attribute, with
that node's model; one that becomes neither, at the opset of the installed ONNX.
"""

from __future__ import annotations

import atexit
import hashlib
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from fuzzing.cases import Comparison, Input, OnnxModel, Provenance, TestCase
from fuzzing.errors import CaseFormatError
from fuzzing.migrate import onnx_single_nodes
from fuzzing.migrate.onnx_input_values import CannotDrawError
from fuzzing.migrate.onnx_model_inputs import draw_inputs
from fuzzing.migrate.onnx_single_nodes import UnsupportedModelError
from fuzzing.migrate.random_operators import is_random_model
from fuzzing.migrate.recorders.base import SOURCE, Sink, register_recorder

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

MAX_NODES = 64  # of a model that is kept whole, as compilers' own tests have
MAX_MODEL_BYTES = 1 << 20
_MAX_PENDING = 32  # graphs that wait for their model


@register_recorder
class Onnx:
    """Watches the making of models in one process."""

    library: ClassVar[str] = "onnx"

    def __init__(self) -> None:
        self._busy = False
        self._pending: dict[int, GraphProto] = {}  # by id; the graph is kept, ids are reused

    def start(self, sink: Sink) -> None:
        """Wraps `make_node`, `make_graph` and `make_model` of `onnx.helper`."""
        import onnx
        from onnx import helper

        self._sink = sink
        self._version = str(onnx.__version__)
        self._make_model: Callable[..., ModelProto] = helper.make_model
        self._wrap(helper, "make_node", self._on_make_node)
        self._wrap(helper, "make_graph", self._on_make_graph)
        self._wrap(helper, "make_model", self._on_make_model)
        atexit.register(self._flush, 0)

    def _wrap(
        self, helper: Any, name: str, made: Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
    ) -> None:
        import functools

        original = getattr(helper, name)

        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not self._busy:
                self._busy = True
                begin = perf_counter()
                try:
                    made(result, args, kwargs)
                except Exception:  # noqa: BLE001 - ours, or an unknown kind of model; reported by `collect`
                    self._sink.bug(name)
                finally:
                    self._busy = False
                    self._sink.spent(perf_counter() - begin)
            return result

        setattr(helper, name, watched)

    def _on_make_node(self, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ARG002
        for value in kwargs.values():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                self._pending.pop(id(item), None)

    def _on_make_graph(self, graph: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ARG002
        self._pending[id(graph)] = graph
        self._flush(_MAX_PENDING)

    def _on_make_model(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        graph = args[0] if args else kwargs.get("graph")
        self._pending.pop(id(graph), None)
        self._record(model)

    def _flush(self, keep: int) -> None:
        """Records the oldest waiting graphs, until `keep` are left."""
        while len(self._pending) > keep:
            graph = self._pending.pop(next(iter(self._pending)))
            self._record(self._make_model(graph))

    def _record(self, model: ModelProto) -> None:
        data = model.SerializeToString(deterministic=True)
        if not self._sink.new(("model", hashlib.sha256(data).digest())):
            return
        known = onnx_single_nodes.infer_shapes(model)
        for node, scope in onnx_single_nodes.walk_nodes(known):
            try:
                single = onnx_single_nodes.extract_node(node, scope, known)
            except UnsupportedModelError as error:
                self._sink.skip(node.op_type, str(error), error.detail)
                continue
            self._store_case(single.operator, single.model, single.program, single.inputs)
        operators = [node.op_type for node in model.graph.node if node.op_type != "Constant"]
        if 1 < len(operators) <= MAX_NODES and len(data) <= MAX_MODEL_BYTES:
            self._whole(model, known)

    def _whole(self, model: ModelProto, known: ModelProto) -> None:
        try:
            kept = onnx_single_nodes.make_valid(model, known)
            inputs = tuple(draw_inputs(known))
        except (CannotDrawError, UnsupportedModelError) as error:
            self._sink.skip("", str(error), getattr(error, "detail", ""))
            return
        self._store_case("", kept, OnnxModel(kept.SerializeToString(deterministic=True)), inputs)

    def _store_case(
        self,
        operator: str,
        model: ModelProto,
        program: OnnxModel,
        inputs: tuple[tuple[str, Input], ...],
    ) -> None:
        if not self._sink.new(("program", hashlib.sha256(program.model).digest())):
            return
        try:
            random = is_random_model(model, {})
        except CaseFormatError as error:
            self._sink.skip(operator, "the call has no form in a case", str(error))
            return
        comparison: Comparison = "shapes" if random else "values"
        provenance = Provenance(SOURCE, self._sink.test(), operator, self.library, self._version)
        self._sink.case(TestCase(program, inputs, provenance, comparison=comparison))
