"""Reduces failing cases: one engine, and a format for each kind of program."""
