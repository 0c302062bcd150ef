"""Seeds of every kind are valid programs, equal each time."""

from __future__ import annotations

import ast
import inspect
from functools import cache

import pytest
import torch
from torch.testing._internal import common_utils

from fuzzing.mutate.programs.profile import run_program
from fuzzing.mutate.programs.seed_kinds.operator_chains import LEFT_OUT, _operators, _samples
from fuzzing.mutate.programs.seeds import Seed, get_seed_kind, seed_kinds
from fuzzing.mutate.programs.straight_line import StraightLine


@cache
def first_seeds(kind: str) -> list[Seed]:
    return [seed for number in range(5) if (seed := get_seed_kind(kind)(number)) is not None]


@pytest.mark.parametrize("kind", seed_kinds())
def test_a_seed_runs_and_assigns_each_variable_once(kind: str) -> None:
    seeds = first_seeds(kind)
    assert len(seeds) >= 2
    first_seeds.cache_clear()
    assert [seed.text for seed in first_seeds(kind)] == [seed.text for seed in seeds]
    for seed in seeds:
        targets = [node.targets[0] for node in ast.walk(ast.parse(seed.text)) if isinstance(node, ast.Assign)]
        names = [ast.unparse(target) for target in targets]
        assert len(set(names)) == len(names) > 0
        assert run_program(seed.text, seed.tensors)


@pytest.mark.parametrize(
    "expression",
    ["v0.new_empty_strided((2, 3), (3, 1))", "torch.empty_like(v0)", "torch.rand_like(v0)", "v0 / 0"],
)
def test_a_seed_has_no_undefined_values(expression: str) -> None:
    program = StraightLine()
    program.add_input(torch.ones(3, 4))
    assert program.add(expression) is None
    assert program.add("v0.new_full((2,), 3.)") == "v1"


def test_a_seed_writes_to_none_of_its_variables() -> None:
    """Not even where the kernel does not tell autograd of its writes."""
    program = StraightLine()
    program.add_input(torch.ones(3, 4))
    program.add_input(torch.ones(4))
    assert program.add("torch._native_batch_norm_legit(v0, v1, v1, v1, v1, True, 0.5, 0.6)") is None
    assert program.values["v1"].tolist() == [1, 1, 1, 1]


def test_samples_leave_torch_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds of other kinds read what torch's functions are, so the order of seeds would matter."""
    [place] = [place for place, (name, _) in enumerate(_operators()) if name == "torch.mul"]
    before, looked = (torch.manual_seed, common_utils.extract_test_fn), list[str]()
    monkeypatch.setattr(inspect, "stack", lambda: looked.append("stack"))
    assert _samples.__wrapped__(place, "float32")
    assert (torch.manual_seed, common_utils.extract_test_fn) == before
    assert not looked, "torch reads the source of each frame of the stack, to find a test"


def test_examples_have_no_effects_and_chains_are_chained() -> None:
    assert not any("_(" in seed.text.replace("__", "") for seed in first_seeds("documentation"))
    for seed in first_seeds("operator-chains"):
        body = seed.text.split("\n")[4:]
        assert any("v" in line.split("=", 1)[-1] for line in body)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        *(
            (name, True)
            for name in (
                "sqrt",
                "rsqrt",
                "detach",
                "resolve_conj",
                "signal.windows.hann",
                "batch_norm",
                "unsafe_split",
            )
        ),
        *(
            (name, False)
            for name in (
                "randn_like",
                "linalg.qr",
                "linalg.solve",
                "signbit",
                "lu",
                "native_batch_norm",
                "_unsafe_masked_index",
            )
        ),
    ],
)
def test_operators_are_left_out_by_their_words_and_not_by_letters_in_them(name: str, taken: bool) -> None:
    assert (LEFT_OUT.fullmatch(name) is None) == taken
