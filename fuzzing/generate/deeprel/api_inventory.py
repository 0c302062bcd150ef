"""torch's public functions, tensor methods and module classes, with their signatures.

A signature comes from Python, else from the schema of the native operator, else from the first lines of the
documentation.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Literal

from fuzzing.generate.deeprel.signatures import ANY, Parameter, Signature
from fuzzing.torch_api.names import CONTAINERS, PROPERTIES

Kind = Literal["function", "method", "class"]

#: Where functions are looked for. Of two names of one object the first here counts.
_MODULES = ("nn.functional", "linalg", "fft", "special", "masked", "sparse", "signal.windows", "")
#: Methods about where or how a tensor is stored rather than what it holds, or that end in Python.
_NOT_OPERATORS = frozenset(
    {
        "apply_", "backward", "const_data_ptr", "cuda", "data_ptr", "dim_order", "element_size", "get_device",
        "hpu", "ipu", "is_shared", "map_", "map2_", "module_load", "mtia", "numpy", "pin_memory",
        "record_stream", "register_hook", "register_post_accumulate_grad_hook", "requires_grad_",
        "retain_grad", "share_memory_", "storage", "storage_offset", "storage_type", "tolist", "type",
        "untyped_storage", "xpu",
    }
)  # fmt: skip
_FUNCTIONS_NOT_OPERATORS = frozenset(
    {
        "as_masked_tensor", "as_sparse_gradcheck", "as_tensor", "asarray", "assert_int_or_pair", "from_file",
        "from_numpy", "frombuffer", "has_torch_function", "is_masked_tensor", "masked_tensor", "tensor",
    }
)  # fmt: skip
#: Beside containers: bases, and one that has 44 million parameters by default, a second's work
#: for each call.
_CLASSES_NOT_OPERATORS = CONTAINERS | {"RNNBase", "RNNCellBase", "Transformer"}


@dataclass(frozen=True)
class Api:
    """A callable of torch.

    name        dotted, as in TorchCall
    kind        function, method of torch.Tensor, or class of a module
    signatures  the ways to call it; of a class, to construct it
    text        its documentation, with that of the API it refers to
    """

    name: str
    kind: Kind
    signatures: tuple[Signature, ...]
    text: str


@cache
def list_apis() -> dict[str, Api]:
    """Every API of the installed torch that has a signature, by name, sorted."""
    found = {api.name: api for api in (*_functions(), *_methods(), *_classes()) if api.signatures}
    return dict(sorted(found.items()))


@cache
def _list_names() -> dict[int, str]:
    return {id(_resolve(name)): name for name, api in list_apis().items() if api.kind != "method"}


def canonical_name(name: str) -> str:
    """The inventory's name of an API with several, such as torch.conv2d; "" if it is not in there."""
    if name in list_apis():
        return name
    return _list_names().get(id(_resolve(name)), "")


def _resolve(dotted: str) -> Any:
    from fuzzing.torch_api.serializer import resolve

    return resolve(dotted)


# Where they are --------------------------------------------------------------------------------------


def _functions() -> Iterator[Api]:
    seen: set[int] = set()
    for module_name in _MODULES:
        prefix = f"torch.{module_name}." if module_name else "torch."
        module = _resolve(prefix.rstrip(".")) if module_name else _torch()
        for name, item in _public_members(module):
            if (
                id(item) in seen
                or name in _FUNCTIONS_NOT_OPERATORS
                or not _is_operator(module_name, name, item)
            ):
                continue
            seen.add(id(item))
            doc = _documentation(item)
            signatures = (
                _python_signatures(item, module) or _native_signatures(item) or _documented_signatures(doc)
            )
            yield Api(prefix + name, "function", signatures, doc)


def _is_operator(module_name: str, name: str, item: Any) -> bool:
    """Whether a public name is an operator, not a tool that changes torch's state."""
    if inspect.isclass(item) or not callable(item) or name.startswith(("boolean_dispatch", "handle_torch")):
        return False
    if module_name:
        return inspect.isbuiltin(item) or getattr(item, "__module__", "").startswith("torch.")
    native = hasattr(_torch()._C._VariableFunctions, name)
    return native or getattr(item, "__module__", None) == "torch.functional"


def _methods() -> Iterator[Api]:
    tensor = _torch().Tensor
    for name, item in _public_members(tensor):
        if name in _NOT_OPERATORS or not callable(item) or inspect.isclass(item):
            continue
        doc = _documentation(item)
        signatures = tuple(
            own
            for own in _python_signatures(item, None)
            or _native_signatures(item, method=True)
            or _documented_signatures(doc, method=True)
            if own.parameters and own.parameters[0].name == "self"
        )
        yield Api(f"torch.Tensor.{name}", "method", signatures, doc)
    alone = Signature((Parameter("self", frozenset({"tensor"})),))
    for name in PROPERTIES:
        yield Api(f"torch.Tensor.{name}", "method", (alone,), _documentation(getattr(tensor, name)))


def _classes() -> Iterator[Api]:
    nn = _torch().nn
    for name, item in _public_members(nn):
        # Lazy ones learn their shapes when first called, which a case's module never is before it counts.
        out = name in _CLASSES_NOT_OPERATORS or name.startswith("Lazy")
        if inspect.isclass(item) and issubclass(item, nn.Module) and not out:
            doc = _documentation(item)
            # A class without a constructor of its own takes nothing, though Module's takes anything.
            signatures = _python_signatures(item, None) or _documented_signatures(doc) or (Signature(()),)
            yield Api(f"torch.nn.{name}", "class", signatures, doc)


def _torch() -> Any:
    import torch

    return torch


def _public_members(holder: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(dir(holder)):
        if not name.startswith("_"):
            yield name, getattr(holder, name, None)


_REFERENCE = re.compile(r"(?:See|Alias (?:for|of)|In-place version of) :(?:func|meth):`~?\.?([\w.]+)")


def _documentation(item: Any, depth: int = 2) -> str:
    """An API's own text, then that of the API it refers to: many methods only have "See torch.amax"."""
    text = inspect.getdoc(item) or ""
    found = _REFERENCE.search(text)
    if found is None or not depth:
        return text
    name = found.group(1).rstrip(".")
    named = name if name.startswith("torch.") else f"torch.Tensor.{name.removeprefix('Tensor.')}"
    other = _resolve(named)
    return text if other is None or other is item else f"{text}\n{_documentation(other, depth - 1)}"


# Signatures: from Python ------------------------------------------------------------------------------


def _python_signatures(item: Any, module: ModuleType | None) -> tuple[Signature, ...]:
    item = inspect.unwrap(item)
    try:
        parameters = list(inspect.signature(item).parameters.values())
    except (TypeError, ValueError):
        return ()
    if [parameter.kind for parameter in parameters] == [
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ]:
        # torch's boolean_dispatch hides two functions behind one: F.max_pool2d behind F._max_pool2d.
        plain = getattr(module, f"_{getattr(item, '__name__', '')}", None) if module else None
        return _python_signatures(plain, None) if plain is not None else ()
    kept = tuple(
        _convert_python_parameter(p) for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD
    )
    return (Signature(tuple(p for p in kept if p.name not in ("out", "generator"))),)


def _convert_python_parameter(parameter: inspect.Parameter) -> Parameter:
    empty = inspect.Parameter.empty
    name = "self" if parameter.name == "self" else parameter.name
    variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL
    types = {"tensor"} if name in ("self", "input") else set()
    if name == "dtype":  # which torch's own code calls an int: it is one to TorchScript
        types = {"dtype"}
    elif parameter.annotation in (None, type(None)):  # all that is left of a BroadcastingList2[int]
        types = {"float", "floats"} if name.endswith("ratio") else {"int", "ints"}
    elif parameter.annotation is not empty:
        annotation = parameter.annotation
        text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
        types = parse_types(text)
        if name.endswith(("size", "factor", "dim")):  # one or several may be meant, whatever it says
            types |= {other for pair in _SEVERAL.items() if types & {*pair} for other in pair}
    elif parameter.default is not empty:
        types = _types_of_default(parameter.default)
    if parameter.default is None:
        types = types | {"none"}
    return Parameter(
        name,
        frozenset({ANY} if variadic else types or {ANY}),
        optional=parameter.default is not empty,
        keyword=parameter.kind is inspect.Parameter.KEYWORD_ONLY,
        variadic=variadic,
    )


def _types_of_default(default: Any) -> set[str]:
    if default is None:
        return {ANY, "none"}
    known = {bool: "bool", int: "int", float: "float", str: "str"}
    if type(default) in known:
        return {known[type(default)]}
    if isinstance(default, (list, tuple)) and all(type(item) is int for item in default):
        return {"ints"}
    return {ANY}


_SINGLE = {
    "Tensor": "tensor", "int": "int", "SymInt": "int", "float": "float", "bool": "bool", "complex": "complex",
    "str": "str", "None": "none", "NoneType": "none", "dtype": "dtype", "ScalarType": "dtype",
    "Layout": "layout", "layout": "layout", "MemoryFormat": "memory_format", "memory_format": "memory_format",
    "Device": "device", "device": "device", "Size": "ints",
}  # fmt: skip
_SEVERAL = {"tensor": "tensors", "int": "ints", "float": "floats", "bool": "bools"}
_WRAPPED = re.compile(r"(\w+)\[(.*)\]", re.DOTALL)


def parse_types(text: str) -> set[str]:
    """The types in an annotation or a schema type; {ANY} if none is known."""
    pieces = _split(text, "|")
    if len(pieces) > 1:
        return set().union(*map(parse_types, pieces))
    name = text.strip().strip("'\"")
    if wrapped := _WRAPPED.fullmatch(re.sub(r"^(?:\w+\.)+(?=\w+\[)", "", name)):
        return _unwrap_type(*wrapped.groups())
    name = name.rsplit(".", 1)[-1]
    if name == "number":
        return {"int", "float", "complex"}
    return {_SINGLE.get(name, "function" if name == "Callable" else ANY)}


def _unwrap_type(outer: str, inner: str) -> set[str]:
    if outer in ("Optional", "Union"):
        inside = set().union(*map(parse_types, _split(inner, ",")))
        return inside | {"none"} if outer == "Optional" else inside
    if outer == "Literal":
        return {"str"}
    if outer == "Callable":
        return {"function"}
    if outer.lower() in ("list", "tuple", "sequence", "iterable"):
        inside = set().union(*map(parse_types, _split(inner, ",")))
        return {_SEVERAL[kind] for kind in inside if kind in _SEVERAL} or {ANY}
    return {ANY}


def _split(text: str, mark: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += (char in "[(") - (char in "])")
        if char == mark and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part.strip() not in ("", "...")]


# Signatures: from native schemas ----------------------------------------------------------------------


@cache
def _schemas() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for schema in _torch()._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten" and "name" not in schema.overload_name.lower():
            found.setdefault(name, []).append(schema)
    return found


#: Python adds it to every operator that makes a tensor (tools/autograd/gen_python_functions.py).
_REQUIRES_GRAD = Parameter("requires_grad", frozenset({"bool"}), optional=True, keyword=True)


def _native_signatures(item: Any, *, method: bool = False) -> tuple[Signature, ...]:
    found: dict[Signature, None] = {}
    for schema in _schemas().get(getattr(item, "__name__", ""), ()):
        if any(argument.is_out for argument in schema.arguments):
            continue
        parameters = tuple(_from_schema(argument, method) for argument in schema.arguments)
        types = {kind for parameter in parameters for kind in parameter.types}
        if types & {"tensor", "tensors", "layout"}:
            kept = tuple(parameter for parameter in parameters if parameter.name != "generator")
            found[Signature((*kept, _REQUIRES_GRAD) if "layout" in types else kept)] = None
    return tuple(found)


def _from_schema(argument: Any, method: bool) -> Parameter:
    types = parse_types(str(argument.real_type))
    if argument.N is not None:  # int[2] takes one number for both
        types |= {"int" if "ints" in types else "float"} if types & {"ints", "floats"} else set()
    # What the schema calls self, Python calls input, unless it is a method's tensor.
    name = "input" if argument.name == "self" and not method else argument.name
    default = argument.has_default_value() or argument.name == "generator"
    return Parameter(name, frozenset(types), optional=default, keyword=argument.kwarg_only)


# Signatures: from documentation -----------------------------------------------------------------------


def _documented_signatures(doc: str, *, method: bool = False) -> tuple[Signature, ...]:
    """The signature lines a text begins with: `amax(input, dim=None, *, out=None) -> Tensor`."""
    found: dict[Signature, None] = {}
    for line in doc.splitlines():
        head = re.match(r"\s*[\w.]+\((.*)\)\s*(?:->.*)?$", line)
        if head is None:
            if line.strip() and found:
                break
            continue
        parsed = _from_text(head.group(1))
        if parsed is not None:
            own = (Parameter("self", frozenset({"tensor"})),) if method else ()
            found[Signature((*own, *parsed))] = None
    return tuple(found)


def _from_text(text: str) -> tuple[Parameter, ...] | None:
    try:
        definition = ast.parse(f"def f({text}): ...").body[0]
    except SyntaxError:
        return None
    if not isinstance(definition, ast.FunctionDef):
        return None
    given = definition.args
    places = [*given.posonlyargs, *given.args]
    optional = {argument.arg for argument in places[len(places) - len(given.defaults) :]}
    found = [Parameter(item.arg, _guess_types(item.arg), optional=item.arg in optional) for item in places]
    if given.vararg:
        found.append(Parameter(given.vararg.arg, frozenset({ANY}), variadic=True))
    for item, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(Parameter(item.arg, _guess_types(item.arg), optional=default is not None, keyword=True))
    return tuple(item for item in found if item.name not in ("out", "generator"))


def _guess_types(name: str) -> frozenset[str]:
    return frozenset({"tensor"} if name in ("input", "self", "other") else {ANY})
