"""Profiles: the tensors of a program before each of its statements, from one eager run.

TorchProbe needs values "exactly before the insertion point", because earlier mutations change variables in
place (seed paper, section on conditional blocks).
"""

from __future__ import annotations

import ast
import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fuzzing.backends.shared import torch_programs
from fuzzing.mutate.programs.program_tree import BLOCK_FIELDS, Block, ProgramTree

#: The name of the function that records variables. Programs have no other name that begins so.
_PROBE = "_assay_probe"


@dataclass(frozen=True)
class TensorFacts:
    """A tensor at one point of a run.

    values       a copy
    storage      the address of its memory, equal for views of one tensor
    overlapping  whether two of its elements share memory, as in an expanded tensor
    """

    values: torch.Tensor
    storage: int
    overlapping: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.values.shape)

    @property
    def dtype(self) -> torch.dtype:
        """Its element type."""
        return self.values.dtype


Point = Mapping[str, TensorFacts]


class Profile:
    """The variables of a program before each statement and at the end of each block."""

    def __init__(self, points: Mapping[tuple[int, int], Sequence[Point]]) -> None:
        self._points = points

    def before(self, block: Block, index: int) -> Point | None:
        """The variables before a statement; None if the run came by there never, or more than once."""
        found = self._points.get((block.number, index), ())
        return found[0] if len(found) == 1 else None

    def aliases(self, storage: int) -> frozenset[str]:
        """The variables that ever share this memory."""
        return frozenset(
            name
            for points in self._points.values()
            for point in points
            for name, facts in point.items()
            if facts.storage == storage
        )

    def tensors(self) -> list[TensorFacts]:
        """Every tensor at every point."""
        return [facts for points in self._points.values() for point in points for facts in point.values()]


def run_program(
    text: str, inputs: Sequence[Any], tree: ast.Module | None = None, **names: Any
) -> tuple[Any, ...]:
    """The eager results of `forward` on copies of these tensors. Propagates the program's exceptions.

    The program's own `arrange`, if it has one, makes the copies.

    tree   runs instead of the text, whose tree it is after edits
    names  are added to the program's globals
    """
    space = torch_programs.execute(text, "mutant.py", tree)
    space.update(names)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch deprecates it still computes
        torch_programs.reseed()
        result = space["forward"](*space.get("arrange", _clone)(dict(enumerate(inputs))))
    return result if isinstance(result, tuple) else (result,)


def _clone(inputs: Mapping[int, Any]) -> list[Any]:
    return [tensor.clone() for tensor in inputs.values()]


def profile(program: ProgramTree, inputs: Sequence[Any]) -> Profile:
    """Runs the program eagerly on these tensors; propagates its exceptions."""
    recorder = _Recorder()
    tree = ast.parse(program.text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
    numbers = itertools.count()
    for function in functions:
        _insert_probes(function, numbers)
    run_program(program.text, inputs, tree, **{_PROBE: recorder.record})
    return Profile(recorder.points)


class _Recorder:
    """Copies tensors; one that has not changed since it was last seen is copied once."""

    def __init__(self) -> None:
        self.points: dict[tuple[int, int], list[Point]] = {}
        self._copies: dict[tuple[int, int], TensorFacts] = {}
        self._alive: dict[int, torch.Tensor] = {}  # so that neither ids nor addresses are used again

    def record(self, block: int, index: int, variables: Mapping[str, object]) -> None:
        point = {name: self._copy(value) for name, value in variables.items() if type(value) is torch.Tensor}
        self.points.setdefault((block, index), []).append(point)

    def _copy(self, tensor: torch.Tensor) -> TensorFacts:
        key = id(tensor), tensor._version  # torch's own count of writes, through any view
        if key not in self._copies:
            self._alive[id(tensor)] = tensor
            overlapping = any(
                step == 0 and length > 1 for step, length in zip(tensor.stride(), tensor.shape, strict=True)
            )
            storage = tensor.untyped_storage().data_ptr()
            self._copies[key] = TensorFacts(tensor.clone(), storage, overlapping)
        return self._copies[key]


def _insert_probes(node: ast.AST, numbers: Iterator[int]) -> None:
    """Puts a call of the probe before each statement and at the end of each block, numbered as in
    `ProgramTree.blocks`.
    """
    for name in BLOCK_FIELDS:
        inner = getattr(node, name, None)
        if not isinstance(inner, list) or not inner:
            continue
        is_block = isinstance(inner[0], ast.stmt) and not isinstance(node, ast.ClassDef)
        number = next(numbers) if is_block else 0
        for item in inner:
            _insert_probes(item, numbers)
        if is_block:
            probed = [part for index, item in enumerate(inner) for part in (_probe(number, index), item)]
            setattr(node, name, [*probed, _probe(number, len(inner))])


def _probe(block: int, index: int) -> ast.stmt:
    """A call of the probe; built, since parsing one for each statement takes longer than running them."""
    variables = ast.Call(ast.Name("locals", ast.Load()), [], [])
    given = [ast.Constant(block), ast.Constant(index), variables]
    return ast.fix_missing_locations(ast.Expr(ast.Call(ast.Name(_PROBE, ast.Load()), given, [])))
