"""Remembered decompositions: the same programs as torch makes without, and nothing left behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._subclasses import fake_impls
from torch.export import decomp_utils, exported_program

from fuzzing.backends.shared import torch_decompositions as decompositions

#: Torch's own, of its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")

aten = torch.ops.aten
_PATCHED = (
    (exported_program, "_collect_all_valid_cia_ops"),
    (exported_program, "default_decompositions"),
    (exported_program, "_split_decomp_table_to_cia_and_python_decomp"),
    (exported_program, "_override_composite_implicit_decomp"),
    (decomp_utils, "_collect_all_valid_cia_ops"),
)


class Program(torch.nn.Module):
    """Operators decomposed in both of torch's ways, one that is kept, and a buffer that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.seen: torch.Tensor
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.seen += 1
        wide = torch.nn.functional.interpolate(given[None], size=4, mode="linear")
        chunks = torch.chunk(self.norm(given), 2, 1)
        attended = torch.nn.functional.scaled_dot_product_attention(given, given, given)
        return wide, torch.einsum("ij,kj->ik", given, given), *chunks, attended, torch.softmax(given, -1)


@pytest.fixture(scope="module")
def exported() -> torch.export.ExportedProgram:
    return torch.export.export(Program().eval(), (torch.randn(3, 3),))


@pytest.fixture
def remembering(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in _PATCHED:  # put back at the end
        monkeypatch.setattr(module, name, getattr(module, name))
    decompositions.install_caches()


def _rules() -> dict[Any, Any]:
    return dict(fake_impls.op_implementations_dict)


def _kernels() -> dict[Any, Any]:
    tables: Any = decomp_utils
    composites = tables._collect_all_valid_cia_ops_for_aten_namespace()
    return {operator: dict(operator.py_kernels) for operator in composites}


@pytest.mark.usefixtures("remembering")
def test_torch_is_of_a_kind_whose_tables_are_remembered() -> None:
    assert isinstance(exported_program.default_decompositions, decompositions.CachedCall)
    assert isinstance(exported_program._override_composite_implicit_decomp, decompositions.CachedOverride)


def test_programs_come_out_the_same(exported: Any, request: pytest.FixtureRequest) -> None:
    tables: tuple[Any, ...] = (None, {}, {aten.linear.default: aten.linear.default.decompose})
    plain = [exported.run_decompositions(table) for table in tables]
    request.getfixturevalue("remembering")
    for _ in range(2):  # recorded, replayed
        for table, expected in zip(tables, plain, strict=True):
            found = exported.run_decompositions(table)
            assert found.graph_module.code == expected.graph_module.code
            assert found.graph_signature == expected.graph_signature


@pytest.mark.usefixtures("remembering")
def test_the_override_is_recorded_once_and_leaves_what_torch_leaves(exported: Any) -> None:
    exported.run_decompositions()  # torch's own first use drops rules for fake tensors
    override: Any = exported_program._override_composite_implicit_decomp
    exported.run_decompositions()
    recorded, rules, kernels = override.recorded, _rules(), _kernels()
    exported.run_decompositions()
    assert override.recorded == recorded
    assert (_rules(), _kernels()) == (rules, kernels)


@pytest.mark.usefixtures("remembering")
def test_an_error_within_takes_the_override_off() -> None:
    override: Any = exported_program._override_composite_implicit_decomp
    whole = exported_program.default_decompositions().materialize()
    table, _ = exported_program._split_decomp_table_to_cia_and_python_decomp(whole)
    for _ in range(2):  # torch's first use drops rules for fake tensors
        with override(table):
            pass
    rules, kernels, recorded = _rules(), _kernels(), override.recorded

    def fail() -> None:
        with override(table):
            assert _kernels() != kernels
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (_rules(), _kernels(), override.recorded) == (rules, kernels, recorded)


@pytest.mark.usefixtures("remembering")
def test_a_new_operator_is_found() -> None:
    before = set(exported_program.default_decompositions().materialize())
    with torch.library._scoped_library("assay_test", "DEF") as library:
        library.define("twice(Tensor given) -> Tensor")
        library.impl("twice", lambda given: given + given, "CompositeImplicitAutograd")
        found = set(exported_program.default_decompositions().materialize())
        assert [str(operator) for operator in found - before] == ["assay_test.twice.default"]


@pytest.mark.usefixtures("remembering")
def test_tables_may_be_computed_before_the_first_program(
    exported: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where workers are forked: what torch keeps for each operator is as before."""
    rules, kernels = _rules(), _kernels()
    decompositions.fill_caches()
    assert (_rules(), _kernels()) == (rules, kernels)
    make: Any = exported_program.default_decompositions
    monkeypatch.setattr(make, "_original", lambda: pytest.fail("the table is computed again"))
    exported.run_decompositions()


@pytest.mark.usefixtures("remembering")
def test_a_table_given_out_is_the_callers_own() -> None:
    table = exported_program.default_decompositions()
    del table[aten.einsum.default]
    assert aten.einsum.default not in table
    assert aten.einsum.default in exported_program.default_decompositions()


def test_another_torch_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in _PATCHED:
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.delattr(fake_impls, "op_implementations_dict")
    before = [getattr(module, name) for module, name in _PATCHED]
    decompositions.install_caches()
    assert [getattr(module, name) for module, name in _PATCHED] == before


def test_an_override_that_touches_more_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in _PATCHED:
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(decompositions, "_TOUCHED", decompositions._TOUCHED - {"py_impl"})
    override = exported_program._override_composite_implicit_decomp
    decompositions.install_caches()
    assert exported_program._override_composite_implicit_decomp is override
