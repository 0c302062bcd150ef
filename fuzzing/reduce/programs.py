"""Python programs made small, through their syntax trees: statements, blocks, expressions, literals, names.

Statements are cut out as nodes of a graph are: the library tells once what each variable holds, and where
what makes a variable is cut away, the variable becomes an input that holds its value. Nothing that is still
used is returned beside. A text of which this is not known (early returns, its own `arrange`) is cut all the
same, only that what a statement needs has to stay.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fuzzing.cases import Recipe, Tensor, TestCase, TorchProgram
from fuzzing.cases.case import Input
from fuzzing.errors import CaseFormatError
from fuzzing.execute.bench import Bench
from fuzzing.reduce import syntax
from fuzzing.reduce.engine import Attempt, Format, Pass, cut
from fuzzing.reduce.inputs import (
    complexity,
    flatter,
    number_weight,
    plainer_number,
    shorter,
    simpler,
    tensor_of,
)
from fuzzing.reduce.lengths import shortenings
from fuzzing.reduce.lenses import Lens, register_lens

Function = ast.FunctionDef
#: Changes a tree, and the function in it, in place; False if there is nothing to be had.
Change = Callable[[ast.Module, Function], bool | None]


@dataclass(frozen=True)
class Script:
    """A program, its inputs, and what its variables hold when the library runs it.

    text    as `ast.unparse` writes it
    inputs  in the order of the parameters, and by their names where they have any
    known   values of variables that are assigned once
    origin  the case it comes from, for all but program and inputs
    """

    text: str
    inputs: tuple[tuple[str, Input], ...]
    known: Mapping[str, Tensor]
    origin: TestCase

    def case(self) -> TestCase:
        """The case, without a reference: that is another program's."""
        return replace(self.origin, program=TorchProgram(self.text), inputs=self.inputs, expected=None)


def load(case: TestCase, bench: Bench) -> Script:
    """The program of a case, with the values that the library tells."""
    assert isinstance(case.program, TorchProgram)
    tree = ast.parse(case.program.text)
    script = Script(ast.unparse(tree), case.inputs, {}, case)
    function = _function(tree)
    if _open(tree, function, script):
        names = [argument.arg for argument in syntax.parameters(function)]
        inputs = tuple((name, given) for name, (_, given) in zip(names, case.inputs, strict=True))
        script = replace(script, inputs=inputs)
    return replace(script, known=_known(script, bench))


def _known(script: Script, bench: Bench) -> dict[str, Tensor]:
    """What the variables that the function's own statements assign once hold at its end."""
    tree = ast.parse(script.text)
    function = _function(tree)
    if not _open(tree, function, script) or not isinstance(function.body[-1], ast.Return):
        return {}
    stores = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    names = [name for name in dict.fromkeys(stores) if stores.count(name) == 1]
    told = (
        f"tuple([v if isinstance(v, torch.Tensor) else torch.empty(0) for v in map(locals().get, {names!r})])"
    )
    function.body[-1] = ast.Return(ast.parse(told, mode="eval").body)
    text = f"import torch\n{ast.unparse(tree)}"
    values = bench.reference(replace(script, text=text).case()) if names else None
    if values is None or len(values) != len(names):
        return {}
    pairs = zip(names, (value for _, value in values), strict=True)
    return {name: value for name, value in pairs if isinstance(value, Tensor) and value.data}


def _function(tree: ast.Module) -> Function:
    function = syntax.forward_of(tree)
    if function is None:
        raise CaseFormatError("the program has no function `forward` to be made smaller")
    return function


def _open(tree: ast.Module, function: Function, script: Script) -> bool:
    """Whether inputs may come and go: plain parameters, given to the function as they are."""
    given = function.args
    plain = not (given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg or given.defaults)
    arranged = any("arrange" in syntax.written(node) for node in tree.body)
    return plain and not arranged and len(syntax.parameters(function)) == len(script.inputs)


# -- size ----------------------------------------------------------------------------------------------


def size(script: Script) -> tuple[float, ...]:
    """Statements, expressions, inputs, dimensions, elements, then how plain all is to read."""
    tree = ast.parse(script.text)
    ranks = elements = lengths = broken = odd = 0
    for _, given in script.inputs:
        count, off, strange = complexity(given)
        tensor = tensor_of(given)
        if tensor is not None:
            ranks, lengths = ranks + len(tensor.shape), lengths + sum(tensor.shape)
        elements, broken, odd = elements + count, broken + off, odd + strange
    expressions = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
    numbers = sum(number_weight(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant))
    drawn = sum(not isinstance(given, Recipe) for _, given in script.inputs)
    shape = (len(script.inputs), ranks, elements, lengths, numbers, broken, odd, drawn)
    return (syntax.count(tree), expressions, *shape, len(script.text))


def key(script: Script) -> str:
    """The content, as a name."""
    return script.case().id


# -- one change ----------------------------------------------------------------------------------------


def changed(script: Script, change: Change) -> Script | None:
    """The script after a change; its parameters are what it then needs. None if there is no such script."""
    tree = ast.parse(script.text)
    function = _function(tree)
    if change(tree, function) is False or not syntax.may_end(tree):
        return None
    left = syntax.forward_of(tree)
    if left is None or not left.body:
        return None
    inputs = script.inputs
    if _open(tree, left, script):
        inputs = _parameters(script, tree, left)
    if syntax.missing(tree, left):
        return None
    try:
        candidate = replace(script, text=ast.unparse(ast.fix_missing_locations(tree)), inputs=inputs)
        candidate.case()
    except (CaseFormatError, ValueError):
        return None
    return candidate


def _parameters(script: Script, tree: ast.Module, function: Function) -> tuple[tuple[str, Input], ...]:
    """Makes variables that nothing makes any more parameters, and drops those that nothing reads."""
    used = set(syntax.read(function))
    inputs = [(name, given) for name, given in script.inputs if name in used]
    inputs += [(name, script.known[name]) for name in syntax.missing(tree, function) if name in script.known]
    given = function.args.args
    own = given[: len(given) - len(syntax.parameters(function))]
    function.args.args = [*own, *(ast.arg(name) for name, _ in inputs)]
    return tuple(inputs)


def _without(script: Script, gone: Sequence[int]) -> Script | None:
    """The script without some statements, by their places."""

    def change(tree: ast.Module, function: Function) -> bool | None:
        before, results = set(syntax.read(function)), syntax.returned(function)
        everything = syntax.statements(tree)
        syntax.Removal([everything[place] for place in gone]).visit(tree)
        if results is None:
            return None
        made = [name for node in function.body if (name := syntax.assigned_name(node))]
        inner = {name for node in function.body for name in syntax.written(node)}
        kept = [name for name in results if name in inner]
        used = {name for node in function.body[:-1] for name in syntax.read(node)}
        ends = [name for name in made if name in before and name not in used and name not in kept]
        if not kept and not ends:
            return False
        syntax.give_back(function, [*kept, *dict.fromkeys(ends)])
        return None

    return changed(script, change)


# -- passes --------------------------------------------------------------------------------------------


def _by_outputs(attempt: Attempt[Script]) -> None:
    """Fewer results, and what is left of the program without what made the others."""

    def results(script: Script) -> list[str]:
        return syntax.returned(_function(ast.parse(script.text))) or []

    def without(script: Script, gone: Sequence[str]) -> Script | None:
        left = [name for name in results(script) if name not in set(gone)]

        def change(_: ast.Module, function: Function) -> bool:
            if left:
                syntax.give_back(function, left)
                syntax.sweep(function)
            return bool(left)

        return changed(script, change)

    cut(attempt, results, without)


def _by_statements(attempt: Attempt[Script]) -> None:
    """Fewer statements: halves, then ever smaller blocks, then each."""
    cut(attempt, lambda script: range(len(syntax.statements(ast.parse(script.text)))), _without)


def _each(attempt: Attempt[Script], candidates: Callable[[Script], Iterator[Script | None]]) -> None:
    while attempt.any(candidate for candidate in candidates(attempt.best) if candidate is not None):
        pass


def _bypassed(script: Script) -> Iterator[Script | None]:
    """What reads a variable fed with what the variable is computed from."""
    tree = ast.parse(script.text)
    for place, node in enumerate(syntax.statements(tree)):
        name = syntax.assigned_name(node)
        if not isinstance(node, ast.Assign) or not name:
            continue
        for operand in (node.value, *syntax.operands(node.value)):
            if isinstance(operand, ast.Name) and operand.id != name:

                def change(
                    tree: ast.Module,
                    _: Function,
                    place: int = place,
                    names: tuple[str, str] = (name, operand.id),
                ) -> None:
                    syntax.Removal([syntax.statements(tree)[place]]).visit(tree)
                    syntax.rename(tree, {names[0]: names[1]})

                yield changed(script, change)


def _unwrapped(script: Script) -> Iterator[Script | None]:
    """A block's body for the block."""
    for place, node in enumerate(syntax.statements(ast.parse(script.text))):
        for number in range(len(list(syntax.unwrapped(node)))):

            def change(tree: ast.Module, _: Function, place: int = place, number: int = number) -> None:
                old = syntax.statements(tree)[place]
                syntax.replace_in(tree, old, list(syntax.unwrapped(old))[number])

            yield changed(script, change)


def _simpler_expressions(script: Script) -> Iterator[Script | None]:
    """An operand for what computes with it; a call without some argument."""
    for place, node in enumerate(ast.walk(ast.parse(script.text))):
        for number in range(len(syntax.operands(node))):

            def change(tree: ast.Module, _: Function, place: int = place, number: int = number) -> None:
                old = list(ast.walk(tree))[place]
                syntax.replace_in(tree, old, syntax.operands(old)[number])

            yield changed(script, change)
        if isinstance(node, ast.Call):
            for number in range(len(node.args) + len(node.keywords)):

                def drop(tree: ast.Module, _: Function, place: int = place, number: int = number) -> None:
                    call = list(ast.walk(tree))[place]
                    assert isinstance(call, ast.Call)
                    items: list[ast.AST] = [*call.keywords, *reversed(call.args)]
                    call.args = [item for item in call.args if item is not items[number]]
                    call.keywords = [item for item in call.keywords if item is not items[number]]

                yield changed(script, drop)


def _plainer_literals(script: Script) -> Iterator[Script | None]:
    for place, node in enumerate(ast.walk(ast.parse(script.text))):
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            for value in plainer_number(node.value):

                def change(tree: ast.Module, _: Function, place: int = place, value: float = value) -> None:
                    constant = list(ast.walk(tree))[place]
                    assert isinstance(constant, ast.Constant)
                    constant.value = value

                yield changed(script, change)


def _renamed(script: Script) -> Iterator[Script | None]:
    """Short names for parameters and variables: x, x1, … and a, b, …"""
    tree = ast.parse(script.text)
    function = _function(tree)
    if any(
        isinstance(node, (ast.Lambda, ast.FunctionDef)) for node in ast.walk(function) if node is not function
    ):
        return
    if not _open(tree, function, script):
        return
    names = [name for name, _ in script.inputs]
    made = [name for node in function.body for name in syntax.written(node) if name not in names]
    short = {name: f"x{number or ''}" for number, name in enumerate(names)}
    short |= {name: _letters(number) for number, name in enumerate(dict.fromkeys(made))}
    if set(short.values()) & (set(syntax.read(tree)) - set(short)):
        return
    syntax.rename(function, short)
    known = {short.get(name, name): value for name, value in script.known.items()}
    inputs = tuple((short[name], given) for name, given in script.inputs)
    yield replace(script, text=ast.unparse(tree), inputs=inputs, known=known)


def _letters(number: int) -> str:
    """a, b, … w, then a1, b1, …: x is what inputs are called."""
    turn, letter = divmod(number, 23)
    return f"{chr(ord('a') + letter)}{turn or ''}"


def _smaller_inputs(script: Script) -> Iterator[Script]:
    given = dict(script.inputs)
    shapes = {name: tensor.shape for name, value in given.items() if (tensor := tensor_of(value)) is not None}
    for group, length in shortenings(shapes):
        less = dict(given)
        for name, axis in group:
            less[name] = shorter(less[name], axis, length) or less[name]
        yield replace(script, inputs=tuple(less.items()))
    for name, shape in shapes.items():
        for axis in range(len(shape)):
            flat = flatter(given[name], axis)
            if flat is not None:
                yield replace(script, inputs=tuple((given | {name: flat}).items()))


def _simpler_inputs(script: Script) -> Iterator[Script]:
    for name, value in script.inputs:
        for candidate in simpler(value):
            yield replace(script, inputs=tuple((dict(script.inputs) | {name: candidate}).items()))


def _pass(name: str, candidates: Callable[[Script], Iterator[Script | None]]) -> Pass[Script]:
    return Pass(name, lambda attempt: _each(attempt, candidates))


FORMAT = Format[Script](
    size=size,
    key=key,
    passes=(
        Pass("outputs", _by_outputs),
        Pass("statements", _by_statements),
        _pass("bypass", _bypassed),
        _pass("unwrap", _unwrapped),
        _pass("expressions", _simpler_expressions),
        _pass("shrink", _smaller_inputs),
        _pass("literals", _plainer_literals),
        _pass("simplify", _simpler_inputs),
        _pass("names", _renamed),
    ),
)

_WORDS = ("statements", "expressions", "inputs", "dimensions")
register_lens(Lens("TorchProgram", load=load, case=Script.case, format=FORMAT, words=_WORDS))
