"""Bisection: the release or commit in which the behavior of a case changed."""
