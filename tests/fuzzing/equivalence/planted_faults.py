"""Faults in APIs of torch, one for each of EAGLE's rules: what is patched, and what replaces it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Fault:
    """A fault that `rule` finds with a subject of `api`.

    patched  module and attribute
    wrong    the function, given the right one
    """

    rule: str
    api: str
    patched: tuple[str, str]
    wrong: Callable[[Function], Function]


def when(condition: Callable[..., bool], change: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """The function with another result where a condition on its arguments holds."""

    def wrap(right: Function) -> Function:
        def wrong(*args: Any, **kwargs: Any) -> Any:
            result = right(*args, **kwargs)
            return change(result) if condition(*args, **kwargs) else result

        return wrong

    return wrap


def _always(*_: Any, **__: Any) -> bool:
    return True


def _grouped(*args: Any, **kwargs: Any) -> bool:
    groups: int = kwargs.get("groups", args[6] if len(args) > 6 else 1)
    return groups > 1


def _dilated(*args: Any, **kwargs: Any) -> bool:
    dilation = kwargs.get("dilation", args[5] if len(args) > 5 else 1)
    return any(step > 1 for step in (dilation if isinstance(dilation, tuple) else (dilation,)))


def _compiled(right: Function) -> Function:
    del right
    return lambda call, **_: lambda *inputs: call(*inputs) + 1


def _disturb(module: Any) -> None:
    for parameter in module.parameters():
        parameter.data.add_(1)


F = "torch.nn.functional"
FAULTS = (
    Fault("optimized-compile", "torch.exp", ("torch", "compile"), _compiled),
    Fault("same-padding", f"{F}.conv2d", (F, "conv2d"), when(
        lambda *_, **kwargs: kwargs.get("padding") == "same", lambda result: result + 1)),
    Fault("unit-dimension", f"{F}.max_pool2d", (F, "max_pool3d"), when(_always, lambda result: result + 1)),
    Fault("depthwise", f"{F}.conv2d", (F, "conv2d"), when(_grouped, lambda result: result.flip(1))),
    Fault("separable", f"{F}.conv2d", (F, "conv2d"), when(_grouped, lambda result: result + 1)),
    Fault("dilation", f"{F}.conv1d", (F, "conv1d"), when(_dilated, lambda result: result.flip(2) + 1)),
    Fault("formula", f"{F}.silu", (F, "silu"), when(_always, lambda result: result + 0.1)),
    Fault("sparse-csr", "torch.mm", ("torch", "mm"), when(
        lambda mat, *_: not mat.is_sparse and "csr" in str(mat.layout), lambda result: result + 1)),
    Fault("value-range", f"{F}.interpolate", (F, "interpolate"), when(
        _always, lambda result: result.clamp(max=9))),
    Fault("time-major", "torch.nn.GRU", ("torch.nn.GRU", "forward"), when(
        lambda layer, _: layer.batch_first, lambda result: (result[0] + 1, result[1]))),
    Fault("data-loader", "torch.neg", ("torch.utils.data.DataLoader", "__iter__"), when(
        _always, lambda batches: iter([[item + 1 for item in batch] for batch in batches]))),
    Fault("cast", "torch.fmod", ("torch", "fmod"), when(
        lambda one, *_: "torch.int" in str(one.dtype), lambda result: result + 1)),
    Fault("inverse", "torch.fft.fft", ("torch.fft", "ifft"), when(_always, lambda result: result * 2)),
    Fault("pad-crop", f"{F}.pad", (F, "pad"), when(_always, lambda result: result + 1)),
    Fault("batch-size", "torch.nn.Linear", ("torch.nn.Linear", "forward"), when(
        lambda _, data: len(data) == 1, lambda result: result + 1)),
    Fault("save-load-deepcopy", "torch.nn.Linear", ("copy", "deepcopy"), when(
        _always, lambda layer: layer.apply(_disturb))),
)  # fmt: skip


def _loaded(right: Function) -> Function:
    def wrong(file: Any) -> Any:
        loaded = right(file)
        return lambda *inputs: loaded(*inputs) + 1

    return wrong


def _exported(right: Function) -> Function:
    def wrong(file: Any) -> Any:
        module = right(file).module()
        return SimpleNamespace(module=lambda: lambda *inputs: module(*inputs) + 1)

    return wrong


#: The same for rules beyond EAGLE's.
FURTHER_FAULTS = (
    Fault("function-form", "torch.Tensor.exp", ("torch", "exp"), when(_always, lambda result: result + 1)),
    Fault("saved-script", "torch.exp", ("torch.jit", "load"), _loaded),
    Fault("saved-export", "torch.exp", ("torch.export", "load"), _exported),
    Fault("scan", "torch.nn.GRU", ("torch.nn.GRU", "forward"), when(
        _always, lambda result: (result[0] + 1, result[1]))),
)  # fmt: skip
