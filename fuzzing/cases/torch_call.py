"""TorchCall: one torch API with one setting of its arguments (OPERA's operator instance)."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Dict, Optional, Tuple

from fuzzing.cases import canonical_json, source_templates
from fuzzing.cases.argument_reader import kwargs_from_json, list_from_json
from fuzzing.cases.argument_text import render, render_call, render_subscript
from fuzzing.cases.arguments import (
    Argument,
    Device,
    Kwargs,
    NewObject,
    TensorArg,
    TensorLiteral,
    argument_to_json,
    check_dotted,
    kwargs_to_json,
    rename_tensors,
    sorted_kwargs,
    tensors_in,
)
from fuzzing.cases.programs import register_kind
from fuzzing.errors import CaseFormatError

_KEYS = frozenset({"api", "init", "args", "kwargs", "seed"})
_TENSOR = "torch.Tensor."
#: Attributes of a tensor that are properties, not methods.
_PROPERTIES = frozenset({"H", "T", "data", "imag", "mH", "mT", "real", "shape"})


@dataclass(frozen=True)
class Init:
    """Arguments of a module's class, as opposed to those of the call of the module."""

    args: Tuple[Argument, ...] = ()
    kwargs: Kwargs = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", tuple(self.args))
        object.__setattr__(self, "kwargs", sorted_kwargs(dict(self.kwargs)))
        if tensors_in(iter((self.args, dict(self.kwargs)))):
            raise CaseFormatError("a module cannot be made from inputs, only called with them")


@register_kind
@dataclass(frozen=True, eq=False)
class TorchCall:
    """A call of `api` with typed arguments; tensors among them name inputs of the case.

    api   a dotted name below torch: a function, a method or property of torch.Tensor (the tensor is the first
          argument), or the class of a module, which is made with `init` and then called
    seed  of a module's parameters, 0 ≤ seed < 2**64
    """

    kind: ClassVar[str] = "TorchCall"
    frontend: ClassVar[str] = "torch"
    filename: ClassVar[str] = "call.json"

    api: str
    args: Tuple[Argument, ...] = ()
    kwargs: Kwargs = ()
    init: Optional[Init] = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_dotted(self.api, "torch")
        object.__setattr__(self, "args", tuple(self.args))
        object.__setattr__(self, "kwargs", sorted_kwargs(dict(self.kwargs)))
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 64:
            raise CaseFormatError("a program's seed must lie in 0..2**64-1")
        self.tensors  # noqa: B018 - raises if two descriptions of one input differ

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TorchCall) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    @cached_property
    def tensors(self) -> Tuple[TensorArg, ...]:
        """The inputs, in the order of the module's arguments."""
        return tensors_in(iter((self.args, dict(self.kwargs))))

    def to_bytes(self) -> bytes:
        """The call as canonical JSON."""
        return canonical_json.to_text(
            {
                "api": self.api,
                "init": None
                if self.init is None
                else {"args": _list(self.init.args), "kwargs": kwargs_to_json(self.init.kwargs)},
                "args": _list(self.args),
                "kwargs": kwargs_to_json(self.kwargs),
                "seed": self.seed,
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> TorchCall:
        """The inverse of `to_bytes`; raises CaseFormatError for any other bytes."""
        obj = canonical_json.from_text(data, _KEYS, cls.filename)
        call = cls(
            obj["api"],
            list_from_json(obj["args"]),
            kwargs_from_json(obj["kwargs"]),
            _init_from_json(obj["init"]),
            obj["seed"],
        )
        canonical_json.check_spelling(data, call.to_bytes(), cls.filename)
        return call

    def source(self) -> str:
        """Python text that defines `make()`, a module in eval mode, and `arrange(inputs)`, its arguments."""
        spelled = self._without_builtins()
        names = ", ".join(["self", *(tensor.name for tensor in spelled.tensors)])
        strided = any(tensor.strides is not None for tensor in self.tensors)
        module = self.init is not None
        init = ""
        if self.init is not None:
            made = f"{self.api}({render_call(self.init.args, self.init.kwargs)})"
            init = f"    def __init__(self):\n        super().__init__()\n        self.layer = {made}\n\n"
        # Literal arguments of a module become its buffers: a loss keeps the given weights.
        keep = ", keep=True" if _holds(self.init, TensorLiteral) else ""
        made = f"fill(Call(), {self.seed}{keep})" if module else "Call()"
        return (
            ("import hashlib\n\nimport numpy as np\n" if module else "")
            + "import torch\n"
            + ('\nDEVICE = "cpu"\n' if self._names_device() else "")
            + (f"\n{source_templates.RESTRIDE}" if strided else "")
            + (f"\n{source_templates.FILL}" if module else "")
            + f"\n\nclass Call(torch.nn.Module):\n{init}"
            + f"    def forward({names}):\n        return {spelled.expression()}\n\n"
            + f"\ndef make():\n    return {made}.eval()\n\n"
            + source_templates.arrange(self.tensors)
        )

    def _without_builtins(self) -> TorchCall:
        """The call with an underscore behind the names of inputs that are builtins of Python.

        torch 2.13 makes no module of an exported program that writes to such a parameter: its graph gives the
        placeholder another name than the signature.
        """
        taken = {tensor.name for tensor in self.tensors}
        others: Dict[str, str] = {}
        for name in sorted(taken):
            others[name] = name
            while hasattr(builtins, others[name]) or (others[name] != name and others[name] in taken):
                others[name] += "_"
        if all(name == other for name, other in others.items()):
            return self
        return replace(
            self,
            args=rename_tensors(self.args, others.__getitem__),
            kwargs=tuple([(name, rename_tensors(item, others.__getitem__)) for name, item in self.kwargs]),
        )

    def _names_device(self) -> bool:
        return _holds((self.args, dict(self.kwargs)), Device) or _holds(self.init, Device)

    def expression(self) -> str:
        """The call in idiomatic Python: methods and properties after their tensor."""
        if self.init is not None:
            return f"self.layer({render_call(self.args, self.kwargs)})"
        method = self.api[len(_TENSOR) :] if self.api.startswith(_TENSOR) else ""
        if not method or not self.args or not isinstance(self.args[0], TensorArg):
            return f"{self.api}({render_call(self.args, self.kwargs)})"
        tensor, rest = render(self.args[0]), self.args[1:]
        if method in _PROPERTIES and not rest and not self.kwargs:
            return f"{tensor}.{method}"
        if method == "__getitem__" and len(rest) == 1:
            return f"{tensor}[{render_subscript(rest[0])}]"
        return f"{tensor}.{method}({render_call(rest, self.kwargs)})"


def _list(arguments: Tuple[Argument, ...]) -> Any:
    return [argument_to_json(item) for item in arguments]


def _init_from_json(obj: object) -> Optional[Init]:
    if obj is None:
        return None
    if not isinstance(obj, dict) or obj.keys() != {"args", "kwargs"}:
        raise CaseFormatError("init needs args and kwargs")
    return Init(list_from_json(obj["args"]), kwargs_from_json(obj["kwargs"]))


def _holds(argument: Argument, kind: type) -> bool:
    """Whether an object of `kind` occurs in an argument, or in the arguments of a module's class."""
    if isinstance(argument, (list, tuple)):
        return any(_holds(item, kind) for item in argument)
    if isinstance(argument, dict):
        return any(_holds(item, kind) for item in argument.values())
    if isinstance(argument, (Init, NewObject)):
        return _holds(argument.args, kind) or _holds(dict(argument.kwargs), kind)
    return isinstance(argument, kind)
