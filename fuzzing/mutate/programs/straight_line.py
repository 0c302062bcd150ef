"""Straight-line programs that are written statement by statement, each of which is run at once."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from fuzzing.backends.shared.torch_programs import from_torch, reseed
from fuzzing.cases import Input
from fuzzing.mutate.programs.seeds import Seed, format_program

#: Elements of one tensor: kernels of more do the same for longer.
_MOST_ELEMENTS = 4096
#: Beyond it the next exponential or product is soon infinite.
_LARGEST = 1e4
#: Results of a program; the last ones that no statement reads.
_MOST_RESULTS = 4
_DTYPES = frozenset(
    {torch.float32, torch.float64, torch.float16, torch.int32, torch.int64, torch.uint8, torch.bool}
    | {torch.complex64, torch.complex128}
)


class StraightLine:
    """A program under construction; its variables are v0, v1, … in the order in which they were added."""

    def __init__(self) -> None:
        self.values: dict[str, torch.Tensor] = {}
        self._inputs: dict[str, Input] = {}
        self._lines: list[tuple[str, str]] = []

    def add_input(self, tensor: torch.Tensor) -> str:
        """The name of a new input with these values."""
        name = f"v{len(self.values)}"
        self._inputs[name] = from_torch(tensor)
        self.values[name] = tensor.detach().clone(memory_format=torch.contiguous_format)
        return name

    def add(self, expression: str) -> str | None:
        """The name of a new variable; None if the value has no place in a seed: it is no tensor, large, not
        finite, random or uninitialized, or its computation writes to a variable.

        Propagates what the expression raises.
        """
        copies = {name: value.clone() for name, value in self.values.items()}
        versions = [value._version for value in self.values.values()]
        reseed()
        before = torch.default_generator.get_state()
        with torch.no_grad(), _filled_memory():
            result = eval(expression, {"torch": torch, **self.values})  # noqa: S307 - calls of torch's own samples
        if isinstance(result, (tuple, list)) and result:
            expression, result = f"{expression}[0]", result[0]
        # Batch norm's kernel writes its running statistics without counting a version.
        unchanged = versions == [value._version for value in self.values.values()] and all(
            torch.equal(value, copies[name]) for name, value in self.values.items()
        )
        if not unchanged:
            self.values = copies
            return None
        is_random = not torch.equal(before, torch.default_generator.get_state())
        if is_random or not is_usable(result):
            return None
        name = f"v{len(self.values)}"
        self.values[name] = result
        self._lines.append((name, expression))
        return name

    def finish(self) -> Seed:
        """The program. It returns what no statement reads."""
        read = {
            node.id
            for _, expression in self._lines
            for node in ast.walk(ast.parse(expression))
            if isinstance(node, ast.Name)
        }
        results = [name for name, _ in self._lines if name not in read][-_MOST_RESULTS:]
        inputs = {name: value for name, value in self._inputs.items() if name in read}
        text = format_program(inputs, (f"{name} = {value}" for name, value in self._lines), results)
        return Seed(text, tuple(inputs.items()), tuple(self.values[name].clone() for name in inputs))

    def __len__(self) -> int:
        return len(self._lines)


@contextmanager
def _filled_memory() -> Iterator[None]:
    """Within it torch fills memory that an operator leaves uninitialized with NaN or the largest integer
    (torch.utils.deterministic), which have no place in a seed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # operators without a deterministic kernel warn
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)


def is_usable(value: Any) -> bool:
    """Whether a value is a plain, small and finite tensor."""
    if type(value) is not torch.Tensor or value.layout != torch.strided or value.dtype not in _DTYPES:
        return False
    if value.numel() > _MOST_ELEMENTS or not bool(torch.isfinite(value).all()):
        return False
    return not value.numel() or bool(value.abs().max() <= _LARGEST if value.dtype != torch.bool else True)
