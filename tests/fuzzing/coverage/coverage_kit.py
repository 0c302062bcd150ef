"""Models for the tests of coverage: written by hand, and drawn at random from a seed."""

from __future__ import annotations

import random

import onnx.parser
from onnx import ModelProto, TensorProto, helper

from fuzzing.coverage import GraphCounts, OperatorSet, Tally, extract_scopes


def model_of(graph: str) -> ModelProto:
    """A model of opset 17 from ONNX's text format."""
    return onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> ' + graph)


def named(model: ModelProto, *names: str) -> ModelProto:
    """The model with names for its nodes, in their order: the text format has none."""
    for node, name in zip(model.graph.node, names, strict=True):
        node.name = name
    return model


def build_tally(operators: OperatorSet, *models: ModelProto) -> tuple[Tally, list[GraphCounts]]:
    """The models' tally, and the figures of each."""
    tally = Tally(operators)
    return tally, [tally.add(extract_scopes(model)) for model in models]


_UNARY = ("Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Identity")
_BINARY = ("Add", "Mul", "Sub")


def random_model(seed: int, nodes: int, closing: bool = False) -> ModelProto:
    """A valid model of `nodes` nodes over inputs of two shapes; its shapes are told, as generators do.

    Concatenations make shapes vary; `closing` joins the loose ends as Isra's release does.
    """
    rng = random.Random(seed)
    pool = {f"x{at}": (rng.randint(1, 3), rng.randint(1, 3)) for at in range(2)}
    inputs = [_info(name, shape) for name, shape in pool.items()]
    made, used = [], set()
    for at in range(nodes):
        first = rng.choice(list(pool))
        same = [name for name, shape in pool.items() if shape == pool[first]]
        kind = rng.randrange(3)
        taken = [first] if kind == 0 else [first, rng.choice(same)]
        rows, columns = pool[first]
        operator = rng.choice(_UNARY if len(taken) == 1 else _BINARY)
        if kind == 2 and rows < 9:
            operator, rows = "Concat", 2 * rows
        made.append(helper.make_node(operator, taken, [f"t{at}"], name=f"n{at}"))
        if operator == "Concat":
            made[-1].attribute.append(helper.make_attribute("axis", 0))
        used.update(taken)
        pool[f"t{at}"] = (rows, columns)
    loose = [f"t{at}" for at in range(nodes) if f"t{at}" not in used]
    if closing:
        for name in loose:
            rows, columns = pool[name]
            made.append(helper.make_node("Flatten", [name], [f"f_{name}"], f"flatten_{name}", axis=0))
            pool[f"f_{name}"] = (1, rows * columns)
        joined = [f"f_{name}" for name in loose]
        made.append(helper.make_node("Concat", joined, ["y"], "concat_outputs", axis=1))
        pool["y"] = (1, sum(pool[name][1] for name in joined))
        loose = ["y"]
    reported = [_info(name, shape) for name, shape in pool.items() if name[0] != "x" and name not in loose]
    outputs = [_info(name, pool[name]) for name in loose]
    return helper.make_model(helper.make_graph(made, "g", inputs, outputs, value_info=reported))


def _info(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


#: Two models whose eleven metrics were counted by hand; see test_metrics.py.
SIX = OperatorSet(
    "six",
    {
        name: frozenset(degrees)
        for name, degrees in [
            ("Relu", (1,)),
            ("Abs", (1,)),
            ("Add", (2,)),
            ("Concat", (1, 2, 3, 4, 5)),
            ("Split", (1, 2)),
            ("Flatten", (1,)),
        ]
    },
)


def first_model() -> ModelProto:
    """Six nodes, one of them consumed by one other twice, and three that close the graph."""
    model = model_of(
        """g (float[2,3] x, float[1,3] w) => (float[1,21] y) {
            a = Relu(x)
            b = Add(a, a)
            c = Add(a, x)
            d = Concat<axis=0>(b, c, w)
            e = Abs(d)
            f = Abs(c)
            fe = Flatten<axis=0>(e)
            ff = Flatten<axis=0>(f)
            y = Concat<axis=-1>(fe, ff)
        }"""
    )
    return named(model, *"abcdef", "flatten_e", "flatten_f", "concat_outputs")


def second_model() -> ModelProto:
    """Four nodes, one of which has an output that only a closing node consumes."""
    model = model_of(
        """g (float[4,3] x) => (float[1,9] y) {
            p, q = Split<axis=0>(x)
            r = Relu(p)
            u, v = Split<axis=0>(r)
            s = Add(u, v)
            fq = Flatten<axis=0>(q)
            fs = Flatten<axis=0>(s)
            y = Concat<axis=-1>(fq, fs)
        }"""
    )
    return named(model, *"prus", "flatten_q", "flatten_s", "concat_outputs")
