"""Types of torch's functions from stubs (.pyi, in the wheel), native schemas and signatures."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fuzzing.generate.docter.record import Kind, Origin

#: Stub files of the wheel, below the package, with the name under which their functions are public.
STUBS = {
    "torch": ("_C/_VariableFunctions.pyi", ""),
    "torch.nn.functional": ("nn/functional.pyi", ""),
    "torch.Tensor": ("_C/__init__.pyi", "TensorBase"),
}


@dataclass(frozen=True)
class Declared:
    """A parameter as a signature declares it.

    default  its text, None if there is none
    type     the annotation's text, or ""
    length   the fixed length of its list, 0 if unspecified
    """

    name: str
    kind: Kind
    default: str | None
    type: str
    origin: Origin
    length: int = 0


def read_signature(inside: str, origin: Origin = "signature") -> tuple[Declared, ...]:
    """The parameters of `input, dim, *, out=None`; () if it is not Python.

    A default before a parameter without one, as in `start=0, end`, is allowed: docstrings write it.
    """
    inside = inside.split(") ->")[0]
    try:
        lenient = inside.replace("start=0, end,", "start, end,")
        tree = ast.parse(f"def f({lenient}): ...").body[0]
    except SyntaxError:
        return ()
    return tuple(read_function_definition(tree, origin)) if isinstance(tree, ast.FunctionDef) else ()


def read_function_definition(tree: ast.FunctionDef, origin: Origin) -> Iterator[Declared]:
    """The parameters of a function's tree, in order, without **kwargs."""
    plain = [*tree.args.posonlyargs, *tree.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(tree.args.defaults)) + [*tree.args.defaults]
    for argument, default in zip(plain, defaults, strict=True):
        yield _declared(argument, "positional", default, origin)
    if tree.args.vararg is not None:
        yield _declared(tree.args.vararg, "variadic", None, origin)
    for argument, default in zip(tree.args.kwonlyargs, tree.args.kw_defaults, strict=True):
        yield _declared(argument, "keyword", default, origin)


def _declared(argument: ast.arg, kind: Kind, default: ast.expr | None, origin: Origin) -> Declared:
    annotation = ast.unparse(argument.annotation) if argument.annotation else ""
    return Declared(argument.arg, kind, None if default is None else ast.unparse(default), annotation, origin)


def from_inspect(function: Any) -> tuple[Declared, ...]:
    """The parameters by Python's inspection; () for builtins and for wrappers of *args, **kwargs."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return ()
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return ()
    return tuple(_from_parameter(item) for item in signature.parameters.values())


def _from_parameter(item: inspect.Parameter) -> Declared:
    kind: Kind = "positional"
    if item.kind is inspect.Parameter.KEYWORD_ONLY:
        kind = "keyword"
    elif item.kind is inspect.Parameter.VAR_POSITIONAL:
        kind = "variadic"
    default = (
        None
        if item.default is inspect.Parameter.empty
        else str(getattr(item.default, "__qualname__", None) or repr(item.default))
    )
    annotation = (
        "" if item.annotation is inspect.Parameter.empty else inspect.formatannotation(item.annotation)
    )
    return Declared(item.name, kind, default, annotation.replace("typing.", ""), "signature")


@cache
def _stub_file(namespace: str) -> dict[str, tuple[tuple[Declared, ...], ...]]:
    import torch

    path, owner = STUBS[namespace]
    file = Path(torch.__file__).parent / path
    if not file.exists():
        return {}
    body: list[ast.stmt] = ast.parse(file.read_bytes()).body
    if owner:
        body = next((item.body for item in body if isinstance(item, ast.ClassDef) and item.name == owner), [])
    found: dict[str, list[tuple[Declared, ...]]] = {}
    for item in body:
        if isinstance(item, ast.FunctionDef):
            found.setdefault(item.name, []).append(tuple(read_function_definition(item, "stub")))
    return {name: tuple(overloads) for name, overloads in found.items()}


def read_stubs(namespace: str, name: str) -> tuple[tuple[Declared, ...], ...]:
    """The overloads of a function in the wheel's stubs; () where there are none (linalg, fft, special)."""
    return _stub_file(namespace).get(name, ()) if namespace in STUBS else ()


@cache
def _all_schemas() -> dict[str, list[Any]]:
    import torch

    found: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        found.setdefault(schema.name, []).append(schema)
    return found


def read_schemas(namespace: str, name: str) -> tuple[tuple[Declared, ...], ...]:
    """The native overloads of a function, in the library's order: aten::linalg_svd for torch.linalg.svd."""
    prefix = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}.get(namespace, "")
    spelled = name if name.startswith(prefix) else prefix + name
    return tuple(
        _from_schema(item)
        for item in _all_schemas().get(f"aten::{spelled}", [])
        if not any(argument.is_out for argument in item.arguments)
    )


def _from_schema(schema: Any) -> tuple[Declared, ...]:
    return tuple(
        Declared(
            argument.name,
            "keyword" if argument.kwarg_only else "positional",
            repr(argument.default_value) if argument.has_default_value() else None,
            str(argument.real_type),
            "schema",
            argument.N or 0,
        )
        for argument in schema.arguments
    )
