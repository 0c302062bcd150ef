"""Isra: valid operator graphs by solving constraints in an order that needs no backtracking (seed paper)."""

from fuzzing.generate.isra.settings import Settings
from fuzzing.generate.isra.solver import Generated, Solver

__all__ = ["Generated", "Settings", "Solver"]
