"""A test of ONNX Runtime as text for its C++ suite: `OpTester` (onnxruntime/test/providers/base_tester.h).

It is shown beside the Python test and not proposed itself, because proving it takes a build of ONNX Runtime.
"""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

import numpy as np

from bot.errors import RefusalError
from bot.proposals.candidate_names import class_name
from bot.proposals.regression import Regression
from bot.proposals.tolerances import short_number
from bot.reports.templates import render
from fuzzing.cases import Recipe, Tensor
from fuzzing.cases.values import RAW_DTYPES

#: numpy's type → the type in C++.
_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
#: Domain → the constants that `OpTester` takes after the version (core/graph/constants.h).
_DOMAINS = {"": "", "ai.onnx.ml": "onnxruntime::kMLDomain", "com.microsoft": "onnxruntime::kMSDomain"}
#: Most numbers of one tensor, as in the Python test's literals.
_MAX_NUMBERS = 64
#: Names that need no escaping in C++ and in a fenced block.
_NAME = re.compile(r"[\w./:-]+", re.ASCII)


def gtest_text(regression: Regression, name: str) -> str:
    """The test `name` for `OpTester`; "" for models of several operators and values without a short form."""
    outline, expected = regression.outline, dict(regression.case.expected or ())
    if not outline or len(outline["operators"]) != 1:
        return ""
    operator = outline["operators"][0]
    names = (operator["name"], *filter(None, (*operator["inputs"], *operator["outputs"])))
    if not all(map(_NAME.fullmatch, names)):
        return ""
    try:
        given = {key: _tensor(value) for key, value in regression.case.inputs}
        given |= {one["name"]: _array(one["array"]) for one in outline["initializers"]}
        inputs = [(key, *_cpp(given[key])) if key else None for key in operator["inputs"]]
        outputs = [(key, *_cpp(_tensor(expected[key]))) if key else None for key in operator["outputs"]]
        attributes = [(key, _attribute(literal)) for key, literal in operator["attributes"].items()]
        domain = _DOMAINS[operator["domain"]]
    except (KeyError, RefusalError):
        return ""
    rtol, atol = regression.tolerance
    return render(
        "proposals/onnxruntime-gtest.cc.j2",
        operator=operator["name"],
        test=_test_name(operator["name"], name),
        opset=outline["opsets"].get(operator["domain"], 1),
        domain=domain,
        attributes=attributes,
        inputs=inputs,
        outputs=outputs,
        issue=regression.issue,
        wrong=regression.has_wrong_values,
        rtol=f"{short_number(rtol)}f",
        atol=f"{short_number(atol)}f",
    )


def _test_name(operator: str, name: str) -> str:
    """`test_cum_sum_exclusive_values` → `ExclusiveValues`: the test's suite already names the operator."""
    words = class_name(name).removeprefix("Test")
    rest = words[len(operator) :] if words.lower().startswith(operator.lower()) else words
    return rest if rest[:1].isalpha() else words


def _tensor(value: object) -> np.ndarray[Any, Any]:
    if not isinstance(value, (Recipe, Tensor)) or value.dtype in RAW_DTYPES:
        raise RefusalError("not a plain array")
    return (value.draw() if isinstance(value, Recipe) else value).array()


def _array(expression: str) -> np.ndarray[Any, Any]:
    """The array of `np.array(LITERAL, np.DTYPE)`. It is read, not run: a model wrote it."""
    node = ast.parse(expression, mode="eval").body
    match node:
        case ast.Call(
            ast.Attribute(ast.Name("np"), "array"), [literal, ast.Attribute(ast.Name("np"), dtype)], []
        ) if dtype.removesuffix("_") in _TYPES:
            try:
                return np.array(ast.literal_eval(literal), dtype.removesuffix("_"))
            except ValueError:
                pass
    raise RefusalError("the model has a constant without a literal")


def _cpp(array: np.ndarray[Any, Any]) -> tuple[str, str, str]:
    """Type, sizes and values as C++ writes them. Raises RefusalError for other types and long arrays."""
    dtype = array.dtype.name
    if dtype not in _TYPES or array.size > _MAX_NUMBERS:
        raise RefusalError("no short form in C++")
    numbers = ", ".join(_number(one) for one in array.reshape(-1))
    return _TYPES[dtype], "{" + ", ".join(map(str, array.shape)) + "}", "{" + numbers + "}"


def _number(value: Any) -> str:
    """A literal of C++ of the number's own type."""
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        if abs(int(value)) >= 1 << 63:  # such literals fit no type, or only as a negated one
            raise RefusalError("no literal of C++")
        return f"{value}{'LL' if abs(int(value)) >= 1 << 31 else ''}"
    kind = "float" if isinstance(value, np.float32) else "double"
    if math.isnan(value):
        return f"std::numeric_limits<{kind}>::quiet_NaN()"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}std::numeric_limits<{kind}>::infinity()"
    return f"{value!s}{'f' if kind == 'float' else ''}"


def _attribute(literal: str) -> str:
    """The value of an attribute. Raises RefusalError for tensors."""
    try:
        value = ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        raise RefusalError("no plain attribute") from None
    if isinstance(value, list):
        kind = (
            {int: "int64_t", float: "float", str: "std::string"}.get(type(value[0])) if value else "int64_t"
        )
        return f"std::vector<{kind}>{{{', '.join(map(_scalar, value))}}}"
    return f"static_cast<int64_t>({value})" if isinstance(value, int) else _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        if not _NAME.fullmatch(value):
            raise RefusalError("no plain text")
        return json.dumps(value)
    return _number(np.float32(value)) if isinstance(value, float) else str(value)
