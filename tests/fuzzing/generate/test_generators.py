"""Generators are found by name, and anyone may add one."""

from __future__ import annotations

import pytest

from fuzzing.errors import UnknownNameError
from fuzzing.generate import generators
from fuzzing.generate.isra import GeneratedGraph, GeneratorSettings, Solver


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> str:
    name = "mine"
    known = generators._GENERATORS
    monkeypatch.setattr(known, "_entries", dict(known._entries))

    @generators.register_generator(name)
    class Mine:
        def __init__(self, settings: GeneratorSettings) -> None:
            self._solver = Solver(settings)

        def generate(self, seed: int) -> GeneratedGraph:
            return self._solver.generate(seed + 1)

    return name


def test_isra_is_found_by_name() -> None:
    assert generators.get("isra") is Solver
    assert "isra" in generators.list_names()
    assert list(generators.list_names()) == sorted(generators.list_names())


def test_a_generator_is_registered_by_one_decorator(registered: str) -> None:
    made = generators.get(registered)(GeneratorSettings(nodes=(2, 2)))
    assert made.generate(4) == Solver(GeneratorSettings(nodes=(2, 2))).generate(5)
    assert registered in generators.list_names()


@pytest.mark.parametrize("name", ["nothing", "docter", "__main__", "../isra", ""])
def test_a_wrong_name_lists_the_right_ones(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"no generator is called .*; there are: .*isra"):
        generators.get(name)
