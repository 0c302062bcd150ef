"""The data plane: test cases, their execution on compilers, and the verdicts.

Knows no GitHub and no database. Importing this package imports nothing else, because the
worker loads it inside interpreters that hold only numpy and one compiler.
"""
