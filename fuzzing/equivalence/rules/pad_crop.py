"""Rule 14: what is padded and cropped is unchanged."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence import draws
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

_MODES = ("constant", "reflect", "replicate", "circular")
_KINDS = {"Zero": "constant", "Reflection": "reflect", "Replication": "replicate", "Circular": "circular"}
_MODULES = {f"torch.nn.{kind}Pad{rank}d": rank for kind in (*_KINDS, "Constant") for rank in (1, 2, 3)}
_FUNCTION = "torch.nn.functional.pad"


def _apis() -> tuple[str, ...]:
    return (_FUNCTION, *_MODULES)


def _draw(api: str, rng: Rng) -> TestCase:
    rank = _MODULES.get(api) or rng.between(1, 3)
    widths = draws.lengths(rng, 2 * rank, 0, 2)
    shape = (*draws.lengths(rng, 2, 1, 3), *draws.lengths(rng, rank, 3, 6))
    data = {"input": draws.uniform(rng, shape)}
    if api == _FUNCTION:
        return draws.call_case(api, data, {"pad": widths, "mode": rng.choice(_MODES)})
    more = {"value": 1.5} if "Constant" in api else {}
    return draws.call_case(api, data, init={"padding": widths, **more})


@register_rule("pad-crop", number=14, equation="crop(pad(i)) = i", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """Pads with the subject's widths and narrows each dimension, the last first, to where it was."""
    init = subject.call.init
    widths = dict(subject.call.kwargs).get("pad") if init is None else dict(init.kwargs).get("padding")
    if subject.names != ("input",) or not isinstance(widths, tuple) or min(widths, default=-1) < 0:
        return None
    setup = [f"result = {subject.expression}"]
    for place in range(len(widths) // 2):
        at = -1 - place
        setup.append(f"result = result.narrow({at}, {widths[2 * place]}, input.shape[{at}])")
    return Sides(subject.program("input"), subject.program("result", setup))
