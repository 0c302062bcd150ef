"""Reduces Python programs: results, statements, blocks, expressions, literals, names, inputs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fuzzing.reduce import syntax
from fuzzing.reduce.case_inputs import Inputs, cast_inputs, shrink_inputs, simplify_inputs
from fuzzing.reduce.engine import Attempt, Pass, ReductionSpec, ddmin, find_single
from fuzzing.reduce.formats import ProgramFormat, register_format
from fuzzing.reduce.input_values import as_tensor, plainer_replacements, simpler_numbers
from fuzzing.reduce.mutations import unapply_mutations
from fuzzing.reduce.script import (
    Function,
    Script,
    apply_change,
    get_function,
    inputs_may_change,
    key,
    load,
    parts,
    size,
    split,
)


def _without_statements(script: Script, gone: Sequence[int]) -> Script | None:
    """The script without some statements, by their indices."""

    def change(tree: ast.Module, function: Function) -> bool | None:
        before, results = set(syntax.read_names(function)), syntax.returned_names(function)
        everything = syntax.removable_statements(tree)
        syntax.StatementRemover([everything[place] for place in gone]).visit(tree)
        if results is None:
            return None
        made = [name for node in function.body if (name := syntax.assigned_name(node))]
        inner = {name for node in function.body for name in syntax.bound_names(node)}
        kept = [name for name in results if name in inner]
        used = {name for node in function.body[:-1] for name in syntax.read_names(node)}
        ends = [name for name in made if name in before and name not in used and name not in kept]
        if not kept and not ends:
            return False
        syntax.set_returned_names(function, [*kept, *dict.fromkeys(ends)])
        return None

    return apply_change(script, change)


# Passes


def _remove_outputs(attempt: Attempt[Script]) -> None:
    """Fewer results, and the program without what only they used."""

    def results(script: Script) -> list[str]:
        return syntax.returned_names(get_function(ast.parse(script.text))) or []

    def without(script: Script, gone: Sequence[str]) -> Script | None:
        left = [name for name in results(script) if name not in set(gone)]

        def change(_: ast.Module, function: Function) -> bool:
            if left:
                syntax.set_returned_names(function, left)
                syntax.remove_dead_assignments(function)
            return bool(left)

        return apply_change(script, change)

    ddmin(attempt, results, without)


def _isolate_statement(attempt: Attempt[Script]) -> None:
    """One statement alone, found by bisection."""

    def only(script: Script, kept: Sequence[int]) -> Script | None:
        return _without_statements(
            script, [place for place in _statement_indices(script) if place not in set(kept)]
        )

    find_single(attempt, _statement_indices, only)


def _statement_indices(script: Script) -> range:
    return range(len(syntax.removable_statements(ast.parse(script.text))))


def _remove_statements(attempt: Attempt[Script]) -> None:
    """Fewer statements: halves, then ever smaller blocks, then each."""
    ddmin(attempt, _statement_indices, _without_statements)


def _exhaust(attempt: Attempt[Script], candidates: Callable[[Script], Iterator[Script | None]]) -> None:
    while attempt.any(candidate for candidate in candidates(attempt.best) if candidate is not None):
        pass


def _bypass_candidates(script: Script) -> Iterator[Script | None]:
    """Users of a variable read one of the variables it is computed from."""
    tree = ast.parse(script.text)
    for place, node in enumerate(syntax.removable_statements(tree)):
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
                    syntax.StatementRemover([syntax.removable_statements(tree)[place]]).visit(tree)
                    syntax.rename(tree, {names[0]: names[1]})

                yield apply_change(script, change)


def _unwrap_candidates(script: Script) -> Iterator[Script | None]:
    """A block's body instead of the block."""
    for place, node in enumerate(syntax.removable_statements(ast.parse(script.text))):
        for number in range(len(list(syntax.block_bodies(node)))):

            def change(tree: ast.Module, _: Function, place: int = place, number: int = number) -> None:
                old = syntax.removable_statements(tree)[place]
                syntax.replace_node(tree, old, list(syntax.block_bodies(old))[number])

            yield apply_change(script, change)


def _expression_candidates(script: Script) -> Iterator[Script | None]:
    """An operand instead of its expression; a call without an argument."""
    for place, node in enumerate(ast.walk(ast.parse(script.text))):
        for number in range(len(syntax.operands(node))):

            def change(tree: ast.Module, _: Function, place: int = place, number: int = number) -> None:
                old = list(ast.walk(tree))[place]
                syntax.replace_node(tree, old, syntax.operands(old)[number])

            yield apply_change(script, change)
        if isinstance(node, ast.Call):
            for number in range(len(node.args) + len(node.keywords)):

                def drop(tree: ast.Module, _: Function, place: int = place, number: int = number) -> None:
                    call = list(ast.walk(tree))[place]
                    assert isinstance(call, ast.Call)
                    items: list[ast.AST] = [*call.keywords, *reversed(call.args)]
                    call.args = [item for item in call.args if item is not items[number]]
                    call.keywords = [item for item in call.keywords if item is not items[number]]

                yield apply_change(script, drop)


def _literal_candidates(script: Script) -> Iterator[Script | None]:
    for place, node in enumerate(ast.walk(ast.parse(script.text))):
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            for value in simpler_numbers(node.value):

                def change(tree: ast.Module, _: Function, place: int = place, value: float = value) -> None:
                    constant = list(ast.walk(tree))[place]
                    assert isinstance(constant, ast.Constant)
                    constant.value = value

                yield apply_change(script, change)


def _rename_candidates(script: Script) -> Iterator[Script | None]:
    """Short names for parameters and variables: x, x1, … and a, b, …"""
    tree = ast.parse(script.text)
    function = get_function(tree)
    if any(
        isinstance(node, (ast.Lambda, ast.FunctionDef)) for node in ast.walk(function) if node is not function
    ):
        return
    if not inputs_may_change(tree, function, script):
        return
    names = [name for name, _ in script.inputs]
    made = [name for node in function.body for name in syntax.bound_names(node) if name not in names]
    short = {name: f"x{number or ''}" for number, name in enumerate(names)}
    short |= {name: _short_name(number) for number, name in enumerate(dict.fromkeys(made))}
    if set(short.values()) & (set(syntax.read_names(tree)) - set(short)):
        return
    syntax.rename(function, short)
    variable_values = {short.get(name, name): value for name, value in script.variable_values.items()}
    inputs = tuple((short[name], given) for name, given in script.inputs)
    yield replace(script, text=ast.unparse(tree), inputs=inputs, variable_values=variable_values)


def _short_name(number: int) -> str:
    """a, b, … w, then a1, b1, …; x is for inputs."""
    turn, letter = divmod(number, 23)
    return f"{chr(ord('a') + letter)}{turn or ''}"


def _change_inputs(candidates: Callable[[Inputs], Iterator[Inputs]]) -> Callable[[Script], Iterator[Script]]:
    return lambda script: (replace(script, inputs=inputs) for inputs in candidates(script.inputs))


def _common_type_inputs(inputs: Inputs) -> Iterator[Inputs]:
    tensors = (as_tensor(given) for _, given in inputs)
    dtypes = [tensor.dtype for tensor in tensors if tensor is not None]
    return (cast_inputs(inputs, replacements) for replacements in plainer_replacements(dtypes))


def _pass(name: str, candidates: Callable[[Script], Iterator[Script | None]]) -> Pass[Script]:
    return Pass(name, lambda attempt: _exhaust(attempt, candidates))


SPEC = ReductionSpec[Script](
    size=size,
    key=key,
    passes=(
        Pass("mutations", unapply_mutations),
        Pass("single", _isolate_statement),
        Pass("outputs", _remove_outputs),
        Pass("statements", _remove_statements),
        _pass("bypass", _bypass_candidates),
        _pass("unwrap", _unwrap_candidates),
        _pass("expressions", _expression_candidates),
        _pass("usual", _change_inputs(_common_type_inputs)),
        _pass("shrink", _change_inputs(shrink_inputs)),
        _pass("literals", _literal_candidates),
        _pass("simplify", _change_inputs(simplify_inputs)),
        _pass("names", _rename_candidates),
    ),
)

_WORDS = ("statements", "expressions", "inputs", "dimensions")
register_format(
    ProgramFormat(
        "TorchProgram",
        load=load,
        case=Script.case,
        spec=SPEC,
        words=_WORDS,
        split=split,
        parts=parts,
    )
)

__all__ = ["SPEC", "Script", "load", "size"]
