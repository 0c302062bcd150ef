"""JSON as the standard library would write it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import json_encoder

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(anything)
def test_it_says_what_json_would(obj: Any) -> None:
    assert json_encoder.encoder()(obj) == json.dumps(obj)
    assert json_encoder.encoder(compact=True)(obj) == json.dumps(obj, separators=(",", ":"))
    canonical = json_encoder.encoder(ascii_only=False, allow_nan=False, sort_keys=True)
    assert canonical(obj) == json.dumps(obj, ensure_ascii=False, allow_nan=False, sort_keys=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_it_refuses_what_is_no_number(value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        json_encoder.encoder(allow_nan=False)([value])


def test_it_does_without_the_interpreters_own_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("json.encoder.c_make_encoder", None)
    assert json_encoder.encoder(compact=True)({"a": [1, "ü"]}) == '{"a":[1,"\\u00fc"]}'
