"""Decomposition: a call of torch as a program of ATen's operators, which computes the same.

`max_pool1d` and `max_pool2d` are one operator to a compiler that reads an exported program, and a loss is a
dozen of them. Which of these is wrong by itself tells the bug better than the name that was called.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from fuzzing.cases import Tensor, TestCase, TorchCall, TorchProgram
from fuzzing.cases.torch_program import MAX_BYTES
from fuzzing.errors import CaseFormatError
from fuzzing.execute.evaluator import Evaluator

#: Runs behind the call's own source, on the library: exports the call and returns the graph's code as bytes,
#: and the parameters, buffers and constants that the graph takes before its inputs. Taken apart further than
#: by `run_decompositions` is what does two things that ATen has an operator for each. Weights of more bytes
#: than a program may have are none: each candidate of a reduction carries them to the compiler.
_EXPORT = """

aten = torch.ops.aten
call = make()


def var_mean(x, dim=None, *, correction=None, keepdim=False):
    variance = aten.var.correction(x, dim, correction=correction, keepdim=keepdim)
    return variance, aten.mean.dim(x, dim or list(range(x.ndim)), keepdim)


def div(x, other, *, rounding_mode=None):
    quotient = aten.true_divide(x, other)
    if rounding_mode is None or x.dtype != quotient.dtype:
        return NotImplemented
    return {"trunc": aten.trunc, "floor": aten.floor}[rounding_mode].default(quotient)


def forward(*tensors):
    taken_apart = torch.export.default_decompositions()
    taken_apart[aten.var_mean.correction] = var_mean
    taken_apart[aten.div.Tensor_mode] = taken_apart[aten.div.Scalar_mode] = div
    exported = torch.export.export(call, tensors).run_decompositions(taken_apart)
    held = [one.target for one in exported.graph_signature.input_specs if one.kind.name != "USER_INPUT"]
    values = [(exported.state_dict | exported.constants)[name] for name in held]
    if sum(value.nbytes for value in values) > MAX_BYTES:
        raise ValueError("the weights are too long")
    code = torch.tensor(list(exported.graph_module.code.encode()), dtype=torch.uint8)
    return code, *values
"""
#: Names that the code of an exported graph takes for granted, by what they are in a program.
_GLOBALS = {"device": "torch.device", "inf": "torch.inf", "nan": "torch.nan"}


def decompose(case: TestCase, evaluator: Evaluator) -> TestCase | None:
    """The call of `case` as a program of ATen's operators, or None.

    What a module holds (weights, constants) are further inputs, before those of the call.
    """
    assert isinstance(case.program, TorchCall)
    text = f"{case.program.source()}\nMAX_BYTES = {MAX_BYTES}\n{_EXPORT}"
    outputs = evaluator.reference(replace(case, program=TorchProgram(text), expected=None))
    tensors = [value for _, value in outputs or () if isinstance(value, Tensor)]
    if not tensors or len(tensors) != len(outputs or ()):
        return None
    code, *held = tensors
    given = dict(case.inputs)
    values = [*held, *(given[tensor.name] for tensor in case.program.tensors)]
    try:
        text, names = _program(code.data.decode())
        inputs = tuple(zip(names, values, strict=True))
        return replace(case, program=TorchProgram(text), inputs=inputs, expected=None)
    except (CaseFormatError, SyntaxError, ValueError):
        return None


def _program(code: str) -> tuple[str, list[str]]:
    """The text of a program that does what the code of an exported graph does, and the names of its inputs;
    raises SyntaxError.
    """
    [function] = ast.parse(code.strip()).body
    if not isinstance(function, ast.FunctionDef):
        raise SyntaxError("the code of a graph is a function")  # noqa: TRY004 - of the text, not of a value
    function.args.args = function.args.args[1:]  # without `self`
    function.body = [node for node in function.body if not _is_deletion(node)]
    tree = ast.fix_missing_locations(_Spelled().visit(ast.Module([function], [])))
    return f"import torch\n{ast.unparse(tree)}", [argument.arg for argument in function.args.args]


def _is_deletion(node: ast.stmt) -> bool:
    """Whether a statement only forgets a variable, as `x = y = None`."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None


class _Spelled(ast.NodeTransformer):
    """Names of an exported graph's code as those of a program."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Spells out what the code takes for granted."""
        known = _GLOBALS.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return ast.parse(known, mode="eval").body if known else node
