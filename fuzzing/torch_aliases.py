"""Functions of torch that have several names."""

from __future__ import annotations

import re
from functools import lru_cache

#: `torch.Tensor.erfinv` and `torch.special.erfinv` are `torch.erfinv`; an unreduced case has no `torch.`.
_PREFIX = re.compile(r"(?<![\w.])(torch\.)?(?:Tensor|special)\.")
#: Functions of torch that its documentation calls an alias, by what they are an alias of (torch 2.13).
ALIASES = {
    **{f"arc{name}": f"a{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")},
    **{name: f"linalg.{name}" for name in ("det", "matrix_exp", "matrix_power", "slogdet")},
    "absolute": "abs",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "expit": "sigmoid",
    "fix": "trunc",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "inverse": "linalg.inv",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multigammaln": "mvlgamma",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "orgqr": "linalg.householder_product",
    "pinverse": "linalg.pinv",
    "row_stack": "vstack",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "trapz": "trapezoid",
    "true_divide": "div",
}
_ALIAS = re.compile(rf"(?<![\w.])(torch\.)?({'|'.join(ALIASES)})(_?)(?![\w.])")
#: `torch.nn.MaxPool2d` calls `torch.nn.functional.max_pool2d`.
_MODULE_OR_FUNCTION = re.compile(r"(?:torch\.)?nn\.(?:functional\.)?(\w+)")
#: What calls `interpolate` with its own defaults; `upsample_bilinear` has others (torch 2.13).
_INTERPOLATION = frozenset({"upsample", "upsamplenearest", "upsamplingnearest2d"})


@lru_cache(maxsize=4096)
def canonical_api(api: str) -> str:
    """A pattern with one name for a function of torch, its method, aliases and the module that calls it."""
    if found := _MODULE_OR_FUNCTION.fullmatch(api):
        name = found[1].replace("_", "").lower()
        return f"nn.{'interpolate' if name in _INTERPOLATION else name}"
    return _ALIAS.sub(lambda one: f"{one[1] or ''}{ALIASES[one[2]]}{one[3]}", _PREFIX.sub(r"\1", api))


def bare_api(api: str) -> str:
    """`canonical_api` without `torch.`, as in programs that call a method."""
    return canonical_api(api).removeprefix("torch.")
