"""Isra: valid operator graphs by solving constraints in an order that needs no backtracking (seed paper)."""

from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import GeneratedGraph, Solver

__all__ = ["GeneratedGraph", "GeneratorSettings", "Solver"]
