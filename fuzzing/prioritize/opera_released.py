"""OPERA's ranking with the mistakes of its released code, to compare with its published orders.

Read in the files `case.py`, `utils.py` and `run_tcp.py` of each frontend's folder `TCP`. Beside what `opera`
computes:

- A default is abstracted before it is put into a test that omits it, and again with the test: None becomes an
  integer below -1. For Keras and ONNX this spares the first test of each operator.
- The pairs seen at the start join the default of a parameter with the first test's value of an earlier one.
- A parameter without a default has seen the text `no_default`.
- What the compilers of 2023 refuse goes to the end (`opera_filter`), and of an operator whose parameters the
  suite covers wholly one instance is ranked. The rest is shuffled by Python's generator.

- The shapes of an ONNX node's inputs are one parameter, and so their dtypes, and the same of its outputs.

Where it differs still: a parameter that every instance gives counts as one without a default. Keras's ties go
to the first instance, not to a random one. Two texts or floats in a list are compared as in `opera`, while
the released code compares integers only. `python -m tests.benchmarks opera-orders` compares it with the
published orders.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from fuzzing.prioritize import abstraction
from fuzzing.prioritize.call_binding import JSON, OUTPUT
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.opera import (
    NOTHING_NEW,
    Group,
    Operator,
    Queue,
    code_picks,
    find_defaults,
    group_by_operator,
    line_up,
    merge_queues,
    without_refused,
)
from fuzzing.prioritize.strategies import Context, Ranked, register_strategy
from fuzzing.prioritize.table import tabulate

#: The released code's text for a default that a parameter lacks.
_NO_DEFAULT = "no_default"
_TENSOR = (abstraction.SHAPE, abstraction.DTYPE, abstraction.LAYOUT)


@register_strategy("opera-released")
def opera_released(instances: Sequence[Instance], context: Context) -> Iterator[Ranked]:
    """The released code's order, mistakes included."""
    groups = list(group_by_operator(instances, context))
    queues = [_queue(group, instances, context) for group in groups]
    left = set(range(len(instances)))
    for one in merge_queues(queues):
        left.remove(one.instance_index)
        yield one
    groups.sort(key=lambda group: -len(group.tests) / len(group.places))
    rest = [place for group in groups for place in group.places if place in left]
    random.Random(context.seed).shuffle(rest)  # noqa: S311 - the released code's own generator
    for place in rest:
        yield Ranked(place, NOTHING_NEW)


def _queue(group: Group, instances: Sequence[Instance], context: Context) -> Queue:
    operator, weight = _abstract(group, [instances[place] for place in group.places])
    operator = without_refused(operator, instances, context.backend)
    queue = line_up(operator, weight, code_picks(operator, context.explain), context.explain)
    if weight:
        return queue
    return replace(queue, places=queue.places[:1], diversity=queue.diversity[:1], new=queue.new[:1])


def _abstract(group: Group, instances: Sequence[Instance]) -> tuple[Operator, float]:
    """The operator as abstracted, and its weight.

    The weight has a table of its own: it starts from pairs with the values of the suite's first test.
    """
    operands = _operands([*instances, *group.tests])
    once = [_columns(one, abstraction.abstract_as_released_code(one), operands) for one in instances]
    rows = [_abstract_test(one, operands) for one in instances]
    if group.frontend != "torch":
        rows[0] = once[0]
    tests = [_abstract_test(test, operands) for test in group.tests]
    known = find_defaults(instances, once)
    defaults: dict[str, Hashable] = {
        name: known.get(name, _NO_DEFAULT) for row in (*rows, *tests) for name in row
    }
    operator = group.abstracted(tabulate(rows, tests, defaults, rows[0]), bool(tests))
    if not tests:
        return operator, operator.uncovered
    return operator, group.abstracted(tabulate(rows, tests, defaults, tests[0]), recorded=True).uncovered


def _abstract_test(instance: Instance, operands: frozenset[str]) -> abstraction.Abstract:
    """The abstract parameters; those omitted are abstracted twice."""
    found = abstraction.abstract_as_released_code(instance)
    for name in {name for name, _ in instance.parameters}.difference(instance.explicit):
        if name in found and not name.startswith(OUTPUT):
            found[name] = abstraction.abstract_again(found[name], instance.frontend)
    return _columns(instance, found, operands)


def _operands(instances: Sequence[Instance]) -> frozenset[str]:
    """The parameters of an ONNX node that are tensors in some instance: its inputs and outputs."""
    return frozenset(
        name
        for one in instances
        if one.frontend == "onnx"
        for name, value in one.parameters
        if name.startswith(OUTPUT) or any(True for _ in abstraction.iter_tensors(value))
    )


def _columns(
    instance: Instance, found: abstraction.Abstract, operands: frozenset[str]
) -> abstraction.Abstract:
    """The parameters in the released code's order: tensors first; for ONNX attributes, inputs, outputs."""
    if instance.frontend != "onnx":
        return dict(sorted(found.items(), key=lambda item: not item[0].endswith(_TENSOR)))
    attributes = {name: found[name] for name, _ in sorted(instance.parameters) if name not in operands}
    if not operands:
        return attributes
    given = [(name, value) for name, value in instance.parameters if name in operands]
    (shapes, dtypes), (made, kinds) = (
        _join(value for name, value in given if name.startswith(OUTPUT) is is_output)
        for is_output in (False, True)
    )
    joined = {"input_shape": shapes, "input_dtype": dtypes, "output_dtype": kinds, "output_shape": made}
    return attributes | joined


def _join(values: Iterable[JSON]) -> tuple[Hashable, Hashable]:
    """The shapes and the dtypes of several tensors; two are followed by a comparison."""
    tensors = [tensor for value in values for tensor in abstraction.iter_tensors(value)]
    shapes = tuple(abstraction.code_shape(tuple(shape), "onnx") for _, shape in tensors)
    return _with_relation(shapes), _with_relation(tuple(dtype for dtype, _ in tensors))


def _with_relation(items: tuple[Hashable, ...]) -> Hashable:
    return (*items, 0 if items[0] == items[1] else -1) if len(items) == 2 else items
