"""Python programs made small: results, statements, blocks, expressions, literals, names, inputs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fuzzing.reduce import syntax
from fuzzing.reduce.engine import Attempt, Format, Pass, cut, seek
from fuzzing.reduce.inputs import COMMON, plainer_number
from fuzzing.reduce.lengths import Inputs, recast_inputs, simpler_inputs, smaller_inputs
from fuzzing.reduce.lenses import Lens, register_lens
from fuzzing.reduce.script import (
    Function,
    Script,
    changed,
    function_of,
    is_open,
    key,
    load,
    parts,
    size,
    split,
)


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
        return syntax.returned(function_of(ast.parse(script.text))) or []

    def without(script: Script, gone: Sequence[str]) -> Script | None:
        left = [name for name in results(script) if name not in set(gone)]

        def change(_: ast.Module, function: Function) -> bool:
            if left:
                syntax.give_back(function, left)
                syntax.sweep(function)
            return bool(left)

        return changed(script, change)

    cut(attempt, results, without)


def _single(attempt: Attempt[Script]) -> None:
    """One statement alone, found by bisection."""

    def only(script: Script, kept: Sequence[int]) -> Script | None:
        return _without(script, [place for place in _places(script) if place not in set(kept)])

    seek(attempt, _places, only)


def _places(script: Script) -> range:
    return range(len(syntax.statements(ast.parse(script.text))))


def _by_statements(attempt: Attempt[Script]) -> None:
    """Fewer statements: halves, then ever smaller blocks, then each."""
    cut(attempt, _places, _without)


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
    function = function_of(tree)
    if any(
        isinstance(node, (ast.Lambda, ast.FunctionDef)) for node in ast.walk(function) if node is not function
    ):
        return
    if not is_open(tree, function, script):
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


def _on_inputs(candidates: Callable[[Inputs], Iterator[Inputs]]) -> Callable[[Script], Iterator[Script]]:
    return lambda script: (replace(script, inputs=inputs) for inputs in candidates(script.inputs))


def _usual_inputs(inputs: Inputs) -> Iterator[Inputs]:
    return (recast_inputs(inputs, common) for common in COMMON)


def _pass(name: str, candidates: Callable[[Script], Iterator[Script | None]]) -> Pass[Script]:
    return Pass(name, lambda attempt: _each(attempt, candidates))


FORMAT = Format[Script](
    size=size,
    key=key,
    passes=(
        Pass("single", _single),
        Pass("outputs", _by_outputs),
        Pass("statements", _by_statements),
        _pass("bypass", _bypassed),
        _pass("unwrap", _unwrapped),
        _pass("expressions", _simpler_expressions),
        _pass("usual", _on_inputs(_usual_inputs)),
        _pass("shrink", _on_inputs(smaller_inputs)),
        _pass("literals", _plainer_literals),
        _pass("simplify", _on_inputs(simpler_inputs)),
        _pass("names", _renamed),
    ),
)

_WORDS = ("statements", "expressions", "inputs", "dimensions")
register_lens(
    Lens(
        "TorchProgram",
        load=load,
        case=Script.case,
        format=FORMAT,
        words=_WORDS,
        split=split,
        parts=parts,
    )
)

__all__ = ["FORMAT", "Script", "load", "size"]
