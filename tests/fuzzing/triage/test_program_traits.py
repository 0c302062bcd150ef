"""Traits of torch programs: what makes a difference, and what does not."""

from __future__ import annotations

import ast
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import Provenance, Tensor, TestCase, TorchProgram
from fuzzing.triage.traits import Traits, read_traits

ONES = Tensor.of(np.ones((2, 3), np.float32))


def traits(text: str, *, inputs: int = 1) -> Traits:
    given = tuple((f"in{place}", ONES) for place in range(inputs))
    return read_traits(
        TestCase(TorchProgram(f"import torch\n{text}"), given, Provenance("t", "", "", "", ""))
    )


def body(*lines: str, parameters: str = "x") -> str:
    return f"def forward({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


SAME = [
    body("return torch.relu(x + x)"),
    body("y = torch.add(x, x)", "return y.relu()"),
    body("a = x", "b = x.add(a)", "c = torch.nn.functional.relu(b)", "return c"),
    body("return torch.ops.aten.relu.default(torch.ops.aten.add.Tensor(x, x))"),
    body("def inner(t):", "    return torch.add(t, t)", "return torch.relu(inner(x))"),
]


@pytest.mark.parametrize("text", SAME)
def test_how_a_program_is_written_makes_no_difference(text: str) -> None:
    found = traits(text)
    assert (found.pattern, found.operators) == ("relu(add)", ("add", "relu"))
    assert found.dtypes == ("float",)


def test_a_model_is_read_with_its_parts() -> None:
    found = traits(
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.line = torch.nn.Linear(3, 4, bias=False)\n"
        "    def forward(self, x):\n"
        "        return self.line(torch.abs(x))\n"
    )
    assert (found.pattern, found.operators) == ("Linear(abs)", ("Linear", "abs"))
    assert "Linear.bias" in found.needs


NEEDS = [
    ("return torch.add(x, x, alpha=2)", {"add.alpha", "add given one tensor twice"}),
    ("return x.sum(1)", {"sum.dim"}),
    ("return torch.sum(x, dim=1)", {"sum.dim"}),
    ("return x.reshape(3, 2)", {"reshape.shape"}),
    ("return x.unknown(1)", {"unknown parameter 1"}),
    ("return torch.nn.functional.pad(x, (1, 1), mode='reflect')", {"pad.pad", "pad.mode=reflect"}),
    ("return x.to(torch.float16)", {"torch.float", "to.dtype"}),
    ("return x.to(dtype=torch.float16)", {"torch.float", "to.dtype"}),
    ("return torch.zeros(2, dtype=torch.int64)", {"torch.int", "zeros.size", "zeros.dtype"}),
    ("return x.view(torch.int32)", {"torch.int", "view.dtype"}),
    ("return x.sum(0, False, dtype=torch.int32)", {"torch.int", "sum.dim", "sum.keepdim", "sum.dtype"}),
    ("x.mul_(2)\n    return x", {"mul in place", "mul.other"}),
    ("x[0] = 1.0\n    return x", {"assigned in part"}),
    ("return x", set()),
]


@pytest.mark.parametrize(("line", "needs"), NEEDS)
def test_what_is_written_out_is_a_need(line: str, needs: set[str]) -> None:
    assert set(traits(body(line)).needs) == needs | {"rank 1", "rank 2"}


def test_what_steers_a_block_is_part_of_the_pattern() -> None:
    found = traits(body("if x.sum() > 0:", "    x = x.neg()", "return torch.exp(x)"))
    assert found.pattern == "exp(neg); if(gt(sum))"


def test_long_patterns_end_in_a_digest_and_stay_apart() -> None:
    deep = [body(f"return {'torch.relu(' * 40}torch.{last}(x){')' * 40}") for last in ("sin", "cos")]
    one, other = (traits(text).pattern for text in deep)
    assert "(#" in one
    assert one != other
    assert len(one) <= 120


@given(st.permutations(["a = x.sin()", "b = x.cos()", "c = x.tan()"]), st.permutations("pqrs"))
def test_names_and_the_order_of_statements_make_no_difference(lines: list[str], names: list[str]) -> None:
    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            return ast.Name(new.get(node.id, node.id), node.ctx)

        def visit_arg(self, node: ast.arg) -> ast.arg:
            return ast.arg(new.get(node.arg, node.arg))

    new = dict(zip("xabc", names, strict=True))
    tree = ast.parse(body(*lines, "return (a * b, torch.exp(c))"))
    found = traits(ast.unparse(Renamed().visit(tree)))
    assert found.pattern == "exp(tan); mul(cos, sin)"


def test_whatever_a_text_holds_is_read() -> None:
    statements = [
        "with torch.no_grad():\n        y = x.exp()",
        "y: torch.Tensor = x.exp()",
        "y, *z = x.exp().split(1)",
        "try:\n        y = x.exp()\n    except RuntimeError:\n        y = x",
        "y = [t.exp() for t in (x, x)][0]",
        "y = x\n    while y.sum() < 1:\n        y = y.exp()",
        "y = (lambda t: t.exp())(x)",
        "y = x\n    y += x.exp()",
    ]
    for first, second in itertools.product(statements, repeat=2):
        found = traits(body(first, second, "return y"))
        assert "exp" in found.operators, first
