"""Bisection: which release changed what a case does."""
