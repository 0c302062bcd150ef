"""Reducing failing cases: which, in which order, and what the reductions are worth."""
