"""Coverage classes of cases: what one case shows of operators that another may not.

    operator  an operator of a frontend, also as a node of a network
    edge      two operators of which one consumes the other's output
    program   the text of a program or pair; for a pair its rule, too
    value     an abstract value of a parameter: of an attribute or argument, a tensor's dtype or shape class
    pair      two such values of one node or call

Values are abstract as in OPERA's released code (`fuzzing.prioritize.abstraction`), so a value or pair is what
the ranking counts as new. ONNX models of several nodes show the classes of each node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import combinations

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import AttributeProto, ModelProto

from fuzzing.cases import OnnxModel, Tensor, TestCase, TorchCall
from fuzzing.cases.keras_layer import KerasLayer
from fuzzing.coverage.models import InvalidModelError, Node, extract_scopes
from fuzzing.prioritize.abstraction import code_shape, partition_of_released_code
from fuzzing.prioritize.api_signatures import ApiSignatures
from fuzzing.prioritize.instances import extract_instance
from fuzzing.prioritize.instances_onnx import attribute_to_json

#: From coarse to fine: the first that a case adds to is the reason to keep it.
KINDS = ("operator", "edge", "program", "value", "pair")
#: Elements of an integer vector whose values are classes: ONNX gives axes, pads and shapes as inputs.
_MOST_INTEGERS = 8
_INTEGERS = ("int32", "int64")

#: An operator with one setting of its abstract parameters.
Setting = tuple[str, Sequence[tuple[str, Hashable]]]


class CoveredClasses:
    """The classes that the cases added so far show. Memory grows with distinct classes, not with cases."""

    def __init__(self) -> None:
        self._signatures = ApiSignatures()
        self._values: dict[Hashable, int] = {}  # class → its number
        self._pairs: set[tuple[int, int]] = set()
        self.counts: Counter[str] = Counter()

    def add(self, case: TestCase) -> Counter[str]:
        """Adds a case; returns how many classes of each kind it is the first to show.

        Raises InvalidModelError for an ONNX model that cannot be read.
        """
        new: Counter[str] = Counter()
        singles, settings = _describe(case, self._signatures)
        for kind, name in singles:
            new[kind] += self._number((kind, name))[1]
        for operator, parameters in settings:
            new["operator"] += self._number(("operator", operator))[1]
            numbers = []
            for parameter in dict.fromkeys(parameters):
                number, is_new = self._number((operator, parameter))
                numbers.append(number)
                new["value"] += is_new
            before = len(self._pairs)
            self._pairs.update(combinations(sorted(numbers), 2))
            new["pair"] += len(self._pairs) - before
        self.counts += new
        return +new

    def _number(self, one: Hashable) -> tuple[int, bool]:
        """The number of a class, and whether it is new."""
        before = len(self._values)
        number = self._values.setdefault(one, before)
        return number, number == before


def _describe(
    case: TestCase, signatures: ApiSignatures
) -> tuple[Iterator[tuple[str, Hashable]], Iterable[Setting]]:
    """The classes without values, and the settings of operators."""
    program = case.program
    if isinstance(program, OnnxModel):
        return _describe_model(case, program.model, signatures)
    instance = _instance(case, signatures)
    if isinstance(program, (TorchCall, KerasLayer)):
        return iter(()), [instance]
    text = blake2b(program.to_bytes(), digest_size=16).digest()
    return iter([("program", text)]), [(instance[0], [("program", text), *instance[1]])]


def _describe_model(
    case: TestCase, model: bytes, signatures: ApiSignatures
) -> tuple[Iterator[tuple[str, Hashable]], Iterable[Setting]]:
    try:
        loaded = ModelProto.FromString(model)
    except DecodeError as error:
        raise InvalidModelError("is no ONNX model") from error
    scopes = extract_scopes(loaded, infer=False)
    nodes = [node for scope in scopes for node in scope if node.operator != "Constant"]
    edges = (("edge", edge) for scope in scopes for edge in _edges(scope))
    if len(nodes) == 1 and not loaded.functions:
        operator, parameters = _instance(case, signatures)
        return edges, [(operator, [*parameters, *_integers(case)])]
    settings = [(f"onnx {node.operator}", [*_node_parameters(node)]) for node in nodes]
    named = case.provenance.operator
    if named:  # the expansion of a function: another way to spell this operator
        settings.append(
            (f"onnx {named}", [("body", " ".join(dict.fromkeys(node.operator for node in nodes)))])
        )
    return edges, settings


def _instance(case: TestCase, signatures: ApiSignatures) -> Setting:
    instance = extract_instance(case, signatures)
    frontend = instance.frontend
    abstract = [
        one
        for name, value in instance.parameters
        for one in partition_of_released_code(name, value, frontend)
    ]
    return f"{frontend} {instance.operator}", abstract


def _integers(case: TestCase) -> Iterator[tuple[str, Hashable]]:
    """Short integer inputs by their values."""
    for name, given in case.inputs:
        if isinstance(given, Tensor) and given.dtype in _INTEGERS and len(given.shape) < 2:
            values = given.array().reshape(-1).tolist()
            if len(values) <= _MOST_INTEGERS:
                yield from partition_of_released_code(f"{name}.data", values, "onnx")


def _node_parameters(node: Node) -> Iterator[tuple[str, Hashable]]:
    """A node's attributes, and the dtype and shape class of each of its inputs."""
    for place, (dtype, shape) in enumerate(node.types):
        yield f"{place}.dtype", dtype
        yield f"{place}.shape", "unknown" if shape is None else code_shape(shape, "onnx")
    for data in node.attributes:
        yield from _attribute_values(data)


def _attribute_values(data: bytes) -> Sequence[tuple[str, Hashable]]:
    """An attribute as `models.Node` has it: its message, or a digest of a long one."""
    try:
        attribute = AttributeProto.FromString(data)
    except DecodeError:
        attribute = AttributeProto()
    if not attribute.name or attribute.SerializeToString() != data:
        return [("attribute", data)]
    return partition_of_released_code(attribute.name, attribute_to_json(attribute), "onnx")


def _edges(scope: Sequence[Node]) -> Iterator[tuple[str, str]]:
    producers = {name: node.operator for node in scope for name in node.outputs}
    for node in scope:
        for name in node.inputs:
            if name in producers:
                yield producers[name], node.operator
