"""Caches torch's tables of decompositions for a process, instead of for one exported program.

`ExportedProgram.run_decompositions`, which importers of exported programs call, spends nine tenths of its
time on the same work each time (torch 2.13: 190 of 212 ms for one softmax): it searches all operators for
composite ones, and puts 21 kernels on each of the 513 found, to remove them again. Here torch does so once,
and the result is kept as long as the registered operators are the same. The resulting programs are equal,
node for node.

These are private functions of torch. Releases that differ are not cached.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, Callable, ContextManager, Dict, Iterator, NamedTuple, Optional, Tuple

#: The objects that torch's override changes (2.13). An override that names others is not replayed, as its
#: further effects would be lost.
_TOUCHED = frozenset(
    (
        "CompositeImplicitAutograd",
        "DispatchKey",
        "_AUTOGRAD_ALIAS_BACKEND_KEYS_TO_OVERRIDE",
        "_BACKEND_KEYS_TO_OVERRIDE",
        "_C",
        "_deregister_op_impl",
        "_dispatch_cache",
        "_get_decomp_for_cia",
        "_is_op_registered_to_fake_rule",
        "add",
        "autograd_not_implemented",
        "clear",
        "copy",
        "functools",
        "items",
        "partial",
        "py_impl",
        "py_kernels",
        "register_op_impl",
        "set",
        "torch",
        "update",
    )
)

#: For each operator: its Python kernels, and its rule for fake tensors or None.
_State = Dict[Any, Tuple[Dict[Any, Any], Any]]


class _RecordedOverride(NamedTuple):
    """The effects of one use of torch's override.

    table   the composite operators it was for, and their replacements
    before  their state before
    within  their state during the override
    after   their state afterwards: torch removes any rule for fake tensors, found or not
    """

    table: Dict[Any, Any]
    before: _State
    within: _State
    after: _State


class CachedOverride:
    """Torch's context manager `_override_composite_implicit_decomp`, which replays its recorded effects.

    rules  torch's rules for fake tensors by operator
    """

    def __init__(self, original: Callable[[Dict[Any, Any]], ContextManager[None]], rules: Any) -> None:
        self._original = original
        self._rules = rules
        self._recorded: Optional[_RecordedOverride] = None
        self.recorded = 0

    def __call__(self, table: Dict[Any, Any]) -> ContextManager[None]:
        """Within it the operators in `table` are replaced."""
        recording = self._recorded
        if recording is not None and recording.table == table and recording.before == self._state(table):
            return self._replay(recording)
        return self._record(table)

    @contextlib.contextmanager
    def _record(self, table: Dict[Any, Any]) -> Iterator[None]:
        self.recorded += 1
        before = self._state(table)
        with self._original(table):
            within = self._state(table)
            yield
        self._recorded = _RecordedOverride(dict(table), before, within, self._state(table))

    @contextlib.contextmanager
    def _replay(self, recording: _RecordedOverride) -> Iterator[None]:
        self._put(recording.within)
        try:
            yield
        finally:
            self._put(recording.after)

    def _state(self, table: Dict[Any, Any]) -> _State:
        return {operator: (dict(operator.py_kernels), self._rules.get(operator)) for operator in table}

    def _put(self, state: _State) -> None:
        for operator, (kernels, rule) in state.items():
            operator.py_kernels.clear()
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()
            if rule is None:
                self._rules.pop(operator, None)
            else:
                self._rules[operator] = rule


class CachedCall:
    """A function of torch's registry and its arguments, called again only after one of them has changed.

    copy_result  copies a result for a caller that may change it
    """

    def __init__(self, original: Callable[..., Any], copy_result: Callable[[Any], Any]) -> None:
        self._original = original
        self._copy_result = copy_result
        self._key: Any = None
        self._arguments: Any = None
        self._value: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """The function's current result."""
        if self._key != registry_state() or self._arguments != arguments:
            self._arguments = tuple(dict(table) for table in arguments)
            self._value = self._original(*arguments)
            self._key = registry_state()  # the search itself registers further operators
        return self._copy_result(self._value)


def registry_state() -> Any:
    """A key of torch's operator registry as far as decompositions depend on it."""
    import torch
    from torch._decomp import global_decomposition_table

    spaces = [(name, getattr(torch.ops, name)) for name in torch.ops._dir]
    return (
        torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"),
        [(name, len(getattr(space, "_dir", ()))) for name, space in spaces],
        [len(table) for table in global_decomposition_table.values()],
    )


def _default_table(make: Callable[[], Any]) -> Any:
    """Torch's default table, with the operators of all libraries, which it would search at each use."""
    table = make()
    table.materialize()
    return table


def _copy_of_table(table: Any) -> Any:
    """Copies a CustomDecompTable; its own `copy` builds a whole new one first."""
    kind: Any = type(table)
    made = kind.__new__(kind)
    for name, value in vars(table).items():
        setattr(made, name, value.copy() if isinstance(value, (dict, set)) else value)
    return made


def _copies(tables: Tuple[Dict[Any, Any], ...]) -> Tuple[Dict[Any, Any], ...]:
    return tuple(dict(table) for table in tables)


def install_caches() -> None:
    """Installs the caches in this process's torch.export. Idempotent."""
    try:
        from torch._export import utils
        from torch._subclasses import fake_impls
        from torch.export import decomp_utils, exported_program

        program: Any = exported_program
        tables: Any = decomp_utils
        override, rules = program._override_composite_implicit_decomp, fake_impls.op_implementations_dict
        touched = frozenset(override.__wrapped__.__code__.co_names)
        find: Any = CachedCall(utils._collect_all_valid_cia_ops, set)
        make = CachedCall(partial(_default_table, program.default_decompositions), _copy_of_table)
        split = CachedCall(program._split_decomp_table_to_cia_and_python_decomp, _copies)
    except (ImportError, AttributeError):
        return  # another torch, or already installed
    program._collect_all_valid_cia_ops = tables._collect_all_valid_cia_ops = find
    program.default_decompositions = make
    program._split_decomp_table_to_cia_and_python_decomp = split
    if touched <= _TOUCHED:
        program._override_composite_implicit_decomp = CachedOverride(override, rules)


def fill_caches() -> None:
    """Installs the caches and computes torch's default table, which depends on no program."""
    install_caches()
    from torch.export import exported_program

    exported_program.default_decompositions()
