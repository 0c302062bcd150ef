"""Python programs, judged by plain predicates on their text, and once by inductor with a planted fault."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing.cases import Provenance, Tensor, TestCase, TorchProgram
from fuzzing.execute.evaluator import Evaluator
from fuzzing.execute.shard import Shard
from fuzzing.reduce import syntax
from fuzzing.reduce.engine import CLEAN, SAME, SearchResult, reduce
from fuzzing.reduce.programs import SPEC, Script, load, size
from fuzzing.reduce.reduction import reduce_case
from fuzzing.reduce.script import parts, split

WRONG_GRADIENT = str(Path(__file__).parents[1] / "execute" / "wrong_gradient.py")
PLANTED = str(Path(__file__).parents[1] / "backends" / "planted_inductor.py")

PROGRAM = """
import math
import torch
SCALE = 2.5
def helper(v):
    return v * SCALE
def forward(first, second):
    t0 = torch.relu(first)
    t1 = t0 + second
    with torch.no_grad():
        t2 = helper(t1)
        if t2.dim() > 1:
            t3 = torch.sigmoid(t2)
            t4 = torch.cat([t3, t1], dim=1)
        else:
            t4 = t2
    for step in range(2):
        t5 = t4 * 3 + step
        t6 = torch.sin(t5 - t4) + 1
    t7 = t6.sum(dim=1, keepdim=True)
    t8 = torch.clamp(t7, -7, 12.75) * second
    t9 = torch.tanh(t8)
    t10 = t9 - first
    return t10, t8, t1
"""


def values(*names: str) -> dict[str, Tensor]:
    return {name: Tensor.of(np.linspace(0.25, 1, 12, dtype=np.float32).reshape(4, 3)) for name in names}


def case(text: str, **inputs: Tensor) -> TestCase:
    given = Provenance("tests", "one", "op", "torch", "")
    return TestCase(TorchProgram(text), tuple(inputs.items()), given)


def script(text: str, inputs: dict[str, Tensor], **variable_values: Tensor) -> Script:
    start = case(text, **inputs)
    return Script(ast.unparse(ast.parse(text)), start.inputs, variable_values, start)


def reduced(start: Script, shows: Callable[[str], bool]) -> SearchResult[Script]:
    def classify(candidates: Sequence[Script]) -> list[str]:
        for candidate in candidates:
            compile(candidate.text, "candidate", "exec")
            function = syntax.find_forward(ast.parse(candidate.text))
            assert function is not None
            assert len(syntax.parameters(function)) == len(candidate.inputs)
        return [SAME if shows(candidate.text) else CLEAN for candidate in candidates]

    found = reduce(start, SPEC, classify)
    assert found.minimal
    return found


def program(*, variable_values: bool) -> Script:
    held = values(*(f"t{number}" for number in range(11))) if variable_values else {}
    return script(PROGRAM, values("first", "second"), **held)


@pytest.mark.parametrize("variable_values", [True, False])
def test_the_statement_that_matters_is_left(variable_values: bool) -> None:
    found = reduced(program(variable_values=variable_values), lambda text: "clamp" in text).best
    assert "clamp" in found.text
    assert size(found)[0] <= 4
    assert not [word for word in ("math", "SCALE", "helper", "with") if word in found.text]
    assert found.text.startswith("import torch")


@pytest.mark.parametrize(
    "word", ["relu", "helper", "cat", "sin", "tanh", "for", "with", "dim() > 1", "range"]
)
def test_whatever_the_cause_little_is_left_of_it(word: str) -> None:
    found = reduced(program(variable_values=True), lambda text: word in text).best
    assert size(found)[0] <= 8, found.text


def test_what_a_cut_away_statement_made_becomes_an_input_that_holds_it() -> None:
    held = Tensor.of(np.full((2, 2), 7.0, np.float32))
    text = "def forward(x):\n    a = torch.relu(x)\n    b = torch.sin(a)\n    return b\n"
    found = reduced(script(text, values("x"), a=held), lambda text: "sin(a" in text and "relu" not in text)
    [(name, _)] = found.best.inputs
    assert found.best.text.startswith("def forward(a)")
    assert name == "a"


def test_arguments_literals_names_and_unused_inputs() -> None:
    text = "def forward(left, right):\n    answer = torch.clamp(left, -7, max=12.75)\n    return answer\n"
    found = reduced(
        script(text, values("left", "right")), lambda text: "clamp(" in text and "max" in text
    ).best
    assert len(found.inputs) <= 1
    assert "12.75" not in found.text
    assert "answer" not in found.text
    assert "7" not in found.text


def test_a_text_that_arranges_its_own_inputs_keeps_them() -> None:
    own = "def arrange(inputs):\n    return list(inputs.values())\n"
    text = f"{own}def forward(x, y):\n    a = torch.sin(x)\n    return a\n"
    best = reduced(script(text, values("x", "y")), lambda text: "arrange" in text and "sin" in text).best
    assert len(best.inputs) == 2


def test_no_loop_is_left_without_an_end() -> None:
    loop = "    while n > 0:\n        x = torch.sin(x)\n        n = n - 1\n"
    text = f"def forward(x):\n    n = 3\n{loop}    return x\n"

    def shows(text: str) -> bool:
        if "while n" in text:
            assert "n = n - 1" in text or "n = n" in text or "n = 1" in text
        return "sin" in text

    assert "while" not in reduced(script(text, values("x")), shows).best.text


@settings(max_examples=25)
@given(st.sets(st.integers(0, 7), min_size=1, max_size=3))
def test_of_a_straight_text_each_statement_that_is_left_is_needed(wanted: set[int]) -> None:
    lines = "".join(f"    v{n} = torch.op{n}({f'v{n - 1}' if n else 'x'})\n" for n in range(8))
    start = script(
        f"def forward(x):\n{lines}    return v7\n", values("x"), **values(*(f"v{n}" for n in range(8)))
    )

    def shows(text: str) -> bool:
        return all(f"op{n}(" in text for n in wanted)

    best = reduced(start, shows).best
    # The function and its return, beside one statement for each operator at most.
    assert size(best)[0] <= 2 + len(wanted), best.text


def shard(**options: str) -> Shard:
    return Shard("", (), PLANTED, "digest", sys.executable, options=options)


@pytest.mark.slow
def test_a_fault_in_inductor_is_left_alone_with_its_operator() -> None:
    found = reduce_case(case(PROGRAM, **values("p", "q")), shard(torch_backend="eager"))
    assert found.confirmed
    assert found.reduced.minimal
    assert isinstance(found.case.program, TorchProgram)
    tree = ast.parse(found.case.program.text)
    assert syntax.count(tree) <= 3
    assert [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)] == ["sin"]


@pytest.mark.slow
@pytest.mark.compiler_torch_eager
def test_a_wrong_gradient_is_kept() -> None:
    """The results are right throughout, so a reduction that compared them alone would find no failure."""
    text = "import torch\ndef forward(x, y):\n    a = torch.tanh(x)\n    b = a * y\n    return b + 1, x - y\n"
    settings = Shard("", (), WRONG_GRADIENT, "digest", sys.executable, options={"backward": "on"})
    found = reduce_case(case(text, **values("x", "y")), settings)
    assert found.confirmed
    assert isinstance(found.case.program, TorchProgram)
    tree = ast.parse(found.case.program.text)
    assert syntax.count(tree) <= 3
    assert [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)] == ["tanh"]


def test_the_library_tells_what_variables_hold() -> None:
    text = "def forward(x):\n    a = torch.relu(x)\n    b = 3\n    c = a + b\n    return c\n"
    with Evaluator(shard(torch_backend="eager")) as evaluator:
        variable_values = load(
            case(text, p=Tensor.of(np.array([-1.0, 2.0], np.float32))), evaluator
        ).variable_values
    assert {name: value.array().tolist() for name, value in variable_values.items()} == {
        "a": [0, 2],
        "c": [3, 5],
    }


PARTS = "import torch\n\ndef forward(x, y):\n    a = x + 1\n    b = a * y\n    return torch.cat([a, b])"


def halves(text: str, at: int, **variable_values: Tensor) -> list[tuple[str, list[str]]] | None:
    """The function's body and inputs before and after a cut."""
    found = split(script(text, values("x", "y"), **variable_values), at)
    if found is None:
        return None
    return [(part.text.partition("):\n")[2], [name for name, _ in part.inputs]) for part in found]


def test_a_program_is_cut_in_two_where_it_is_known_what_flows() -> None:
    variable_values = values("a", "b")
    assert parts(script(PARTS, values("x", "y"), **variable_values)) == 3
    assert halves(PARTS, 1, **variable_values) == [
        ("    a = x + 1\n    return a", ["x"]),
        ("    b = a * y\n    return torch.cat([a, b])", ["y", "a"]),
    ]
    assert halves(PARTS, 2, **variable_values) == [
        ("    a = x + 1\n    b = a * y\n    return (a, b)", ["x", "y"]),
        ("    return torch.cat([a, b])", ["a", "b"]),
    ]


def test_it_is_not_cut_where_it_is_not() -> None:
    assert parts(script(PARTS, values("x", "y"))) == 1
    assert halves(PARTS, 2, **values("a")) is None
    # What is written over is known as it ends, not as it was.
    assert halves("def forward(x, y):\n    x = x + 1\n    b = x * y\n    return b", 1, **values("x")) is None


def test_a_function_that_returns_names_computes_nothing_there() -> None:
    text = "def forward(x, y):\n    a = x + y\n    b = -a\n    return (b, a)"
    assert parts(script(text, values("x", "y"), **values("a", "b"))) == 2
