"""The tables of refusals against all texts of the installed compilers' frontends.

A refusal in words that a table lacks would be reported as a crash; a complaint that it takes for a refusal
would be missed.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from fuzzing import backends
from tests.fuzzing.backends.backend_kit import reason

#: What says in plain words that something is missing.
REFUSAL = re.compile(
    r"\b(?:not|isn't) (?:yet |currently )?(?:supported|implemented)\b|\bunsupport|\bonly supports?\b"
    r"|\b(?:does not|doesn't|do not|don't) support\b|\bonly [^\n]{1,80} supported\b|\bsupports? only\b"
    r"|\b(?:rank|shape) (?:must|has to|needs to) be (?:known ?\()?(?:known|static)\b"
    r"|\brequires? (?:a )?(?:static|statically known) |\bnot support\b|\bmust be (?:a )?constant\b"
    r"|\bunimplemented\b",
    re.IGNORECASE,
)
#: What says that the program is wrong; with none of the words above a table must not take it.
COMPLAINT = re.compile(
    r"\bout of (?:range|bounds)\b|\bmismatch"
    r"|\bmust (?:match|have the same|equal|be (?:equal|unique|positive))"
    r"|\b(?:should|to) have the same\b|\bdoes not match\b|\bmust be non-zero\b|\bcannot be 0\b",
    re.IGNORECASE,
)


class Library(NamedTuple):
    """A frontend's files, and the texts in them that are no answer to a program.

    error  the class of its exceptions; "" for that of each `raise` of Python
    """

    package: str
    files: tuple[str, ...]
    error: str = ""
    others: str = r"(?!)"


LIBRARIES = {
    "tinygrad": Library(
        "tinygrad",
        ("nn/onnx.py", "tensor.py", "mixin/*.py"),
        # What its classes refuse its own converters.
        others=r"indexing is not|^index dtype|deleting items|non-scalar src|^slice index",
    ),
    "tvm": Library(
        "tvm",
        (
            *("relax/frontend/onnx/*.py", "relax/frontend/torch/*.py", "relax/op/**/*.py", "relax/utils.py"),
            *("relax/transform/legalize_ops/*.py", "topi/*.py", "topi/[!t]*/*.py"),
        ),
        others="must be a Constant or Var",
    ),
    "iree": Library("iree.compiler.ir", ("extras/onnx_importer.py",)),
    "onnxruntime": Library(
        "onnxruntime", ("capi/onnxruntime_pybind11_state*",), "Fail", r" fusion\b|SSL|::|^MoE"
    ),
    "openvino": Library(
        "openvino",
        (
            *("libs/libopenvino_onnx_frontend.so*", "libs/libopenvino_pytorch_frontend.so*"),
            *("libs/libopenvino.so*", "libs/libopenvino_intel_cpu_plugin.so"),
        ),
        "OpConversionFailure",
        # The interface of a frontend; placing ports; onnx's own library and its operators' texts.
        r"FrontEnd class|Only place|Provided place|Only initial|Only one producing|"
        r"^Not supported:$|existing model outputs|Loading \w+|^Supported modes|Operation isn't|Domain isn't|"
        r"normalization, only|"
        # What the CPU plugin and its code generator make themselves, and methods of a class.
        r"[Bb]rgemm|^Default output|executor|Internal|INTERNAL|Decomposition|^Subgraph|Convert op is|"
        r" pass (?:supports|does)|[Ee]mitter|for node with type|' method|isSame|postOp|on isa|kv cache|"
        r"^\. Not|^is not implemented|FullyConnectedQuantized|weights caching",
    ),
}
COMPILERS = [pytest.param(name, marks=getattr(pytest.mark, f"compiler_{name}")) for name in LIBRARIES]


@pytest.mark.parametrize("backend", COMPILERS)
def test_what_says_that_something_is_missing_is_unsupported(backend: str) -> None:
    others = re.compile(LIBRARIES[backend].others)
    refusals = {said for said in texts(backend) if REFUSAL.search(said[1]) and not others.search(said[1])}
    assert len(refusals) >= 3
    assert [said for said in sorted(refusals) if reason(backend, *said) is None] == []


@pytest.mark.parametrize("backend", COMPILERS)
def test_what_says_that_the_program_is_wrong_is_a_failure(backend: str) -> None:
    complaints = {
        said for said in texts(backend) if COMPLAINT.search(said[1]) and not REFUSAL.search(said[1])
    }
    assert complaints or backend in ("iree", "tinygrad")
    assert [said for said in sorted(complaints) if reason(backend, *said) is not None] == []


@pytest.mark.parametrize("backend", list(backends.names()))
def test_no_pattern_takes_a_message_without_words(backend: str) -> None:
    for error in ("RuntimeError", "ValueError", "AssertionError", "KeyError", "InternalError", "Fail"):
        assert reason(backend, error, "") is None


@cache
def texts(backend: str) -> frozenset[tuple[str, str]]:
    """(class, message) of what the files of a frontend may raise."""
    library = LIBRARIES[backend]
    found = importlib.util.find_spec(library.package)
    assert found is not None
    assert found.origin is not None
    paths = [path for file in library.files for path in sorted(Path(found.origin).parent.glob(file))]
    assert paths
    return frozenset(
        said
        for path in paths
        for said in (
            raised_messages(ast.parse(path.read_text(encoding="utf-8")))
            if path.suffix == ".py"
            else ((library.error, text) for text in sentences(path.read_bytes()))
        )
    )


def sentences(binary: bytes) -> Iterator[str]:
    """The texts of one line in a library, of at most 200 characters."""
    for found in re.finditer(rb"(?<=\0)[\x20-\x7e]{12,200}(?=\0)", binary):
        if found[0].count(b" ") >= 2:
            yield found[0].decode().strip()


def raised_messages(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Class and message of each exception that a module raises with a literal, x in the place of values."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.msg is not None:
            yield "AssertionError", literal_text(node.msg)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield ast.unparse(node.exc.func).rpartition(".")[2], literal_text(node.exc.args[0])


def literal_text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(literal_text, node.values))
    if isinstance(node, ast.BinOp):
        return literal_text(node.left) + literal_text(node.right)
    return "x" if isinstance(node, ast.FormattedValue) else ""
