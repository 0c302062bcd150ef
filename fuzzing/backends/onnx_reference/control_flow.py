"""Loop and Scan according to the ONNX operator reference.

Corrections as in `corrections`: `node.body` is the evaluator of the body, `context` the values of the outer
scope. numpy only; onnx provides element types.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np


def loop(
    node: Any,
    trips: Any = None,
    condition: Any = None,
    *initial: Any,
    context: Optional[Dict[str, Any]] = None,
    attributes: Any = None,
    bindings: Any = None,
    **_: Any,
) -> Tuple[Any, ...]:
    """Loop: "trip count … optional", "iteration condition … optional": without both it does not end.

    "The values of scan_outputs are concatenated … along a new first axis"; without iterations they are empty.
    """
    most = None if trips is None else int(np.ravel(trips)[0])
    going = condition is None or bool(np.ravel(condition)[0])
    carried: List[Any] = list(initial)
    names = node.body.input_names
    collected: List[List[Any]] = [[] for _ in node.body.output_names[1 + len(carried) :]]
    trip = 0
    while going and (most is None or trip < most):
        given = dict(context or {})
        given.update(zip(names, [np.array(trip, np.int64), np.array(going), *carried]))
        results = node._run_body(given, attributes=attributes, bindings=bindings)
        going = bool(np.ravel(results[0])[0])
        carried = list(results[1 : 1 + len(carried)])
        for kept, result in zip(collected, results[1 + len(carried) :]):
            kept.append(result)
        trip += 1
    types = node.body.output_types[1 + len(carried) :]
    return (*carried, *(_stacked(kept, type_, 0) for kept, type_ in zip(collected, types)))


def scan(
    node: Any,
    *inputs: Any,
    context: Optional[Dict[str, Any]] = None,
    num_scan_inputs: int = 1,
    scan_input_axes: Optional[Sequence[int]] = None,
    scan_input_directions: Optional[Sequence[int]] = None,
    scan_output_axes: Optional[Sequence[int]] = None,
    scan_output_directions: Optional[Sequence[int]] = None,
    attributes: Any = None,
    bindings: Any = None,
    **_: Any,
) -> Tuple[Any, ...]:
    """Scan: directions "0 indicates forward direction and 1 indicates reverse direction", of an output
    "whether the scan_output should be constructed by appending or prepending"; each axis is 0 by default.
    """
    count = len(inputs) - num_scan_inputs
    states, scanned = list(inputs[:count]), inputs[count:]
    slices = [
        np.moveaxis(value, axis, 0)[:: -1 if backward else 1]
        for value, axis, backward in zip(
            scanned, _each(scan_input_axes, scanned), _each(scan_input_directions, scanned)
        )
    ]
    types = node.body.output_types[count:]
    collected: List[List[Any]] = [[] for _ in types]
    for items in zip(*slices):
        given = dict(context or {})
        given.update(zip(node.body.input_names, [*states, *items]))
        results = node._run_body(given, attributes=attributes, bindings=bindings)
        if any(np.shape(old) != np.shape(new) for old, new in zip(states, results)):
            # "All the output tensors (state_variables as well as scan_output_element tensors) are required to
            # have the same shape in each iteration": what the first state may be is left open.
            raise ValueError("the shape of a state changes in a Scan")
        states = list(results[:count])
        for kept, result in zip(collected, results[count:]):
            kept.append(result)
    outputs = zip(collected, types, _each(scan_output_axes, types), _each(scan_output_directions, types))
    return (
        *states,
        *(_stacked(kept[:: -1 if backward else 1], type_, axis) for kept, type_, axis, backward in outputs),
    )


def _each(given: Optional[Sequence[int]], values: Sequence[Any]) -> Sequence[int]:
    return given or [0] * len(values)


def _stacked(items: Sequence[Any], type_: Any, axis: int) -> Any:
    """The items along a new axis. Without items, the declared type gives the shape; an open length is 0."""
    if items:
        return np.stack(items, axis=axis)
    from onnx import helper

    tensor = type_.tensor_type
    lengths = [dim.dim_value for dim in tensor.shape.dim]
    lengths.insert(axis if axis >= 0 else len(lengths) + 1 + axis, 0)
    return np.zeros(lengths, helper.tensor_dtype_to_np_dtype(tensor.elem_type))
