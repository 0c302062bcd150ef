"""Localization: where in a compiler a failing case goes wrong."""
