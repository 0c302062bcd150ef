"""Soundness: a mutant's eager results must be its seed's; any difference is a bug of a mutation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fuzzing.backends.shared import torch_programs
from fuzzing.mutate.programs.mutants import Mutant
from fuzzing.mutate.programs.profile import run_program

#: Bounds of inexact mutations, relative to the largest element, by the bits of an element: some hundred
#: roundings, which is what a sum over the few thousand elements of a seed's tensors collects.
_BOUNDS = {torch.float16: 2e-1, torch.bfloat16: 1.0, torch.float32: 2e-4, torch.float64: 1e-10}
#: A seed whose own rounding is larger has bounds of so many times its distance from a run in float64.
_OWN_ERRORS = 16
_BOUNDS |= {torch.complex64: _BOUNDS[torch.float32], torch.complex128: _BOUNDS[torch.float64]}


def find_difference(mutant: Mutant) -> str:
    """How the mutant's eager results differ from its seed's; "" if they do not."""
    wanted = run_program(mutant.seed.text, mutant.seed.tensors)
    try:
        found = run_program(mutant.text, mutant.seed.tensors)
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed does not raise it
        return f"{type(error).__name__}: {error}"
    if len(found) != len(wanted):
        return f"{len(found)} results for {len(wanted)}"
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        difference = _compare(one, other, exact=mutant.exact)
        if difference and not mutant.exact:  # so rarely that all else need not wait for a run in float64
            difference = _compare(one, other, exact=False, error=_own_errors(mutant, wanted)[place])
        if difference:
            return f"result {place}: {difference}"
    return ""


def _own_errors(mutant: Mutant, wanted: Sequence[Any]) -> list[float]:
    """The largest distance of each of the seed's results from a run in float64; 0 where there is none."""
    from fuzzing.backends.shared.torch_float64 import widen_tensor

    try:
        with torch_programs.computing_in("float64"):
            exact = run_program(mutant.seed.text, [widen_tensor(one) for one in mutant.seed.tensors])
    except Exception:  # noqa: BLE001 - operators may lack the type
        return [0.0] * len(wanted)
    return [
        float((one.to(torch.complex128) - other.to(torch.complex128)).abs().max())
        if one.shape == other.shape and one.numel()
        else 0.0
        for one, other in zip(exact, wanted, strict=True)
    ]


def _compare(found: Any, wanted: Any, *, exact: bool, error: float = 0.0) -> str:
    if not isinstance(found, torch.Tensor):
        return f"{type(found).__name__} for a tensor"
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"{found.dtype}{tuple(found.shape)} for {wanted.dtype}{tuple(wanted.shape)}"
    bound = 0.0 if exact else _BOUNDS.get(wanted.dtype, 0.0)
    if not wanted.numel() or torch.equal(found, wanted):
        return ""
    if not bound:
        return "other values"
    wide, other = found.to(torch.complex128), wanted.to(torch.complex128)
    scale = max(1e-3, float(other.abs().max()))
    off = float((wide - other).abs().max())
    return f"off by {off} of {scale}" if not off <= max(bound * scale, _OWN_ERRORS * error) else ""
