"""`python -m fuzzing.triage.program_text --corpus DIR [--traits] [--outline] ID...`: programs as text.

Prints one JSON object a line on stdout, in the order of the ids: {"id": ID, "program": TEXT, "code": CODE}.
CODE is the Python that builds an ONNX model, or both of a pair (`fuzzing.triage.onnx_text`), else "".
`--traits` adds {"traits": {…}}, the possible causes of its failure (`fuzzing.triage.traits`), `--outline`
adds {"outline": {…}}, the parts of an ONNX model (`fuzzing.triage.onnx_outline`). Exit codes: 0 done, 2 a
case is missing or unreadable (those before it were printed), 3 infrastructure failure. It is a separate
process because it imports onnx, which the control plane must not.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuzzing.cases import Corpus, EquivalentModels, OnnxModel, Program
from fuzzing.cases.equivalent_pair import SIDES
from fuzzing.entry_point import emit_event, run_main
from fuzzing.triage.onnx_outline import onnx_outline
from fuzzing.triage.onnx_text import onnx_code
from fuzzing.triage.traits import read_traits

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

MAX_PROGRAM = 16_000  # characters, as MAX_TEXT: a report cannot show more
MAX_SHOWN = 16  # elements of a constant; longer ones are elided
_DATA = ("raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_ELIDED = re.compile(r"\[(\d+(?:,\d+)*)\]((?: [^\s={}]+ =)? +)\{\}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.triage.program_text", description="Show programs."
    )
    parser.add_argument("--corpus", required=True, type=Path, help="the folder that keeps the cases")
    parser.add_argument("--traits", action="store_true", help="print the traits too")
    parser.add_argument("--outline", action="store_true", help="print the parts of ONNX models too")
    parser.add_argument("ids", nargs="+", metavar="ID", help="a case id")
    given = parser.parse_args(arguments)

    def work() -> None:
        corpus = Corpus(given.corpus)
        for case_id in given.ids:
            case = corpus.get(case_id)
            text, code = format_program(case.program), program_code(case.program)
            record: dict[str, Any] = {"id": case_id, "program": text, "code": code}
            if given.traits:
                record["traits"] = asdict(read_traits(case))
            if given.outline and isinstance(case.program, OnnxModel):
                record["outline"] = onnx_outline(case.program.model)
            emit_event(**record)

    return run_main(parser.prog, work, events=False)


def program_code(program: Program) -> str:
    """Python that defines `model`, or `left` and `right` of a pair; "" if a model has no such text."""
    if isinstance(program, OnnxModel):
        return onnx_code(program.model)
    if not isinstance(program, EquivalentModels):
        return ""
    codes = [onnx_code(side.model, name) for name, side in zip(SIDES, program.sides, strict=True)]
    return "\n".join(codes) if all(codes) else ""


def format_program(program: Program) -> str:
    """`program` as text of at most MAX_PROGRAM characters."""
    if isinstance(program, OnnxModel):
        text = format_onnx(program.model)
    elif isinstance(program, EquivalentModels):
        sides = zip(SIDES, program.sides, strict=True)
        text = "\n".join(f"# {name.capitalize()}:\n{format_onnx(side.model)}" for name, side in sides)
    else:
        source = getattr(program, "source", None)  # the text a worker runs, which has all of it
        text = source() if callable(source) else _decode_text(program)
    if len(text) <= MAX_PROGRAM:
        return text
    note = "\n… cut here"
    return text[: MAX_PROGRAM - len(note)] + note


def _decode_text(program: Program) -> str:
    """The program's own file, where it is text."""
    try:
        return program.to_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return f"a program of kind {program.kind}, which is no text"


def format_onnx(model: bytes) -> str:
    """A serialized model in ONNX's textual syntax, constants of more than MAX_SHOWN elements elided."""
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        proto = onnx.load_model_from_string(model)
    except DecodeError as error:
        return f"not a readable ONNX model: {error}"
    for tensor in _tensors(proto):
        if math.prod(tensor.dims) > MAX_SHOWN:
            for field in _DATA:
                tensor.ClearField(field)
    return _ELIDED.sub(_mark_elided, onnx.printer.to_text(proto))


def _mark_elided(found: re.Match[str]) -> str:
    """`{…}` for what was elided; an empty tensor stays as it is."""
    empty = 0 in map(int, found[1].split(","))
    return found[0] if empty else f"[{found[1]}]{found[2]}{{…}}"


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    yield from _in_graph(model.graph)
    for function in model.functions:
        for node in function.node:
            yield from _in_node(node)


def _in_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        yield from _in_node(node)


def _in_node(node: NodeProto) -> Iterator[TensorProto]:
    for attribute in node.attribute:
        yield from _in_attribute(attribute)


def _in_attribute(attribute: AttributeProto) -> Iterator[TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    if attribute.HasField("g"):
        yield from _in_graph(attribute.g)
    for graph in attribute.graphs:
        yield from _in_graph(graph)


if __name__ == "__main__":
    sys.exit(main())
