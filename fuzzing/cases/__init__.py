"""Content-addressed test cases (program, inputs, provenance), and the corpus on disk."""

from fuzzing.cases.arguments import (
    Argument,
    Device,
    Dtype,
    Layout,
    MemoryFormat,
    Name,
    NewObject,
    TensorArg,
    TensorLiteral,
)
from fuzzing.cases.case import Comparison, Input, Provenance, TestCase, Tolerance
from fuzzing.cases.corpus import Corpus, read_case, write_case
from fuzzing.cases.equivalent_pair import EquivalentModels, EquivalentPair
from fuzzing.cases.keras_layer import KerasLayer
from fuzzing.cases.programs import OnnxModel, Program, register_kind
from fuzzing.cases.recipes import Recipe
from fuzzing.cases.torch_call import Init, TorchCall
from fuzzing.cases.torch_program import TorchProgram
from fuzzing.cases.values import Absent, Sequence, Tensor, Value

__all__ = [
    "Absent",
    "Argument",
    "Comparison",
    "Corpus",
    "Device",
    "Dtype",
    "EquivalentModels",
    "EquivalentPair",
    "Init",
    "Input",
    "KerasLayer",
    "Layout",
    "MemoryFormat",
    "Name",
    "NewObject",
    "OnnxModel",
    "Program",
    "Provenance",
    "Recipe",
    "Sequence",
    "Tensor",
    "TensorArg",
    "TensorLiteral",
    "TestCase",
    "Tolerance",
    "TorchCall",
    "TorchProgram",
    "Value",
    "read_case",
    "register_kind",
    "write_case",
]
