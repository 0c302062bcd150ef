"""Hypothesis strategies for typed arguments and the programs made of them."""

from __future__ import annotations

import keyword
import string
from typing import Any

from hypothesis import strategies as st

from fuzzing.cases import (
    Device,
    Dtype,
    Init,
    KerasLayer,
    Layout,
    MemoryFormat,
    Name,
    NewObject,
    TensorArg,
    TorchCall,
)
from fuzzing.cases.arguments import LAYOUTS

identifiers = st.text(string.ascii_letters + "_", min_size=1, max_size=6).filter(
    lambda text: not keyword.iskeyword(text) and text not in ("self", "torch", "keras", "np", "hashlib")
)


def dotted(root: str) -> st.SearchStrategy[str]:
    """Dotted names below `root`."""
    return st.lists(identifiers, min_size=1, max_size=3).map(lambda parts: ".".join([root, *parts]))


@st.composite
def tensor_arguments(draw: st.DrawFn) -> TensorArg:
    """Inputs; the name follows from the description, so that no two describe one name in two ways."""
    layout = draw(st.sampled_from(LAYOUTS))
    strides = draw(st.none() | st.lists(st.integers(0, 99), max_size=3)) if layout == "strided" else None
    offset = 0 if strides is None else draw(st.integers(0, 5))
    name = "_".join(["t", layout, *map(str, strides or []), str(offset), "" if strides is None else "s"])
    return TensorArg(name, None if strides is None else tuple(strides), offset, layout)


keras_tensors = st.builds(
    lambda shape, dtype: TensorArg(f"t_{dtype}_{'_'.join(map(str, shape))}", dtype=dtype, shape=tuple(shape)),
    st.lists(st.integers(0, 9), max_size=3),
    st.sampled_from(("float32", "float16", "int32", "bool")),
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.complex_numbers(),
    texts,
    st.just(Ellipsis),
    st.builds(slice, *[st.none() | st.integers(-9, 9)] * 3),
    identifiers.map(Dtype),
    identifiers.map(Layout),
    identifiers.map(MemoryFormat),
    st.sampled_from((Device("cpu"), Device("cuda:1"), Device("meta"))),
    dotted("torch").map(Name),
)


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists, tuples, dicts and new objects of them."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(texts, inner, max_size=2),
            st.builds(
                lambda api, args, kwargs: NewObject(api, tuple(args), tuple(kwargs.items())),
                dotted("torch"),
                st.lists(inner, max_size=2),
                st.dictionaries(identifiers, inner, max_size=2),
            ),
        ),
        max_leaves=6,
    )


arguments = nested(literals | tensor_arguments())
_plain = nested(literals)
_seeds = st.integers(0, 2**64 - 1)


def _args(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=3).map(tuple)


def _kwargs(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[tuple[str, Any], ...]]:
    return st.dictionaries(identifiers | st.just("from"), items, max_size=3).map(
        lambda found: tuple(found.items())
    )


calls = st.builds(
    TorchCall,
    api=dotted("torch"),
    args=_args(arguments),
    kwargs=_kwargs(arguments),
    init=st.none() | st.builds(Init, _args(_plain), _kwargs(_plain)),
    seed=_seeds,
)
layers = st.builds(
    KerasLayer,
    layer=dotted("keras").map(lambda name: f"{name}.Layer"),
    kwargs=_kwargs(_plain),
    inputs=st.lists(
        keras_tensors | st.lists(keras_tensors, min_size=1, max_size=2), min_size=1, max_size=2
    ).map(tuple),
    call=_kwargs(_plain),
    seed=_seeds,
)
