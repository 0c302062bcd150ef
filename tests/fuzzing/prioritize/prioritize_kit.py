"""Instances for tests: made by hand, and drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.strategies import Context, get


@dataclass(frozen=True)
class CountedSuite:
    """A compiler's own tests."""

    operators: Mapping[str, int]
    instances: Sequence[Instance] = field(default=())


def instance(
    number: int,
    operator: str = "Relu",
    frontend: str = "torch",
    given: Sequence[str] | None = None,
    **values: Any,
) -> Instance:
    """An instance whose id is made of its number; `given` are the explicit parameters, all by default."""
    names = tuple(values) if given is None else tuple(given)
    return Instance(f"{number:064x}", operator, tuple(values.items()), frontend, "toy", names)


def order(strategy: str, instances: Sequence[Instance], context: Context | None = None) -> list[int]:
    """The places in the order of a strategy."""
    return [one.instance_index for one in get(strategy)(instances, context or Context())]


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-3, -1, 0, 1, 2, 9, 10, 500, 4000]),
    st.sampled_from([-0.5, 0.0, 0.25, 2.0]),
    st.sampled_from(["same", "valid"]),
    st.sampled_from([{"float": "nan"}, {"float": "-inf"}, {"dtype": "int8"}, {"complex": [1.0, -2.0]}]),
)
TENSORS = st.builds(
    lambda dtype, shape: {"tensor": [dtype, shape]},
    st.sampled_from(["float32", "int64"]),
    st.lists(st.sampled_from([0, 1, 3, 20]), max_size=3),
)
VALUES = st.one_of(
    SCALARS,
    TENSORS,
    st.lists(SCALARS, max_size=3),
    st.lists(SCALARS, max_size=2).map(lambda items: {"tuple": items}),
    st.lists(TENSORS, max_size=2),
)
PARAMETERS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), VALUES, max_size=4)


@st.composite
def generate_instances(draw: st.DrawFn, most: int = 12, fewest: int = 0) -> list[Instance]:
    """A few instances of a few operators and frontends; values repeat, so that ties are common."""
    found = []
    for number in range(draw(st.integers(fewest, most))):
        values = draw(PARAMETERS)
        given_names = [name for name in values if draw(st.booleans())]
        frontend = draw(st.sampled_from(["torch", "onnx"]))
        operator = draw(st.sampled_from(["Add", "Conv", "Pad"]))
        found.append(instance(number, operator, frontend, given_names, **values))
    return found


@st.composite
def generate_contexts(draw: st.DrawFn) -> Context:
    """With or without a suite, counted or recorded, and any backend's list of what it refuses."""
    seed, backend = draw(st.integers(0, 3)), draw(st.sampled_from(["", "openvino", "tvm"]))
    options = draw(st.sampled_from([{}, {"opera.filter": "released"}]))
    suites = {}
    for frontend in draw(st.lists(st.sampled_from(["torch", "onnx", ""]), unique=True)):
        counts = draw(st.dictionaries(st.sampled_from(["Add", "Conv", "Sin"]), st.integers(0, 5), max_size=3))
        suites[frontend] = CountedSuite(counts, draw(generate_instances(most=4)))
    return Context(suites, seed=seed, backend=backend, options=options)
