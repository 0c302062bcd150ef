"""Isra: valid operator graphs by solving constraints in an order that needs no backtracking (seed paper)."""
