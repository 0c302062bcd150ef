"""Inductor's passes, decompositions and lowerings as parts that can be left out, by name.

Torch has a bisector of its own (torch/_inductor/compiler_bisector.py): at each pass, decomposition and
lowering the compiler asks it whether to leave that one out. The question is answered here by name. Its own
search is not used, since it asks the program whether the result is right, and that is not for this process
to say; nor does it find causes of which two must go together. Beside those, settings that turn parts off.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from fuzzing.backends.base import Instrumentation

#: Parts that a setting of torch._inductor.config turns off, with its value for that (torch 2.6 to 2.13).
#: Settings that a release lacks are left alone.
_SETTINGS: Dict[str, Tuple[str, Any]] = {
    "pattern matcher": ("pattern_matcher", False),
    "epilogue fusion": ("epilogue_fusion", False),
    "fusion": ("max_fusion_size", 1),
    "joint graph constant folding": ("joint_graph_constant_folding", False),
    "index propagation": ("constant_and_index_propagation", False),
    "split reductions": ("split_reductions", False),
    "layout optimization": ("layout_optimization", False),
    "comprehensive padding": ("comprehensive_padding", False),
    "in-place buffers": ("inplace_buffers", False),
    "reuse of buffers": ("allow_buffer_reuse", False),
    "reordering for peak memory": ("reorder_for_peak_memory", False),
    "weight prepacking": ("cpp.weight_prepack", False),
    "vectorization": ("cpp.simdlen", 1),
    "precision of intermediates": ("emulate_precision_casts", True),
}
#: What the bisector calls the sorts of its points, and what they are called here.
_POINT_KINDS = {
    "pre_grad_passes": "pass before autograd",
    "joint_graph_passes": "pass on the joint graph",
    "post_grad_passes": "pass after autograd",
    "decomposition": "decomposition of",
    "lowerings": "lowering of",
}
_OVERLOAD = re.compile(r"<OpOverload\(op='([^']+)', overload='([^']+)'\)>")


@contextmanager
def instrumented(instrumentation: Instrumentation) -> Iterator[None]:
    """Has what is compiled in the block leave out parts, and notes those that it asks about."""
    if not instrumentation.record and not instrumentation.disabled:
        yield
        return
    from torch._inductor import compiler_bisector
    from torch._inductor import config as module

    config: Any = module
    known = config._config  # there is no other list of the settings
    settings = {name: pair for name, pair in _SETTINGS.items() if pair[0] in known}
    for name in settings:
        instrumentation.note("bisectable_pass", name)
    off = {key: value for name, (key, value) in settings.items() if name in instrumentation.disabled}
    bisector: Any = compiler_bisector.CompilerBisector
    before = bisector.__dict__["disable_subsystem"]
    bisector.disable_subsystem = staticmethod(_answer(instrumentation))
    try:
        with config.patch(off):
            yield
    finally:
        bisector.disable_subsystem = before


def _answer(instrumentation: Instrumentation) -> Callable[..., bool]:
    def disabled(_: str, kind: str, describe: Optional[Callable[[], str]] = None) -> bool:
        if kind not in _POINT_KINDS or describe is None:
            return False
        name = _POINT_KINDS[kind] + " " + _OVERLOAD.sub(r"\1.\2", describe())
        instrumentation.note("bisectable_pass", name)
        return name in instrumentation.disabled

    return disabled
