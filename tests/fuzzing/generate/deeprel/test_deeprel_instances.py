"""What ranking reads of the new cases, some of which are calls that no other source makes."""

from __future__ import annotations

import pytest

from fuzzing.cases import Init
from fuzzing.generate.deeprel.apis import inventory
from fuzzing.prioritize.instances import instance_of
from fuzzing.prioritize.signatures import Signatures
from tests.fuzzing.generate.deeprel.deeprel_kit import X, recorded

pytestmark = pytest.mark.compiler_torch_eager


def test_each_api_can_be_made_an_instance() -> None:
    """Whatever the API: a class without a constructor, a property, a function of torch.masked."""
    signatures = Signatures()
    for api in inventory().values():
        case = recorded(api.name, X, init=Init() if api.kind == "class" else None)
        assert instance_of(case, signatures).operator == api.name
