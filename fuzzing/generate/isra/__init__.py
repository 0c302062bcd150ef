"""Isra: valid operator graphs by solving constraints in an order without backtracking (seed paper)."""

from fuzzing.generate.generators import GeneratedGraph
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.generate.isra.solver import Solver

__all__ = ["GeneratedGraph", "GeneratorSettings", "Solver"]
