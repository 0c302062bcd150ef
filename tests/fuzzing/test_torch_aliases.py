"""One name for a function of torch that has several."""

from __future__ import annotations

import re

import pytest
import torch

from fuzzing.torch_aliases import ALIASES, canonical_api

pytestmark = pytest.mark.compiler_torch


def test_all_aliases_that_torch_documents_are_known() -> None:
    documented = {
        name: found[1]
        for name in dir(torch)
        if isinstance(text := getattr(torch, name).__doc__, str)
        and (found := re.search(r"[Aa]lias (?:for|of) :(?:func|meth):`~?torch\.([\w.]+)`", text))
    }
    assert len(documented) > 40
    del documented["softmax"]  # of a module's function, which takes other arguments
    for name, other in documented.items():
        assert canonical_api(f"torch.{name}") == canonical_api(f"torch.{other}"), name


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_both_names_exist_and_a_canonical_name_is_no_alias(alias: str, name: str) -> None:
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)
    assert callable(getattr(torch, alias, None) or getattr(torch.special, alias))
    assert canonical_api(name) == name
