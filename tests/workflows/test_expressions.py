"""Expressions of workflows: the examples of GitHub's documentation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workflows.expressions import ExpressionError, condition, evaluate, interpolate, value_of

CONTEXTS: dict[str, Any] = {
    "env": {"MY_ENV_VAR": "x"},
    "github": {"ref": "refs/heads/main", "event": {"label": {"name": "Bug"}}},
    "steps": {"one": {"outputs": {"code": "1", "empty": ""}, "outcome": "failure"}},
    "status": {"always": True, "success": False, "failure": True, "cancelled": False},
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("null", None),
        ("-9.2", -9.2),
        ("'It''s open source!'", "It's open source!"),
        ("github.ref == 'refs/heads/MAIN'", True),
        ("github.ref == 'a' && 'b' || 'c'", "c"),
        ("!(1 > 2) && 2 >= 2", True),
        ("'' == 0", True),
        ("true == 'x'", False),
        ("contains(fromJSON('[\"push\", \"issues\"]'), 'push')", True),
        ("contains('Hello world', 'LLO')", True),
        ("startsWith('Hello world', 'he')", True),
        ("format('Hello {0} {1}', 'Mona', 7)", "Hello Mona 7"),
        ("join(fromJSON('[1, 2]'), '-')", "1-2"),
        ("github.event['label'].name", "Bug"),
        ("github.event.missing.name", None),
        ("steps.one.outputs.empty || 'default'", "default"),
        ("fromJSON('{\"a\": [10, 20]}').a[1]", 20),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert evaluate(expression, CONTEXTS) == value


@pytest.mark.parametrize("expression", ["secrets.X", "1 +", "(1", "f(1)", "'open", "1 2", "", "a.b"])
def test_what_github_refuses(expression: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(expression, CONTEXTS)


def test_text_around_expressions() -> None:
    assert interpolate("a ${{ env.MY_ENV_VAR }}-${{ true }}${{ null }}", CONTEXTS) == "a x-true"
    assert value_of("${{ fromJSON('[1]') }}", CONTEXTS) == [1]


def test_a_condition_without_status_function_asks_for_success() -> None:
    assert not condition("env.MY_ENV_VAR == 'x'", CONTEXTS)
    assert condition("always() && env.MY_ENV_VAR == 'x'", CONTEXTS)
    assert condition("${{ failure() }}", CONTEXTS)
