"""How near `opera-released` comes to the orders that OPERA published for ONNX, on OPERA's own data.

`--data CLONE` is a clone of https://github.com/AnonymousWorks/OPERA. Its folder `onnx/data` has the migrated
tests, those of each compiler's own suite, and the order that the released code gave. Each line is read as a
literal and made a model of one node; nothing of it is executed. For each compiler and strategy: the rank
correlation (Kendall's τ) with the published order, and how many of its first hundred are among the first
hundred.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from fuzzing.prioritize import strategies
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.instances_onnx import extract_onnx_instance
from fuzzing.prioritize.strategies import Context
from tests.benchmarks._common import verdict

COMPILERS = {"tvm": "TVM", "ov": "OpenVINO", "trt": "TensorRT"}
STRATEGIES = ("opera-released", "opera", "random")
#: What the released code skips (onnx/TCP/run_tcp.py).
_SKIPPED = ("LinearRegressor", "Adagrad", "Adam", "ArrayFeatureExtractor", "Binarizer", "Momentum")
_FIRST = 100
_TAU = 0.9


@dataclass(frozen=True)
class RecordedSuite:
    """A compiler's own tests."""

    instances: Sequence[Instance]

    @property
    def operators(self) -> Mapping[str, int]:
        """Operator → number of tests."""
        names = [one.operator for one in self.instances]
        return {name: names.count(name) for name in names}


def main(argv: Sequence[str]) -> int:
    """Exit code 1 if the released strategy is not nearest to a published order."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks opera-orders", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="CLONE")
    folder = parser.parse_args(argv).data / "onnx" / "data"
    migrated = read_instances(folder / "original_migrated_onnx_tc.py")
    lowest = 1.0
    for short, compiler in COMPILERS.items():
        suite = RecordedSuite(read_instances(folder / f"{short}_equipped_onnx_tc.py"))
        published = read_order(folder / f"ranked_onnx_tc_4_{short}.py")
        for name in STRATEGIES:
            context = Context(suites={"onnx": suite})
            order = [migrated[one.instance_index].id for one in strategies.get(name)(migrated, context)]
            tau, first = compare(order, published)
            print(f"{compiler:10} {name:15} τ {tau:6.3f}, {first} of the first {_FIRST}")
            lowest = min(lowest, tau) if name == "opera-released" else lowest
    return verdict(lowest >= _TAU, f"τ of opera-released at least {_TAU} ({lowest:.3f})")


def read_instances(path: Path) -> list[Instance]:
    """The tests of a file, one a line, each named by its number as in the published orders."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        given = _read(line)
        if given is not None and _is_ranked(given):
            operator, bound = extract_onnx_instance(_model(given), {}, "")
            found.append(
                Instance(
                    str(number), operator, tuple(bound.parameters), "onnx", explicit=tuple(bound.explicit)
                )
            )
    return found


def _is_ranked(given: Mapping[str, Any]) -> bool:
    name = given["op_type"]
    return bool(given["output_name"]) and name not in _SKIPPED and onnx.defs.has(name)


def read_order(path: Path) -> list[str]:
    """The numbers of the tests in a published order."""
    lines = map(_read, path.read_text(encoding="utf-8").splitlines())
    return [str(given["count"]) for given in lines if given is not None]


def _read(line: str) -> dict[str, Any] | None:
    """The keywords of a line `make_graph(op_type='Abs', …)`; None for one that spans lines."""
    try:
        [call] = ast.parse(line.strip()).body
        assert isinstance(call, ast.Expr)
        assert isinstance(call.value, ast.Call)
        return {word.arg or "": ast.literal_eval(word.value) for word in call.value.keywords}
    except (SyntaxError, ValueError, AssertionError):
        return None


def _model(given: Mapping[str, Any]) -> bytes:
    """A model of the one node."""
    attributes = {name: value for name, value in given["kwargs"].items() if value not in (None, [], ())}
    node = helper.make_node(given["op_type"], given["input_name"], given["output_name"], **attributes)
    tensors = {
        side: [
            helper.make_tensor_value_info(name, onnx.TensorProto.DataType.Value(dtype), shape)
            for name, dtype, shape in zip(
                given[f"{side}_name"], given[f"{side}_dtype"], given[f"{side}_shape"], strict=False
            )
        ]
        for side in ("input", "output")
    }
    graph = helper.make_graph([node], "g", tensors["input"], tensors["output"])
    data: bytes = helper.make_model(graph).SerializeToString()
    return data


def compare(order: Sequence[str], published: Sequence[str]) -> tuple[float, int]:
    """Kendall's τ over what both have, and how many of the first hundred they share."""
    place = {one: at for at, one in enumerate(published)}
    ranks = [place[one] for one in order if one in place]
    pairs = len(ranks) * (len(ranks) - 1) / 2
    agree = sum(sum(other > rank for other in ranks[at + 1 :]) for at, rank in enumerate(ranks))
    return 2 * agree / pairs - 1, len(set(order[:_FIRST]) & set(published[:_FIRST]))
