"""Mutants from their numbers: equal each time, equal to their seeds, and reduced by leaving out mutations."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fuzzing.cases import TestCase, TorchProgram
from fuzzing.errors import UsageError
from fuzzing.migrate import sources, torchprobe
from fuzzing.migrate.source_parts import Part, migrate_source
from fuzzing.migrate.torchprobe import make_case
from fuzzing.mutate.programs import mutations
from fuzzing.mutate.programs.guide import Guide
from fuzzing.mutate.programs.mutant_names import MutantName, parse_test_name
from fuzzing.mutate.programs.mutants import Mutant, apply_steps, make_mutant
from fuzzing.mutate.programs.soundness import find_difference
from fuzzing.reduce.engine import CLEAN, SAME, reduce
from fuzzing.reduce.programs import SPEC, Script
from fuzzing.rng import Rng
from tests.fuzzing.backends.backend_kit import floats, program_case

SEED = 5


def script(number: int) -> Script:
    case = make_case(number, SEED)
    assert isinstance(case, TestCase)
    return Script(ast.unparse(ast.parse(make_mutant(number, SEED).text)), case.inputs, {}, case)


@pytest.mark.parametrize("number", range(8))
def test_a_mutant_equals_its_seed_and_itself(number: int) -> None:
    mutant = make_mutant(number, SEED)
    assert mutant.steps
    assert find_difference(mutant) == ""
    make_mutant.cache_clear()
    assert make_mutant(number, SEED).text == mutant.text
    assert apply_steps(mutant.seed.text, mutant.steps) == (mutant.text, mutant.steps)


def test_the_source_has_equal_cases_in_parts_and_whole() -> None:
    source = sources.get("torchprobe")
    whole = [
        case.id
        for case in migrate_source(source, None, {"seed": 3, "count": 4})
        if isinstance(case, TestCase)
    ]
    parts = [
        case.id
        for part in (Part(1, 2), Part(2, 2))
        for case in migrate_source(source, part, {"seed": 3, "count": 4})
        if isinstance(case, TestCase)
    ]
    assert len(whole) == 4
    assert sorted(whole) == sorted(parts)


def test_an_extended_mutant_has_its_name_and_is_sound() -> None:
    parent = MutantName(3, SEED)
    child = parent.extend(7 * len(mutations.names()) + mutations.names().index("carriers"))
    case = make_case(*child)
    assert isinstance(case, TestCase)
    assert parse_test_name(case.provenance) == child
    made = make_mutant(*child)
    assert made.steps[:-1] == make_mutant(*parent).steps
    assert made.steps[-1].mutation == "carriers"
    make_mutant.cache_clear()
    assert make_mutant(*child).text == made.text
    assert apply_steps(made.seed.text, made.steps) == (made.text, made.steps)


def test_new_lines_make_a_parent_and_its_mutations_more_likely() -> None:
    guide, fresh = Guide(), MutantName(0, SEED)
    assert guide.choose(fresh, Rng(0)) == fresh
    found = {number: make_mutant(number, SEED) for number in range(4)}
    lines = {("_dynamo/a.py", 1), ("_dynamo/a.py", 2)}
    assert guide.record(MutantName(1, SEED), found[1], lines) == 2
    for _ in range(30):
        assert guide.record(MutantName(2, SEED), found[2], lines) == 0
    drawn = [guide.choose(fresh, Rng(number)) for number in range(400)]
    extended = [name for name in drawn if name.extensions]
    assert {name._replace(extensions=()) for name in extended} == {MutantName(1, SEED)}
    assert 120 < len(extended) < 280
    names = Counter(mutations.names()[name.extensions[0] % len(mutations.names())] for name in extended)
    barren = {step.mutation for step in found[2].steps} - {step.mutation for step in found[1].steps}
    rich = {step.mutation for step in found[1].steps}
    assert max(names[name] for name in barren) < min(names[name] for name in rich)


class Words:
    """In place of the compiler, whose run takes seconds: a mutant reaches its words."""

    def __init__(self, backend: str) -> None:
        assert backend == "inductor"

    def trace(self, case: TestCase) -> set[tuple[str, int]]:
        assert isinstance(case.program, TorchProgram)
        return {(word, 0) for word in case.program.text.split()}

    def close(self) -> None:
        pass


def test_what_a_mutant_reaches_decides_what_becomes_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchprobe, "LineTracer", Words)
    monkeypatch.setattr(torchprobe, "_SAMPLED", 1.0)
    guided = list(torchprobe.migrate(seed=SEED, count=6, reward=torchprobe.GUIDED, feedback="inductor"))
    assert all(isinstance(case, TestCase) for case in guided)
    names = [parse_test_name(case.provenance) for case in guided if isinstance(case, TestCase)]
    assert any(name is not None and name.extensions for name in names)
    with pytest.raises(UsageError, match="compiler-coverage alone"):
        next(torchprobe.migrate(reward="pass", feedback="inductor"))


@pytest.mark.compiler_inductor
def test_a_traced_mutant_reaches_lines_of_the_compiler() -> None:
    tracer = torchprobe.LineTracer("inductor")
    try:
        lines = tracer.trace(program_case(TorchProgram("def forward(x):\n    return x + 1\n"), x=floats(2)))
    finally:
        tracer.close()
    assert {"_dynamo", "_functorch"} <= {path.partition("/")[0] for path, _ in lines}
    assert not any(path.startswith("nn/") for path, _ in lines)


def test_reduction_leaves_out_the_mutations_that_the_bug_does_not_need() -> None:
    """A bug that needs one mutation of several: the first pass keeps it and no other."""
    number = next(number for number in range(200) if _needs_one_step(make_mutant(number, SEED)))
    start, steps = script(number), make_mutant(number, SEED).steps

    def classify(candidates: Sequence[Script]) -> list[str]:
        return [SAME if "if " in candidate.text else CLEAN for candidate in candidates]

    first = reduce(start, replace(SPEC, passes=SPEC.passes[:1]), classify)
    seed = make_mutant(number, SEED).seed.text
    assert first.best.text in [ast.unparse(ast.parse(apply_steps(seed, [one])[0])) for one in steps]
    assert reduce(start, SPEC, classify).best.text.count("\n") <= 6


def _needs_one_step(mutant: Mutant) -> bool:
    """Whether it has an always-true block that needs no other mutation, and no other `if`."""
    alone = [apply_steps(mutant.seed.text, [step])[0] for step in mutant.steps]
    branching = [step.mutation for step, text in zip(mutant.steps, alone, strict=True) if "if " in text]
    return len({step.mutation for step in mutant.steps}) >= 3 and branching == ["always-true-block"]
