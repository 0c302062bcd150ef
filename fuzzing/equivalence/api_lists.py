"""APIs of the installed torch that rules apply to, found by introspection."""

from __future__ import annotations

from functools import cache

from fuzzing.generate.docter import apis


@cache
def documented() -> tuple[str, ...]:
    """Every documented API that docter draws calls of."""
    return tuple(apis.list_apis())


@cache
def functions() -> tuple[str, ...]:
    """Those that are functions of tensors, neither modules nor methods."""
    return tuple(api for api in documented() if not api.startswith(("torch.nn.", "torch.Tensor."))) + tuple(
        api for api in documented() if api.startswith("torch.nn.functional.")
    )


@cache
def modules() -> tuple[str, ...]:
    """Those that are classes of modules."""
    prefixes = ("torch.nn.functional.",)
    return tuple(api for api in documented() if api.startswith("torch.nn.") and not api.startswith(prefixes))


@cache
def methods() -> tuple[str, ...]:
    """Those that are methods of tensors."""
    return tuple(api for api in documented() if api.startswith("torch.Tensor."))
