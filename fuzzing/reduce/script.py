"""Python programs for reduction: a syntax tree, and the values of its variables.

Statements are removed like nodes of a graph: the library computes each variable's value once, and if the
statement that assigns a variable is removed, the variable becomes an input with its value. Variables that are
still used are not returned in addition. If the values are not known (early returns, its own `arrange`),
statements are removed too, but only those that no other needs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fuzzing.cases import Recipe, Tensor, TestCase, TorchProgram
from fuzzing.cases.case import Input
from fuzzing.cases.plain_types import oddness
from fuzzing.errors import CaseFormatError
from fuzzing.execute.evaluator import Evaluator
from fuzzing.outcomes import Outcome
from fuzzing.reduce import syntax
from fuzzing.reduce.input_values import as_tensor, complexity, number_complexity

Function = ast.FunctionDef
#: Changes a tree, and the function in it, in place; False if there is nothing to change.
Change = Callable[[ast.Module, Function], bool | None]


@dataclass(frozen=True)
class Script:
    """A program, its inputs, and the library's values of its variables.

    text             as `ast.unparse` writes it
    inputs           in the order of the parameters, and by their names if they have any
    variable_values  of variables that are assigned once
    origin           the case it comes from, for all but program and inputs
    """

    text: str
    inputs: tuple[tuple[str, Input], ...]
    variable_values: Mapping[str, Tensor]
    origin: TestCase

    def case(self) -> TestCase:
        """The case without a reference, as that is another program's."""
        return replace(self.origin, program=TorchProgram(self.text), inputs=self.inputs, expected=None)


def load(case: TestCase, evaluator: Evaluator, outcome: Outcome | None = None) -> Script:
    """The program of a case, with the library's values."""
    del outcome  # messages spell operators differently from programs
    assert isinstance(case.program, TorchProgram)
    tree = ast.parse(case.program.text)
    script = Script(ast.unparse(tree), case.inputs, {}, case)
    function = get_function(tree)
    if inputs_may_change(tree, function, script):
        names = [argument.arg for argument in syntax.parameters(function)]
        inputs = tuple((name, given) for name, (_, given) in zip(names, case.inputs, strict=True))
        script = replace(script, inputs=inputs)
    return replace(script, variable_values=_record_variables(script, evaluator))


def _record_variables(script: Script, evaluator: Evaluator) -> dict[str, Tensor]:
    """Final values of the variables that the function's own statements assign once."""
    tree = ast.parse(script.text)
    function = get_function(tree)
    if not inputs_may_change(tree, function, script) or not isinstance(function.body[-1], ast.Return):
        return {}
    stores = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    names = [name for name in dict.fromkeys(stores) if stores.count(name) == 1]
    returned = (
        f"tuple([v if isinstance(v, torch.Tensor) else torch.empty(0) for v in map(locals().get, {names!r})])"
    )
    function.body[-1] = ast.Return(ast.parse(returned, mode="eval").body)
    text = f"import torch\n{ast.unparse(tree)}"
    values = evaluator.reference(replace(script, text=text).case()) if names else None
    if values is None or len(values) != len(names):
        return {}
    pairs = zip(names, (value for _, value in values), strict=True)
    return {name: value for name, value in pairs if isinstance(value, Tensor) and value.data}


def get_function(tree: ast.Module) -> Function:
    """The function to be reduced; raises CaseFormatError if there is none."""
    function = syntax.find_forward(tree)
    if function is None:
        raise CaseFormatError("the program has no function `forward` to be made smaller")
    return function


def inputs_may_change(tree: ast.Module, function: Function, script: Script) -> bool:
    """Whether inputs may be added and removed: plain parameters, passed unchanged."""
    given = function.args
    plain = not (given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg or given.defaults)
    arranged = any("arrange" in syntax.bound_names(node) for node in tree.body)
    return plain and not arranged and len(syntax.parameters(function)) == len(script.inputs)


# Size


def size(script: Script) -> tuple[float, ...]:
    """Number of statements, expressions, inputs, dimensions and elements, then the complexity of the rest."""
    tree = ast.parse(script.text)
    ranks = elements = lengths = unusual = broken = odd = 0
    for _, given in script.inputs:
        count, off, strange = complexity(given)
        tensor = as_tensor(given)
        if tensor is not None:
            ranks, lengths = ranks + len(tensor.shape), lengths + sum(tensor.shape)
            unusual += oddness([tensor.dtype])
        elements, broken, odd = elements + count, broken + off, odd + strange
    expressions = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
    numbers = sum(number_complexity(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant))
    drawn = sum(not isinstance(given, Recipe) for _, given in script.inputs)
    shape = (len(script.inputs), ranks, elements, unusual, lengths, numbers, broken, odd, drawn)
    return (syntax.count(tree), expressions, *shape, len(script.text))


def key(script: Script) -> str:
    """The id of the script's case."""
    return script.case().id


# Parts


def parts(script: Script) -> int:
    """Number of the function's computing statements; 1 if the values between them are unknown."""
    tree = ast.parse(script.text)
    function = get_function(tree)
    if not script.variable_values or not inputs_may_change(tree, function, script):
        return 1
    return len(function.body) - (syntax.returned_names(function) is not None)


def split(script: Script, at: int) -> tuple[Script, Script] | None:
    """The function's statements before number `at`, and the others with the library's values of the former.

    The first part returns the variables that the second reads.
    """
    function = get_function(ast.parse(script.text))
    first, rest = (ast.Module(list(part), []) for part in (function.body[:at], function.body[at:]))
    needed = set(syntax.read_names(rest))
    flows = [name for name in syntax.bound_names(first) if name in needed]
    if not flows or not set(flows) <= set(script.variable_values) - {name for name, _ in script.inputs}:
        return None

    def beginning(_: ast.Module, function: Function) -> None:
        del function.body[at + 1 :]
        syntax.set_returned_names(function, flows)

    def end(_: ast.Module, function: Function) -> None:
        del function.body[:at]

    before, after = apply_change(script, beginning), apply_change(script, end)
    return None if before is None or after is None else (before, after)


# Changes


def apply_change(script: Script, change: Change) -> Script | None:
    """The script after a change, with the parameters it then needs. None if there is no such script."""
    tree = ast.parse(script.text)
    function = get_function(tree)
    if change(tree, function) is False or not syntax.loops_can_end(tree):
        return None
    left = syntax.find_forward(tree)
    if left is None or not left.body:
        return None
    inputs = script.inputs
    if inputs_may_change(tree, left, script):
        inputs = _parameters(script, tree, left)
    if syntax.unbound_names(tree, left):
        return None
    try:
        candidate = replace(script, text=ast.unparse(ast.fix_missing_locations(tree)), inputs=inputs)
        candidate.case()
    except (CaseFormatError, ValueError):
        return None
    return candidate


def _parameters(script: Script, tree: ast.Module, function: Function) -> tuple[tuple[str, Input], ...]:
    """Makes unassigned variables parameters, and drops unread ones."""
    used = set(syntax.read_names(function))
    inputs = [(name, given) for name, given in script.inputs if name in used]
    inputs += [
        (name, script.variable_values[name])
        for name in syntax.unbound_names(tree, function)
        if name in script.variable_values
    ]
    given = function.args.args
    own = given[: len(given) - len(syntax.parameters(function))]
    function.args.args = [*own, *(ast.arg(name) for name, _ in inputs)]
    return tuple(inputs)
