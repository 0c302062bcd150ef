"""torch's own database of operators as cases, on a few operators of each sort."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch.testing._internal import common_methods_invocations

from fuzzing.backends.shared import torch_programs
from fuzzing.cases import Device, Dtype, Name, Recipe, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.cases.case import case_from_manifest, parse_manifest
from fuzzing.migrate import sources, torch_opinfo
from fuzzing.migrate.sources import Skip
from fuzzing.torch_api.samples import seed_samples
from fuzzing.torch_api.serializer import (
    NotSerializableError,
    Serializer,
    public_name,
    resolve,
    serialize_tensor,
)

pytestmark = pytest.mark.compiler_torch_eager

#: A function, a method, a property, wrappers of several sorts, factories, random ones, views, sparse ones.
OPERATORS = (
    "add",
    "cat",
    "einsum",
    "view",
    "mT",
    "__getitem__",
    "polygamma",
    "arange",
    "empty_like",
    "new_empty",
    "nn.functional.dropout",
    "bernoulli",
    "nn.functional.conv1d",
    "nn.functional.layer_norm",
    "bitwise_and",
    "masked.sum",
    "to_sparse",
    "topk",
    "uniform",
    "jiterator_unary",
    "nn.functional.triplet_margin_with_distance_loss",
)


def test_samples_from_a_set_come_in_the_same_order_in_each_process() -> None:
    """As those of meshgrid do; the order of a set of texts differs from process to process."""
    database: Any = common_methods_invocations
    drawn = seed_samples(lambda: database.itertools.product(set("hgfedcba")))
    assert [*drawn] == [(letter,) for letter in "abcdefgh"]
    assert database.itertools is itertools


@pytest.fixture(scope="module")
def migrated() -> dict[str, list[TestCase | Skip]]:
    found: dict[str, list[TestCase | Skip]] = {}
    for entry in torch_opinfo.load_database():
        if entry.name in OPERATORS:
            found.setdefault(entry.name, []).extend(torch_opinfo.operator_cases(entry, entry.name))
    return found


def cases_of(migrated: dict[str, list[TestCase | Skip]], name: str) -> list[TestCase]:
    return [item for item in migrated[name] if isinstance(item, TestCase)]


def calls_of(migrated: dict[str, list[TestCase | Skip]], name: str) -> list[TorchCall]:
    programs = [case.program for case in cases_of(migrated, name)]
    return [program for program in programs if isinstance(program, TorchCall)]


@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("add", "torch.add"),
        ("view", "torch.Tensor.view"),
        ("mT", "torch.Tensor.mT"),
        ("uniform", "torch.Tensor.uniform_"),
        ("nn.functional.conv1d", "torch.nn.functional.conv1d"),
        ("masked.sum", "torch.masked.sum"),
        ("__getitem__", "torch.Tensor.__getitem__"),
    ],
)
def test_an_operator_is_told_by_its_public_name(
    name: str, api: str, migrated: dict[str, list[TestCase | Skip]]
) -> None:
    assert {call.api for call in calls_of(migrated, name)} == {api}


@pytest.mark.parametrize("name", ["einsum", "polygamma"])
def test_a_wrapper_that_turns_its_arguments_round_is_seen_through(
    name: str, migrated: dict[str, list[TestCase | Skip]]
) -> None:
    calls = calls_of(migrated, name)
    assert calls
    assert not any(isinstance(call.args[0], (TensorArg, list)) for call in calls)


def test_every_case_repeats_what_its_sample_gave(migrated: dict[str, list[TestCase | Skip]]) -> None:
    """The samples are drawn anew, and called as torch's tests call them."""
    compared = 0
    for entry in torch_opinfo.load_database():
        if entry.name not in OPERATORS or entry.variant_test_name:
            continue
        cases = {case.provenance.test: case for case in cases_of(migrated, entry.name)}
        for place, sample in enumerate(torch_opinfo.samples(entry, "float32")):
            case = cases.get(f"{entry.name}/float32/{place}")
            if case is None or case.comparison == "shapes":
                continue
            wanted = torch_programs.named_outputs(entry.op(sample.input, *sample.args, **sample.kwargs))
            found = torch_programs.build(case.program).run(list(case.values()))
            assert [name for name, _ in found] == [name for name, _ in wanted]
            for (_, got), (_, want) in zip(found, wanted, strict=True):
                assert isinstance(got, Tensor)
                assert isinstance(want, Tensor)
                np.testing.assert_array_equal(got.array(), want.array(), strict=True)
            compared += 1
    assert compared > 150


@pytest.mark.parametrize("name", ["empty_like", "new_empty", "nn.functional.dropout", "bernoulli", "uniform"])
def test_what_is_random_or_unwritten_is_compared_by_shape(
    name: str, migrated: dict[str, list[TestCase | Skip]]
) -> None:
    found = Counter(case.comparison for case in cases_of(migrated, name))
    assert found["shapes"] > 0
    if name not in ("nn.functional.dropout", "bernoulli"):  # which draw nothing for p=0 or no elements
        assert found["values"] == 0


def test_what_is_not_random_is_compared_by_value(migrated: dict[str, list[TestCase | Skip]]) -> None:
    for name in ("add", "cat", "arange", "topk", "nn.functional.conv1d"):
        assert {case.comparison for case in cases_of(migrated, name)} == {"values"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("jiterator_unary", "the library itself fails on its sample"),
        (
            "nn.functional.triplet_margin_with_distance_loss",
            "an argument is a module that was made elsewhere",
        ),
    ],
)
def test_what_cannot_be_told_is_skipped_with_its_reason(
    name: str, reason: str, migrated: dict[str, list[TestCase | Skip]]
) -> None:
    assert reason in {item.reason for item in migrated[name] if isinstance(item, Skip)}


def test_other_types_give_a_sample_each(migrated: dict[str, list[TestCase | Skip]]) -> None:
    found = Counter(case.provenance.test.split("/")[1] for case in cases_of(migrated, "add"))
    assert found["float32"] > 5
    assert {dtype: found[dtype] for dtype in torch_opinfo.EXTRA_DTYPES} == dict.fromkeys(
        torch_opinfo.EXTRA_DTYPES, 1
    )
    assert {case.provenance.test.split("/")[1] for case in cases_of(migrated, "bitwise_and")} == {
        "int64",
        "bool",
    }


def test_cases_survive_their_files_and_are_small(migrated: dict[str, list[TestCase | Skip]]) -> None:
    for name in OPERATORS:
        for case in cases_of(migrated, name):
            files = case.files()
            again = case_from_manifest(parse_manifest(files["case.json"]), files["call.json"])
            assert (again, again.id) == (case, case.id)
            assert sum(map(len, files.values())) < 1 << 20


def test_samples_are_the_same_each_time() -> None:
    entry = next(entry for entry in torch_opinfo.load_database() if entry.name == "nn.functional.layer_norm")
    first, second = (list(torch_opinfo.operator_cases(entry, "layer_norm")) for _ in range(2))
    assert first == second


def test_the_source_is_registered() -> None:
    assert sources.get("torch-opinfo").library == "torch"


# Telling ---------------------------------------------------------------------------------------------


def cube(torch: Any) -> Any:
    return torch.arange(24.0).reshape(2, 3, 4)


TENSORS: dict[str, Callable[[Any], Any]] = {
    "plain": cube,
    "transposed": lambda torch: cube(torch).transpose(0, 2),
    "cut": lambda torch: cube(torch)[1:, :, ::2],
    "expanded": lambda torch: cube(torch)[:1].expand(2, 3, 4),
    "windows": lambda torch: torch.arange(6.0).as_strided((4, 3), (1, 1)),
    "empty": lambda torch: cube(torch)[:, :0],
    "scalar": lambda torch: cube(torch)[1, 1, 1],
    "channels_last": lambda torch: torch.ones(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    "bfloat16": lambda torch: cube(torch)[0].bfloat16().t(),
    "conjugated": lambda torch: torch.tensor([[1 + 2j, 3]]).conj(),
    "sparse": lambda torch: torch.eye(3).to_sparse(),
    "rows": lambda torch: torch.eye(3).to_sparse_csr(),
    "columns": lambda torch: torch.eye(3).to_sparse_csc(),
    "constant": lambda torch: torch.full((3,), -0.0),
    "nan": lambda torch: torch.full((2,), float("nan")),
    "large": lambda torch: torch.tensor([2**63 - 1] * 2),
}


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")
def test_a_tensor_is_told_with_its_memory(name: str) -> None:
    import torch

    tensor = TENSORS[name](torch)
    argument, given = serialize_tensor(tensor, "x")
    value = given.draw() if isinstance(given, Recipe) else given
    [again] = torch_programs.build(TorchCall("torch.clone", (argument,))).arrange([("x", value)])
    assert (again.layout, again.dtype, again.shape) == (tensor.layout, tensor.dtype, tensor.shape)
    if tensor.layout is torch.strided and not tensor.is_contiguous():
        assert (again.stride(), again.storage_offset()) == (tensor.stride(), tensor.storage_offset())
    assert torch_programs.from_torch(again) == torch_programs.from_torch(tensor)


def test_a_constant_is_told_by_a_recipe() -> None:
    import torch

    assert serialize_tensor(TENSORS["constant"](torch), "x")[1] == Recipe(
        "constant", "float32", (3,), -0.0, 0, 0
    )


def stored_zero(torch: Any) -> Any:
    return torch.sparse_coo_tensor([[0, 1]], [0.0, 1.0], (2,), check_invariants=True).coalesce()


UNTOLD: dict[str, Callable[[Any], Any]] = {
    "too large": lambda torch: torch.zeros(1 << 19),
    "a view of a much larger memory": lambda torch: torch.zeros(1 << 20)[:: 1 << 18],
    "of a type that a case cannot hold": lambda torch: torch.zeros(2, dtype=torch.complex32),
    "of a layout that a case cannot hold": lambda torch: torch.eye(4).to_sparse_bsr((2, 2)),
    "its dense form does not hold": lambda torch: stored_zero(torch),
    "a tensor subclass": lambda torch: torch.ones(1).as_subclass(type("Mine", (torch.Tensor,), {})),
}


@pytest.mark.parametrize("why", UNTOLD)
@pytest.mark.filterwarnings("ignore:Sparse BSR tensor support is in beta")
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_a_tensor_that_cannot_be_told_is_refused(why: str) -> None:
    import torch

    with pytest.raises(NotSerializableError, match=why):
        serialize_tensor(UNTOLD[why](torch), "x")


def test_arguments_are_told_with_their_types() -> None:
    import torch

    x = torch.ones(2)
    teller = Serializer()
    args = teller.args(
        [x, [x, torch.zeros(2)], torch.float16, torch.device("cpu"), torch.Size([2]), np.int64(3)]
    )
    kwargs = teller.kwargs({"from": torch.ones(1), "act": torch.relu, "x": slice(None, 2)})
    assert args == (
        TensorArg("x"),
        [TensorArg("x"), TensorArg("x1")],
        Dtype("float16"),
        Device("cpu"),
        (2,),
        3,
    )
    assert dict(kwargs) == {"from": TensorArg("from_"), "act": Name("torch.relu"), "x": slice(None, 2)}
    assert list(teller.inputs) == ["x", "x1", "from_"]


def test_arguments_without_a_form_are_refused() -> None:
    for value, why in ((object(), "type that has no form"), (lambda: 0, "function without a name")):
        with pytest.raises(NotSerializableError, match=why):
            Serializer().argument(value, "x")


def test_functions_have_the_name_by_which_they_are_found() -> None:
    import torch

    for function, name in (
        (torch.relu, "torch.relu"),
        (torch.nn.functional.gelu, "torch.nn.functional.gelu"),
        (torch.nn.ReLU, "torch.nn.ReLU"),
    ):
        assert public_name(function) == name
        assert resolve(name) is function
    assert resolve("torch.nothing.at.all") is None
