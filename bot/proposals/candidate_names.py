"""Names of proposed tests: operator, parameters, symptom; no hashes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bot.proposals.regression import Regression
from fuzzing.cases import Recipe, Tensor
from fuzzing.cases.argument_text import render
from fuzzing.cases.torch_call import TorchCall

#: Longest name; "def NAME(self):" then fits in a line of 79 columns within a class.
MAX_NAME = 60
#: Operators and parameters that a name lists, at most.
_MAX_OPERATORS, _MAX_PARAMETERS = 3, 2
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[^a-z0-9]+")


def candidate_names(regression: Regression) -> Iterator[str]:
    """Names for the test, the shortest first; each later one is more specific, the last ones are numbered."""
    operators = "_".join(map(_word, regression.operators[:_MAX_OPERATORS])) or "program"
    given = [_parameter(name, value) for name, value in parameters(regression)][:_MAX_PARAMETERS]
    words = [operators, *filter(None, given)]
    while len("_".join(words)) > MAX_NAME - 20 and len(words) > 1:
        words.pop()
    names = [_join(*words, regression.symptom)]
    inputs = [value for _, value in regression.case.inputs if isinstance(value, (Recipe, Tensor))]
    if inputs:
        shape = "x".join(map(str, inputs[0].shape)) or "scalar"
        dtype = str(inputs[0].dtype)
        names += [_join(*words, dtype, regression.symptom), _join(*words, dtype, shape, regression.symptom)]
    yield from dict.fromkeys(names)
    yield from (f"{names[0]}_{number}" for number in range(2, 100))


def class_name(test: str) -> str:
    """The class of a test that has one of its own: `test_max_pool_values` → `TestMaxPoolValues`."""
    return "".join(part.capitalize() for part in test.split("_"))


def operator_word(regression: Regression) -> str:
    """The first operator as part of a file's name: `MaxPool` → `max_pool`."""
    return _word(regression.operators[0]) if regression.operators else "program"


def _join(*words: str) -> str:
    return "test_" + _OTHER.sub("_", "_".join(words).lower()).strip("_")[: MAX_NAME - 5]


def _word(operator: str) -> str:
    last = operator.removesuffix(".default").rpartition(".")[2]
    return _OTHER.sub("_", _CAMEL.sub("_", last).lower()).strip("_")


def parameters(regression: Regression) -> list[tuple[str, str]]:
    """Names and literals of the parameters of the operators."""
    program = regression.case.program
    if isinstance(program, TorchCall):
        given = dict(program.kwargs) | dict(program.init.kwargs if program.init else ())
        return [(name, render(value)) for name, value in given.items()]
    operators = regression.outline.get("operators", ())
    return [pair for one in operators for pair in one["attributes"].items()]


def _parameter(name: str, literal: str) -> str:
    """A parameter in a name: `exclusive`, `axis_0`, `axis_neg1`, `mode_linear`; "" for long values."""
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return ""
    if value is True or (value == 1 and isinstance(value, int)) or isinstance(value, (list, tuple)):
        return _word(name)
    if isinstance(value, bool) or value is None:
        return f"{_word(name)}_{str(value).lower()}"
    if isinstance(value, int):
        return f"{_word(name)}_{'neg' * (value < 0)}{abs(value)}" if abs(value) < 1000 else _word(name)
    if isinstance(value, str):
        return f"{_word(name)}_{value.lower()}" if value.isidentifier() and len(value) < 20 else _word(name)
    return _word(name)
