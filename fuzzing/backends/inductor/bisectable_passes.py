"""Inductor's passes, decompositions and lowerings as parts that can be disabled by name.

Torch's own bisector (torch/_inductor/compiler_bisector.py) is called at each pass, decomposition and lowering
and decides whether to skip it. Here it is replaced by a decision by name. Its search is not used: it runs the
check in the same process, and it does not find two causes that only act together. Some further parts are
turned off by settings.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from fuzzing.backends.base import Instrumentation

#: Parts that a setting of torch._inductor.config turns off, with that value (torch 2.6 to 2.13). Settings
#: that a release lacks are ignored.
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
#: The bisector's kinds of points, and their names here.
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
    """Within it compilation skips the disabled parts and notes every part it reaches."""
    if not instrumentation.record and not instrumentation.disabled:
        yield
        return
    from torch._inductor import compiler_bisector
    from torch._inductor import config as module

    config: Any = module
    known = config._config  # there is no public list of the settings
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
