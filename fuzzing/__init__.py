"""The data plane: test cases, their execution on compilers, and verdicts. No GitHub, no database.

Importing this package imports nothing else: the worker loads it in interpreters that have only numpy and one
compiler.
"""
