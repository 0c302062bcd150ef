"""Equivalent pairs: rules that rewrite a call into another program with equal results (EAGLE, ICSE 2022)."""
