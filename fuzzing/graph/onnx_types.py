"""Converts types and tensors from and to ONNX."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, numpy_helper

from fuzzing.cases.values import CARRIERS, RAW_DTYPES, STRING
from fuzzing.errors import UnreadableError, UnwritableError
from fuzzing.graph.ir import Array, Constant
from fuzzing.graph.types import UNKNOWN, TensorType

_NUMBERS = {name: number for name, number in TensorProto.DataType.items() if number}


def _name(number: int) -> str:
    found = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    return STRING if found.hasobject else found.name


#: ONNX's number of each element type, by the name that `fuzzing.cases.values` gives it.
DTYPES: dict[str, int] = {_name(number): number for number in _NUMBERS.values()}
_NAMES = {number: name for name, number in DTYPES.items()}
#: How the textual syntax of ONNX spells each element type.
_SPELLED = {number: name.lower() for name, number in _NUMBERS.items()}
#: Types of which ONNX keeps several elements in a byte, our carriers one.
_PACKED = frozenset({"int4", "uint4", "int2", "uint2", "float4_e2m1fn"})


def type_of(proto: TypeProto) -> TensorType:
    """The type of an edge; UNKNOWN if the proto has none."""
    kind = proto.WhichOneof("value")
    if kind is None:
        return UNKNOWN
    if kind != "tensor_type":
        return TensorType(_text(proto), None)
    tensor = proto.tensor_type
    dtype = _NAMES.get(tensor.elem_type)
    if dtype is None:
        return UNKNOWN
    if not tensor.HasField("shape"):
        return TensorType(dtype, None)
    return TensorType(dtype, tuple([_dim(dim) for dim in tensor.shape.dim]))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | None:
    # A negative length is how some exporters write an unknown one.
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def _text(proto: TypeProto) -> str:
    """A type in ONNX's textual syntax (onnx, docs/Syntax.md), with `?` for lengths that are not numbers."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return _tensor_text(proto.tensor_type)
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({_tensor_text(proto.sparse_tensor_type)})"
    if kind == "sequence_type":
        return f"seq({_text(proto.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_text(proto.optional_type.elem_type)})"
    if kind == "map_type":
        key = _SPELLED.get(proto.map_type.key_type, "undefined")
        return f"map({key}, {_text(proto.map_type.value_type)})"
    raise UnreadableError(f"an edge of type {kind or 'unknown'} cannot be held")


def _tensor_text(tensor: TypeProto.Tensor | TypeProto.SparseTensor) -> str:
    name = _SPELLED.get(tensor.elem_type)
    if name is None:
        raise UnreadableError(f"there is no element type {tensor.elem_type}")
    if not tensor.HasField("shape"):
        return f"{name}[]"
    dims = [_dim(dim) for dim in tensor.shape.dim]
    return f"{name}[{','.join('?' if dim is None else str(dim) for dim in dims)}]" if dims else name


@lru_cache(maxsize=2048)
def proto_of(type_: TensorType) -> TypeProto:
    """The inverse of `type_of`, shared: copy it, never write to it; raises UnwritableError."""
    proto = TypeProto()
    if type_.dtype in DTYPES:
        proto.tensor_type.elem_type = DTYPES[type_.dtype]
        if type_.shape is not None:
            proto.tensor_type.shape.SetInParent()
            for dim in type_.shape:
                made = proto.tensor_type.shape.dim.add()
                if dim is not None:
                    made.dim_value = dim
        return proto
    try:
        graph = onnx.parser.parse_graph(f"g ({type_.dtype} x) => () {{ }}")
    except onnx.parser.ParseError:
        raise UnwritableError(f"ONNX has no type {type_.dtype!r}") from None
    proto.CopyFrom(graph.input[0].type)
    return proto


def constant_of(tensor: TensorProto) -> Constant:
    """A tensor's elements in any encoding; raises UnreadableError."""
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise UnreadableError(
            f"the tensor {tensor.name!r} keeps its data in another file; "
            "load the model with onnx.load, which reads it in, and save it whole"
        )
    dtype = _NAMES.get(tensor.data_type)
    if dtype == STRING:
        texts = [text.decode("utf-8", "surrogateescape") for text in tensor.string_data]
        return Constant(STRING, _reshape(np.array(texts, object), tensor))
    if dtype not in CARRIERS:
        raise UnreadableError(
            f"the tensor {tensor.name!r} is of type {dtype or tensor.data_type}, which cannot be held"
        )
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableError(f"the tensor {tensor.name!r} cannot be read: {error}") from None
    carrier = np.dtype(CARRIERS[dtype])
    if dtype in RAW_DTYPES:
        return Constant(dtype, array.view(carrier))
    return Constant(dtype, array.astype(carrier, copy=False))


def _reshape(array: Array, tensor: TensorProto) -> Array:
    try:
        return array.reshape(tuple(tensor.dims))
    except ValueError as error:
        raise UnreadableError(f"the tensor {tensor.name!r} cannot be read: {error}") from None


def fill_tensor(tensor: TensorProto, constant: Constant) -> None:
    """Writes a constant into an empty tensor: its type, lengths and bytes."""
    array = constant.array
    tensor.data_type = DTYPES[constant.dtype]
    tensor.dims.extend(array.shape)
    if constant.dtype == STRING:
        tensor.string_data.extend([text.encode("utf-8", "surrogateescape") for text in array.reshape(-1)])
    elif constant.dtype in _PACKED:
        packed = array.view(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
        tensor.raw_data = numpy_helper.from_array(packed).raw_data
    else:
        tensor.raw_data = array.tobytes()
