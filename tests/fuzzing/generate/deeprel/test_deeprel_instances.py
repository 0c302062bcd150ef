"""What ranking reads of the new cases, some of which are calls that no other source makes."""

from __future__ import annotations

import pytest

from fuzzing.cases import Init
from fuzzing.generate.deeprel.api_inventory import list_apis
from fuzzing.prioritize.api_signatures import ApiSignatures
from fuzzing.prioritize.instances import extract_instance
from tests.fuzzing.generate.deeprel.deeprel_helpers import X, recorded

pytestmark = pytest.mark.compiler_torch_eager


def test_each_api_can_be_made_an_instance() -> None:
    """Whatever the API: a class without a constructor, a property, a function of torch.masked."""
    signatures = ApiSignatures()
    for api in list_apis().values():
        case = recorded(api.name, X, init=Init() if api.kind == "class" else None)
        assert extract_instance(case, signatures).operator == api.name
