"""IREE's phases in order, and the parts that its compiler can run without."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, List

from fuzzing.backends.base import Instrumentation

#: Phases to compile to, in order (`iree-compile --help`, --compile-to).
_PHASES = (
    "input",
    "abi",
    "preprocessing",
    "global-optimization",
    "dispatch-creation",
    "flow",
    "stream",
    "executable-sources",
    "executable-configurations",
    "executable-targets",
    "hal",
    "vm",
)
#: Session flags that turn a part off; the part is named like the flag.
_DISABLING_FLAGS = {
    "iree-opt-const-eval": "false",
    "iree-opt-const-expr-hoisting": "false",
    "iree-opt-numeric-precision-reduction": "false",
    "iree-opt-data-tiling": "false",
    "iree-opt-generalize-matmul": "false",
    "iree-opt-aggressively-propagate-transposes": "false",
    "iree-opt-outer-dim-concat": "false",
    "iree-dispatch-creation-fuse-multi-use": "false",
    "iree-dispatch-creation-enable-aggressive-fusion": "false",
    "iree-dispatch-creation-enable-aggressive-reshape-movement": "false",
    "iree-dispatch-creation-enable-split-reduction": "false",
    "iree-scheduling-optimize-bindings": "false",
    "iree-llvmcpu-reassociate-fp-reductions": "false",
    "iree-llvmcpu-skip-intermediate-roundings": "false",
    "iree-llvmcpu-use-decompose-softmax-fuse": "false",
    "iree-llvmcpu-loop-vectorization": "false",
    "iree-llvmcpu-slp-vectorization": "false",
    "iree-llvmcpu-loop-interleaving": "false",
    "iree-llvmcpu-loop-unrolling": "false",
    "iree-llvmcpu-mlir-opt-level": "O0",
    "iree-llvmcpu-enable-ukernels": "none",
}


def disabling_flags(session: Any, instrumentation: Instrumentation) -> List[str]:
    """The flags that disable the given parts; notes the parts that this release has."""
    if not instrumentation.record and not instrumentation.disabled:
        return []
    supported = {text.lstrip("-").partition("=")[0] for text in session.get_flags(non_default_only=False)}
    for name in _DISABLING_FLAGS:
        if name in supported:
            instrumentation.note("bisectable_pass", name)
    return [
        f"--{name}={value}"
        for name, value in _DISABLING_FLAGS.items()
        if name in supported & instrumentation.disabled
    ]


def compile_to(invocation: Any, phase: str) -> None:
    """Ends an invocation after a phase, by a function of the C API that the Python API lacks."""
    from iree.compiler.api import ctypes_dl

    set_phase = ctypes_dl._dylib.ireeCompilerInvocationSetCompileToPhase
    set_phase(ctypes.c_void_p(invocation._inv_p), ctypes.c_char_p(phase.encode()))


def note_phases(instrumentation: Instrumentation, compiled_to: Callable[[str], bool]) -> None:
    """Compiles an instrumented program to each phase in turn, and notes those it enters and leaves.

    compiled_to  compiles up to a phase and returns whether that worked; may crash
    """
    if not instrumentation.record:
        return
    for phase in _PHASES:
        instrumentation.note("entered", phase)
        if not compiled_to(phase):
            return
        instrumentation.note("left", phase)
