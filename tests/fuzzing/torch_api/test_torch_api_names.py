"""Names of torch's functions and modules, as a recorder looks them up."""

from __future__ import annotations

import pytest

from fuzzing.torch_api.names import PROPERTIES, function_names, module_names
from fuzzing.torch_api.serializer import resolve

pytestmark = pytest.mark.compiler_torch_eager


def test_every_name_leads_to_its_function() -> None:
    names = function_names()
    assert len(names) > 1200
    for function, name in names.items():
        found = resolve(name)
        if name.removeprefix("torch.Tensor.") in PROPERTIES:
            found = found.__get__
        assert found == function, name


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("torch.add", True),
        ("torch.Tensor.add", True),
        ("torch.Tensor.__getitem__", True),
        ("torch.nn.functional.relu", True),
        ("torch.linalg.inv", True),
        ("torch.fft.rfft2", True),
        ("torch.special.zeta", True),
        ("torch.tensor", False),
        ("torch.Tensor.requires_grad_", False),
        ("torch.save", False),
        ("torch.Tensor", False),
    ],
)
def test_operators_are_known_and_how_tests_spell_data_is_not(name: str, known: bool) -> None:
    assert (name in function_names().values()) is known


def test_modules_are_operators_but_containers_and_lazy_ones() -> None:
    names = set(module_names().values())
    assert {"torch.nn.Conv2d", "torch.nn.LSTM", "torch.nn.CrossEntropyLoss", "torch.nn.Transformer"} <= names
    assert not names & {
        "torch.nn.Module",
        "torch.nn.Sequential",
        "torch.nn.ModuleList",
        "torch.nn.LazyConv2d",
    }
    assert len(names) > 130
    for cls, name in module_names().items():
        assert resolve(name) is cls
