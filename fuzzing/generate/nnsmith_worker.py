"""`python -m fuzzing.generate.nnsmith_worker`: models of NNSmith (ASPLOS 2023), one per line on stdin.

Runs in an interpreter that has NNSmith, which need not be Assay's; uses only NNSmith and the standard
library. A request is a JSON object:
    {"seed": S, "nodes": N, "dtypes": [NAME, …] or null, "folder": PATH or null}
The output is {"event": "ready", "operators": COUNT, "versions": {…}}, then one line for each request:
    {"event": "model", "seed": S, "onnx": BASE64, "seconds": T, "cpu": T}
    {"event": "failed", "seed": S, "reason": TEXT}     NNSmith could not make, or not export, this model

One seed gives the same bytes, in any order and process, which NNSmith itself does not promise:
- z3 numbers its terms and decides by these numbers; so each model gets a context of its own.
- sets of element types are ordered by hash; so the caller must set PYTHONHASHSEED.
- weights are searched for 20 ms of wall clock; so here they are the search's first sample.
With a folder NNSmith does all that its own command does, search included, and writes its files there, for
measurements; such models are only as repeatable as NNSmith's.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import sys
import time
import warnings
from contextlib import suppress
from importlib.metadata import version
from typing import Any, TextIO

#: NNSmith's own method, and far more than its 10 s: a busy machine must not cut a model short.
_METHOD, _TIMEOUT_MS = "symbolic-cinit", 120_000
_ATTEMPTS = 10
_VERSIONS = ("nnsmith", "z3-solver", "torch", "onnx", "numpy")


class NNSmithModels:
    """NNSmith, set up as by `nnsmith.model_gen model.type=onnx`.

    cache  the folder of NNSmith's operator probes; valid only for the versions it was made with, which
           NNSmith does not check
    """

    def __init__(self, cache: str) -> None:
        import torch
        from nnsmith import narrow_spec
        from nnsmith.abstract.extension import activate_ext
        from nnsmith.materialize import Model

        torch.set_num_threads(1)
        # NNSmith was written for the exporter that was torch's default before 2.9.
        torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
        narrow_spec.NNSMITH_CACHE_DIR = os.path.join(cache, "-".join(map(version, _VERSIONS)))  # noqa: PTH118
        self._kind: Any = Model.init("onnx", backend_target="cpu")
        self._kind.add_seed_setter()
        self.operators = _exportable(self._kind)
        activate_ext(opset=self.operators, factory=None)

    def model(self, seed: int, nodes: int, dtypes: list[str] | None, folder: str | None) -> bytes:
        """The model's bytes; raises whatever NNSmith, z3 or torch do."""
        from nnsmith.graph_gen import model_gen

        _new_context()
        generator = model_gen(
            opset=self.operators,
            method=_METHOD,
            seed=seed & 0x7FFF_FFFF,  # numpy takes 32 bits
            max_nodes=nodes,
            timeout_ms=_TIMEOUT_MS,
            dtype_choices=dtypes,
        )
        model = self._kind.from_gir(generator.make_concrete())
        if folder is None:
            _draw_weights(model.torch_model)
        else:
            _dump(model, folder)
        data: bytes = model.native_model.SerializeToString(deterministic=True)
        return data


def _exportable(kind: Any) -> list[Any]:
    """The operators that can be exported, found by exporting one random node of each.

    Sometimes it draws a node that its own assertions refuse (of Reshape), and fails.
    """
    from nnsmith.error import InternalError
    from nnsmith.narrow_spec import auto_opset
    from nnsmith.util import set_seed

    for seed in range(_ATTEMPTS):
        _new_context()
        set_seed(seed)
        try:
            found: list[Any] = auto_opset(kind, None)
        except InternalError:
            continue
        return found
    raise SystemExit(f"NNSmith failed {_ATTEMPTS} times to find out which of its operators can be exported")


def _new_context() -> None:
    from z3 import z3

    z3._main_ctx = None  # the next term makes a new one


def _draw_weights(network: Any) -> None:
    import torch
    from nnsmith.materialize.torch.symbolnet import random_tensor

    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(random_tensor(parameter.shape, dtype=parameter.dtype))


def _dump(model: Any, folder: str) -> None:
    from nnsmith.materialize import TestCase

    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    model.refine_weights()
    TestCase(model, model.make_oracle()).dump(root_folder=folder)


def _answer_request(peer: NNSmithModels, seed: int, **options: Any) -> dict[str, Any]:
    begun, begun_cpu = time.perf_counter(), time.process_time()
    try:
        data = peer.model(seed, **options)
    except Exception as error:  # noqa: BLE001 - NNSmith, z3 and torch raise any class; it is reported
        return {"event": "failed", "seed": seed, "reason": f"{type(error).__name__}: {error}"[:500]}
    took = {"seconds": time.perf_counter() - begun, "cpu": time.process_time() - begun_cpu}
    return {"event": "model", "seed": seed, "onnx": base64.b64encode(data).decode()} | took


def _write_line(out: TextIO, **fields: Any) -> None:
    out.write(json.dumps(fields) + "\n")
    out.flush()


def main(cache: str) -> int:
    """Answers requests until stdin closes."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # torch and NNSmith print; stdout is for events
    sys.stdout = sys.stderr
    warnings.simplefilter("ignore")
    peer = NNSmithModels(cache)
    _write_line(
        out,
        event="ready",
        operators=len(peer.operators),
        versions={name: version(name) for name in _VERSIONS},
    )
    with suppress(BrokenPipeError):
        for line in sys.stdin:
            _write_line(out, **_answer_request(peer, **json.loads(line)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
