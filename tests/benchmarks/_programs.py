"""Failing Python programs, and line-based delta debugging to compare reduction with."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzzing.cases import TestCase, TorchProgram
from fuzzing.errors import CaseFormatError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.generate.case_builder import CaseOrigin
from fuzzing.generate.case_builder import build_case as case_of
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver
from fuzzing.graph.torch_writer import to_torch
from fuzzing.reduce.symptom_check import has_symptom
from fuzzing.reduce.syntax import count
from fuzzing.rng import Rng, derive_seed

#: Dynamo alone with two faults: torch.sin computes a cosine, torch.trunc does not compile.
BACKEND = str(Path(__file__).parents[1] / "fuzzing" / "backends" / "planted_inductor.py")
OPTIONS = {"torch_backend": "eager"}
CAUSES = {"sin": "torch.sin(", "trunc": "torch.trunc("}
_OPERATORS = (
    "Abs", "Add", "Concat", "Exp", "MatMul", "Max", "Mul", "Neg", "ReduceSum", "Relu", "Sigmoid", "Sin",
    "Softmax", "Tanh", "Transpose",
)  # fmt: skip
_BLOCKS = ("if v{}.dim() >= 0:", "with torch.no_grad():", "for _ in range(1):")


def programs(cause: str, seed: int) -> Iterator[TestCase]:
    """Programs of 20 to 40 statements with a fault: graphs as torch source, some statements in blocks."""
    others = {"sin": "Neg", "trunc": "Sin"}  # what would bring the other cause in
    operators = tuple(name for name in _OPERATORS if name != others[cause])
    solver = Solver(GeneratorSettings(nodes=(18, 32), opset=18, operators=operators))
    number = 0
    while True:
        number += 1
        drawn = derive_seed(seed, cause, number)
        made = solver.generate(drawn)
        text = _blocks(to_torch(made.graph).replace("torch.neg(", "torch.trunc("), drawn)
        if CAUSES[cause] in text and 20 <= count(ast.parse(text)) <= 40:
            case = case_of(made, drawn, CaseOrigin("isra", "1"), f"{cause} {number}")
            yield replace(case, program=TorchProgram(text))


def _blocks(text: str, seed: int) -> str:
    """The text with three runs of its statements in blocks, possibly nested."""
    head, _, body = text.partition("):\n")
    lines = body.rstrip("\n").split("\n")
    rng = Rng(derive_seed(seed, "blocks"))
    for block in _BLOCKS:
        begin = rng.below(len(lines) - 4)
        end = begin + rng.between(1, 3)
        part = lines[begin:end]
        if len({len(line) - len(line.lstrip()) for line in lines[begin : end + 1]}) == 1:
            margin = part[0][: len(part[0]) - len(part[0].lstrip())]
            lines[begin:end] = [margin + block.format(0), *(textwrap.indent(line, "    ") for line in part)]
    return f"{head}):\n" + "\n".join(lines) + "\n"


def by_lines(case: TestCase, evaluator: Evaluator, wanted: dict[str, Any]) -> tuple[int, int]:
    """Statements that ddmin on lines leaves (Zeller and Hildebrandt, TSE 2002), and its runs.

    Candidates that do not parse or were tried before are not counted.
    """
    seen: dict[str, bool] = {}

    def fails(lines: Sequence[str]) -> bool:
        text = "\n".join(lines)
        if text in seen:
            return seen[text]
        try:
            program = TorchProgram(text)
        except CaseFormatError:
            return False
        [outcome] = evaluator.evaluate([replace(case, program=program)])
        seen[text] = has_symptom(outcome, wanted)
        return seen[text]

    assert isinstance(case.program, TorchProgram)
    left = _ddmin(case.program.text.split("\n"), fails)
    return count(ast.parse("\n".join(left))), len(seen)


def _ddmin(units: list[str], fails: Callable[[list[str]], bool]) -> list[str]:
    parts = 2
    while len(units) > 1:
        step = -(-len(units) // parts)
        chunks = [units[place : place + step] for place in range(0, len(units), step)]
        rests = [[*units[: n * step], *units[(n + 1) * step :]] for n in range(len(chunks))]
        if alone := next((chunk for chunk in chunks if fails(chunk)), None):
            units, parts = alone, 2
        elif rest := next((rest for rest in rests if fails(rest)), None):
            units, parts = rest, max(parts - 1, 2)
        elif parts >= len(units):
            break
        else:
            parts = min(parts * 2, len(units))
    return units
