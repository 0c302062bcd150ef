"""Each mutation keeps the result of the programs that it changes, at places that are easy to get wrong."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from textwrap import indent
from typing import Any

import pytest
import torch

from fuzzing.backends.base import Named
from fuzzing.backends.shared import torch_programs
from fuzzing.cases import Recipe, Tensor, TorchProgram
from fuzzing.mutate.programs import mutations
from fuzzing.mutate.programs.mutants import Mutant, Step, _mutate, apply_steps
from fuzzing.mutate.programs.mutations import Proposal
from fuzzing.mutate.programs.profile import profile, run_program
from fuzzing.mutate.programs.program_tree import ProgramTree
from fuzzing.mutate.programs.python_states import STATES
from fuzzing.mutate.programs.seeds import Seed
from fuzzing.mutate.programs.soundness import find_difference
from fuzzing.mutate.programs.wrapping import Wrapping
from fuzzing.rng import Rng

TEXT = """import torch


def forward(v0, v1):
    v2 = torch.relu(v0)
    v3 = v2.reshape(6)
    v4 = torch.add(v2, v1)

    def f0():
        w5 = torch.exp(v4)
        return w5
    v5 = f0()
    if v0.shape[0] > 1:
        v6 = v3 * 2
        v7 = v6.sum()
    v8 = torch.where(v4 > 0, v4, v1)
    return v5, v7, v8, v3
"""
INPUTS = (torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]]), torch.tensor([[0.5], [2.0]]))
SEED = Seed(TEXT, (("v0", Recipe("uniform", "float32", (2, 3), 0, 1, 0)),), INPUTS)


@cache
def mutants(name: str, text: str = TEXT, step: int = 7) -> Sequence[Mutant]:
    """What 200 draws of a mutation make of a program, as step number `step`; each text once."""
    program = ProgramTree.parse(text)
    recorded, made = profile(program, INPUTS), dict[str, Mutant]()
    for number in range(200):
        parameters = mutations.get(name).propose(Proposal(program, recorded, Rng(number), step))
        if parameters is not None:
            changed = mutations.get(name).apply(program, step, parameters)
            assert changed is not None
            steps = (Step(name, step, parameters),)
            made.setdefault(changed.text, Mutant(Seed(text, SEED.inputs, INPUTS), steps, changed.text))
    return tuple(made.values())


@pytest.mark.parametrize("name", mutations.names())
def test_the_result_stays(name: str) -> None:
    made = mutants(name)
    assert len(made) > 3
    assert TEXT not in {mutant.text for mutant in made}
    assert {find_difference(mutant) for mutant in made} == {""}


def test_an_overwritten_tensor_is_restored_before_its_view_is_read() -> None:
    seen = 0
    for mutant in mutants("mutate-recover"):
        parameters = mutant.steps[0].parameters
        if parameters["tensor"] == "v2" and parameters["before"] == "v5":
            seen += 1
            assert {"v2", "v3"} <= set(parameters["aliases"])
            restored = mutant.text.index(f"v2[{parameters['index']}] = saved7")
            assert mutant.text.index("v5 = f0()") < restored < mutant.text.index("v6 = v3 * 2")
    assert seen


@pytest.mark.parametrize("lazy", ["lambda: [torch.exp(v4)]", "(torch.exp(each) for each in [v4])"])
def test_a_variable_that_reads_later_is_a_reader_of_what_it_captures(lazy: str) -> None:
    """A lambda, or a generator whose element is made when it is asked for."""
    call = "[*f1()]" if lazy.startswith("lambda") else "[*f1]"
    text = TEXT.replace("    v5 = f0()\n", f"    f1 = {lazy}\n    v5 = f0()\n    v9, = {call}\n").replace(
        "return v5", "return v9, v5"
    )
    assert {find_difference(mutant) for mutant in mutants("mutate-recover", text)} == {""}


@pytest.mark.parametrize(
    "name", [name for name in mutations.names() if isinstance(mutations.get(name), Wrapping)]
)
def test_a_run_that_raises_is_not_wrapped(name: str) -> None:
    """The wrapping would catch what a statement around it is to catch, or leave out what follows the run."""
    raising = (
        "    s1 = 0\n    def g1():\n        raise ValueError\n    try:\n        g1()\n        s1 = 5\n"
        "    except ValueError:\n        s1 += 1\n    v5 = f0() * s1\n"
    )
    text = TEXT.replace("    v5 = f0()\n", raising)
    assert {find_difference(mutant) for mutant in mutants(name, text)} == {""}


@pytest.mark.parametrize("name", ["input-layouts", "strided-operands"])
def test_an_operator_that_views_its_operand_gets_contiguous_ones(name: str) -> None:
    """The kernel of `take_along_dim` does (torch 2.13); it refuses others."""
    value = "torch.take_along_dim(v0, torch.tensor([4, 1]))"
    text = f"import torch\n\n\ndef forward(v0):\n    v1 = {value}\n    return v1\n"
    program, seed = ProgramTree.parse(text), Seed(text, (), INPUTS[:1])
    recorded, forms = profile(program, seed.tensors), set[str]()
    for number in range(60):
        found = _mutate(Proposal(program, recorded, Rng(number), 1), seed, (name,))
        if found is not None:
            forms.add(found[1].parameters["form"])
            assert find_difference(Mutant(seed, (found[1],), found[0].text)) == ""
    assert forms
    assert "transposed" not in forms


@pytest.mark.parametrize(("factor", "differs"), [(1 + 2e-7, False), (1.001, True)])
def test_a_seed_that_multiplies_its_roundings_may_differ_by_them(factor: float, differs: bool) -> None:
    text = (
        "import torch\n\n\ndef forward(v0):\n    v1 = torch.exp(v0)\n    v2 = torch.sin(v1)\n    return v2\n"
    )
    seed = Seed(text, (), (torch.linspace(8.0, 9.0, 20),))
    step = Step("input-layouts", 1, {})
    other = text.replace("torch.exp(v0)", f"torch.exp(v0) * {factor}")
    assert bool(find_difference(Mutant(seed, (step,), other))) == differs


def test_a_call_of_super_stays_in_its_method() -> None:
    text = TEXT.replace(
        "    v5 = f0()\n",
        "    class Kind(list):\n        def append(self, item):\n            item = item + 1\n"
        "            super().append(item)\n    s1 = Kind()\n    s1.append(1)\n    v5 = f0() + s1[0]\n",
    )
    for name in ("functionalization", "functions", "loops", "exceptions"):
        assert {find_difference(mutant) for mutant in mutants(name, text)} == {""}


def test_a_function_is_a_reader_of_what_it_captures() -> None:
    for mutant in mutants("mutate-recover"):
        parameters = mutant.steps[0].parameters
        if parameters["tensor"] == "v4" and parameters["before"] == "v5":
            assert mutant.text.index("= saved7") < mutant.text.index("v5 = f0()")


@pytest.mark.parametrize("write", ["v2.neg_().neg_()", "v2[0] = v2[0].clone()", "torch.neg(-v2, out=v2)"])
def test_inputs_are_expanded_where_they_are_constant_and_never_written(write: str) -> None:
    text = "import torch\n\n\ndef forward(v0, v1):\n    v2 = torch.mul(v0, v1)\n    return v2\n"
    constant = (torch.ones(2, 3), torch.tensor([[0.5, 1.0, 0.5], [2.0, 2.0, 3.0]]))
    for body, wanted in ((text, {"0"}), (text.replace("return", f"{write}\n    return"), set[str]())):
        program = ProgramTree.parse(body)
        recorded, expanded = profile(program, constant), set[str]()
        for number in range(100):
            mutation = mutations.get("input-layouts")
            parameters = mutation.propose(Proposal(program, recorded, Rng(number), 1))
            assert parameters is not None
            if parameters["form"] == "expanded":
                expanded.add(str(parameters["place"]))
                changed = mutation.apply(program, 1, parameters)
                assert changed is not None
                mutant = Mutant(
                    Seed(body, (), constant), (Step("input-layouts", 1, parameters),), changed.text
                )
                assert find_difference(mutant) == ""
                after = profile(changed, constant).before(changed.blocks[0], 0)
                assert after is not None
                assert after["v0"].overlapping
        assert expanded == wanted


@pytest.mark.parametrize("name", ["preallocated-results", "operator-resolution"])
def test_a_later_step_reads_no_uninitialized_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition on it would be true in one run and false in the next."""
    for function in (torch.empty, torch.empty_like):
        fill = partial(lambda make, *given, **named: make(*given, **named).fill_(float("nan")), function)
        monkeypatch.setattr(torch, function.__name__, fill)
    for mutant in mutants(name, TEXT.replace("v6 = v3 * 2", "v6 = torch.mul(v3, 2)")):
        recorded = profile(ProgramTree.parse(mutant.text), INPUTS)
        assert all(bool(torch.isfinite(facts.values).all()) for facts in recorded.tensors()), mutant.text


def test_what_never_runs_is_not_moved_into_a_function() -> None:
    """Its names are unbound after it, so that a function around it cannot return them."""
    text = TEXT.replace("    v8 =", "    if v0.dim() < 0:\n        v9 = v0\n    v8 =")
    moved = {str(mutant.steps[0].parameters["first"]) for mutant in mutants("functionalization", text)}
    assert "v6" in moved
    assert "v9" not in moved


def test_a_scalar_that_is_viewed_keeps_its_layout() -> None:
    program = ProgramTree.parse("import torch\n\n\ndef forward(v0):\n    v1 = v0.view(1)\n    return v1\n")
    proposal = Proposal(program, profile(program, (torch.tensor(2.0),)), Rng(0), 1)
    assert mutations.get("input-layouts").propose(proposal) is None


def test_a_program_that_names_places_in_memory_keeps_its_layouts() -> None:
    text = TEXT.replace("v2.reshape(6)", "torch.as_strided(v2, (6,), (1,))")
    assert mutants("input-layouts", text) == ()
    strided = [mutant.steps[0].parameters["target"] for mutant in mutants("strided-operands", text)]
    assert strided
    assert "v3" not in strided


def test_functions_are_hoisted_before_what_they_capture() -> None:
    hoisted = [
        mutant.text
        for mutant in mutants("functionalization")
        if mutant.text.index("def f7") < mutant.text.index("v2 = ") < mutant.text.index("f7()\n")
    ]
    assert any("v2" in text.split("def f7")[1].split("return")[0] for text in hoisted)


def test_blocks_of_a_function_belong_to_it() -> None:
    program = ProgramTree.parse(TEXT)
    assert [(block.number, block.function) for block in program.blocks] == [(0, 0), (1, 1), (2, 0)]
    probes = profile(program, INPUTS)
    inner = program.blocks[1]
    point = probes.before(inner, 1)
    assert point is not None
    assert {"v4", "w5"} == point.keys()


def test_conditions_compare_no_nearly_equal_floats() -> None:
    text = TEXT.replace("v2 = torch.relu(v0)", "v2 = v0 + 1e-7")
    for mutant in mutants("always-true-block", text):
        condition = ast.parse(mutant.steps[0].parameters["condition"], mode="eval").body
        assert isinstance(condition, ast.Compare)
        assert {ast.unparse(condition.left), ast.unparse(condition.comparators[0])} != {
            "v0.max()",
            "v2.max()",
        }


def test_nothing_is_overwritten_where_the_restoring_is_skipped() -> None:
    raising = TEXT.replace(
        "    v6 = v3 * 2\n",
        "    try:\n            {}[0]\n        except KeyError:\n            v6 = v3 * 2\n",
    )
    made = mutants("mutate-recover", raising)
    assert made
    assert {mutant.steps[0].parameters["before"] for mutant in made}.isdisjoint({"{}[0]"})
    assert {find_difference(mutant) for mutant in made} == {""}


def test_variables_of_other_functions_are_not_moved() -> None:
    text = mutants("nonlocal-writes")[0].text
    written = ProgramTree.parse(text).nonlocals
    assert written
    for mutant in mutants("functions", text, 8):
        bodies = mutant.text.split("def f8")[1].split("f8(")[0]
        assert not any(f"return {name}" in bodies for name in written)
        assert find_difference(mutant) == ""


@pytest.mark.parametrize("name", ["strided-operands", "tensor-subclasses"])
def test_parameters_of_lambdas_keep_their_names(name: str) -> None:
    text = TEXT.replace("torch.add(v2, v1)", "(lambda v2: torch.add(v2, v1))(v2)")
    made = [mutant for mutant in mutants(name, text) if mutant.steps[0].parameters["target"] == "v4"]
    assert made
    assert {find_difference(mutant) for mutant in made} == {""}


def test_results_are_computed_into_tensors_that_exist() -> None:
    text = TEXT.replace("v3 * 2", "v3 + 2")
    calls = [mutant.text for mutant in mutants("preallocated-results", text) if "out=" in mutant.text]
    assert any("torch.add(v3, 2, out=v6)" in call for call in calls)
    assert any("torch.add(v2, v1, out=v4)" in call for call in calls)


def test_results_computed_into_zeros_keep_the_sign_of_a_zero() -> None:
    text = (
        "import torch\n\n\ndef forward(v0, v1):\n    v2 = v0 * 0\n    v3 = torch.signbit(v2)\n    return v3\n"
    )
    made = [mutant for mutant in mutants("preallocated-results", text) if "+=" in mutant.text]
    assert made
    assert {find_difference(mutant) for mutant in made} == {""}


def test_functions_may_return_the_variable_of_a_loop_that_does_not_turn() -> None:
    for mutant in mutants("dead-branches")[:6]:
        for moved in mutants("functionalization", mutant.text, 8)[:12]:
            assert find_difference(moved) == ""


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's own, of a deprecated check in its exporter
def test_some_modules_can_be_exported() -> None:
    """For the compilers behind torch.export, which takes no write to a buffer of a global module."""
    [*plain] = (one for one in mutants("modules") if one.steps[0].parameters["form"] == "module")
    program = TorchProgram(plain[0].text)
    inputs: Named = [
        (name, Tensor.of(tensor.numpy())) for name, tensor in zip(("v0", "v1"), INPUTS, strict=True)
    ]
    exported = torch_programs.capture(torch_programs.build(program), inputs, "exported")
    assert exported.run_decompositions().graph.nodes


def test_soundness_sees_another_value() -> None:
    wrong = Mutant(SEED, (), TEXT.replace("v6 = v3 * 2", "v6 = v3 * 3"))
    assert find_difference(wrong) == "result 1: other values"
    wrong = Mutant(SEED, (), TEXT.replace("return v5, v7", "return v5, 7"))
    assert find_difference(wrong) == "result 1: int for a tensor"
    assert "NameError" in find_difference(Mutant(SEED, (), TEXT.replace("v3 * 2", "v9")))


def test_inputs_are_not_changed() -> None:
    run_program("def forward(v0, v1):\n    v0 += 1\n    return v0", INPUTS)
    assert INPUTS[0][0, 0] == 1


@pytest.mark.parametrize("name", STATES)
def test_what_is_asserted_of_objects_holds_in_python(name: str) -> None:
    statements, _, asserted = STATES[name].rpartition("assert ")
    space: dict[str, object] = {}
    exec(f"def forward():\n{indent(statements, '    ')}\n    return {asserted}", space)
    assert statements
    assert space["forward"]() is True  # type: ignore[operator]


@pytest.mark.parametrize("name", STATES)
def test_objects_have_names_of_their_own(name: str) -> None:
    """None is a seed's variable, v and a number, or an object of another step that is tested later."""
    space: dict[str, Any] = {}
    exec(f"def forward():\n{indent(STATES[name], '    ')}", space)
    code = space["forward"].__code__
    nodes = [*ast.walk(ast.parse(STATES[name]))]
    imported = {
        one.name for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for one in node.names
    }
    bound = {*code.co_varnames, *code.co_cellvars} - imported
    asserted = {node.id for node in ast.walk(ast.parse(STATES[name]).body[-1]) if isinstance(node, ast.Name)}
    assert "v_" not in bound
    assert not [one for one in bound & asserted if not one.endswith("_")]


def test_a_compiler_that_is_wrong_about_objects_changes_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    for mutant in mutants("python-state"):
        monkeypatch.setitem(STATES, mutant.steps[0].parameters["form"], "s_ = 1\nassert s_ == 2\n")
        wrong, applied = apply_steps(TEXT, mutant.steps)
        assert len(applied) == 1
        assert find_difference(replace(mutant, text=wrong))
