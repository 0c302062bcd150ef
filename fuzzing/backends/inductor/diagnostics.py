"""What torch.compile computes for its logs only, whether or not they are read: switched off.

Dynamo of torch 2.13 takes a fifth of its time to format stacks for logs at a level that is off. Nothing here
is read by tracing, guards or generated code. Exceptions keep their types and messages, but for the part of a
stack above the compiled frame. `silence_tracing` is for the screening rung alone: a crash of the formatting
itself would be a bug, which later rungs show.
"""

from __future__ import annotations

import importlib
import traceback
from typing import Any, Dict, List

#: Functions of torch._dynamo.utils whose result goes into a frame's record only (torch 2.6 to 2.13).
_LOGGED_SETTINGS = (
    "_get_dynamo_config_for_logging",
    "_compiler_config_for_logging",
    "_scrubbed_inductor_config_for_logging",
    "_functorch_config_for_logging",
)
#: Modules that name the function which formats the stack above Dynamo, with the source of each of its lines.
_STACK_READERS = ("exc", "side_effects", "symbolic_convert", "variables.functions")


class _NoTraceback:
    """In place of torch.utils._traceback.CapturedTraceback."""

    @classmethod
    def extract(cls, **_: Any) -> _NoTraceback:
        return cls()

    def format(self) -> List[str]:
        return []

    def summary(self) -> traceback.StackSummary:
        return traceback.StackSummary()


def silence_records() -> None:
    """Leaves out the measurement of guards, which flushes the processor's caches for each frame and takes
    30 ms, and the copies of all settings as JSON, 5 ms.
    """
    _replace("guards", {"profile_guard_manager": lambda *_: 0.0})
    _replace("utils", {name: lambda *_: None for name in _LOGGED_SETTINGS})


def silence_tracing() -> None:
    """Leaves out the stacks of graph breaks, of writes and of frames, and the names of functions by line."""
    for module in _STACK_READERS:
        _replace(module, {"get_stack_above_dynamo": traceback.StackSummary})
    _replace("symbolic_convert", {"get_funcname": lambda *_: None})
    _replace("convert_frame", {"CapturedTraceback": _NoTraceback, "log_dynamo_start": lambda *_, **__: []})
    _replace("symbolic_convert.InstructionTranslatorBase", {"log_graph_break": _mark_as_logged})
    # Whether writes to objects are logged; they are made in any case.
    _replace("config", {"side_effect_replay_policy": "silent"})


def _mark_as_logged(tracer: Any, code_options: Any, reason: str, exc: Any) -> None:
    del tracer, code_options, reason
    exc.logged = True


def _find(path: str) -> Any:
    """A module of Dynamo or a class of one; None if this release has none of this name."""
    owner: Any = importlib.import_module("torch._dynamo")
    for name in path.split("."):
        try:
            owner = getattr(owner, name, None) or importlib.import_module(f"{owner.__name__}.{name}")
        except ImportError:
            return None
    return owner


def _replace(path: str, values: Dict[str, Any]) -> None:
    """Sets those of the names that this release has in a module of Dynamo, or in a class there."""
    owner = _find(path)
    for name, value in values.items():
        if owner is not None and hasattr(owner, name):
            setattr(owner, name, value)
