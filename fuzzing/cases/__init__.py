"""Test cases: programs with inputs and provenance, content-addressed, and the corpus that keeps them."""

from fuzzing.cases.case import Comparison, Input, Provenance, TestCase, Tolerance
from fuzzing.cases.corpus import Corpus, read_case, write_case
from fuzzing.cases.programs import OnnxModel, Program, register_kind
from fuzzing.cases.recipes import Recipe
from fuzzing.cases.values import Absent, Sequence, Tensor, Value

__all__ = [
    "Absent",
    "Comparison",
    "Corpus",
    "Input",
    "OnnxModel",
    "Program",
    "Provenance",
    "Recipe",
    "Sequence",
    "Tensor",
    "TestCase",
    "Tolerance",
    "Value",
    "read_case",
    "register_kind",
    "write_case",
]
