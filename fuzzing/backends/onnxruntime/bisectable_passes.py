"""The parts that ONNX Runtime can disable for a session, by its names for them.

`InferenceSession(disabled_optimizers=…)` takes the names of graph transformers and of rewrite rules. The log
at severity "info" names the transformers that changed the graph (core/optimizer/graph_transformer.cc, Apply).
It does not name rules, which one transformer for each level runs, so all rules are listed here (constructors
of the RewriteRules in core/optimizer, 1.31).
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Set

from fuzzing.backends.base import APPLIED_PASS, Instrumentation
from fuzzing.backends.shared.stderr_capture import capture_stderr

_INFO = 1
#: Transformers that changed the graph, or failed.
_CHANGED = re.compile(rb"GraphTransformer (\w+) modified: (?:1 |0 with status: (?!OK))")
_RULE_BASED = "_RuleBasedTransformer"
RULES = (
    "EliminateIdentity",
    "EliminateSlice",
    "EliminateDropout",
    "UnsqueezeElimination",
    "ExpandElimination",
    "CastElimination",
    "CastChainElimination",
    "PreShapeNodeElimination",
    "NoopElimination",
    "DivMulFusion",
    "FuseReluClip",
    "GemmSumFusion",
    "GemmTransposeFusion",
    "NotWhereFusion",
    "ConvAddFusion",
    "ConvMulFusion",
    "ConvBNFusion",
    "Pad_Fusion",
    "MatMul_BatchNormalization_Fusion",
    "LabelEncoderFusion",
    "ClipQuantRewrite",
    "ReluQuantRewrite",
)
#: Parts that are not optimizers, with the session configuration entry that turns each off
#: (onnxruntime_session_options_config_keys.h), or the attribute of SessionOptions.
_ENTRIES: Dict[str, str] = {"prepacking of weights": "session.disable_prepacking"}
_ATTRIBUTES: Dict[str, str] = {
    "memory pattern": "enable_mem_pattern",
    "reuse of memory": "enable_mem_reuse",
    "memory arena": "enable_cpu_mem_arena",
}


def apply_switches(options: Any, instrumentation: Instrumentation) -> Set[str]:
    """Turns off the parts of `options` that are no optimizers; returns the optimizers to disable."""
    for name, key in _ENTRIES.items():
        instrumentation.note("bisectable_pass", name)
        if name in instrumentation.disabled:
            options.add_session_config_entry(key, "1")
    for name, attribute in _ATTRIBUTES.items():
        instrumentation.note("bisectable_pass", name)
        if name in instrumentation.disabled:
            setattr(options, attribute, False)
    return set(instrumentation.disabled) - set(_ENTRIES) - set(_ATTRIBUTES)


@contextmanager
def note_optimizers(options: Any, instrumentation: Instrumentation) -> Iterator[None]:
    """Notes the optimizers that change the graph of the session made in the block."""
    if not (instrumentation.record or instrumentation.coverage):
        yield
        return
    options.log_severity_level = _INFO
    with capture_stderr() as log:
        try:
            yield
        finally:
            options.log_severity_level = 4
    changed = [name.decode() for name in _CHANGED.findall(log.read())]
    log.close()
    if any(name.endswith(_RULE_BASED) for name in changed):
        for rule in RULES:  # before the transformer that runs them: a rule is more specific
            instrumentation.note("bisectable_pass", rule)
    for name in changed:
        instrumentation.note("bisectable_pass", name)
        instrumentation.note(APPLIED_PASS, name)
