"""Recorders: what a running library test calls becomes cases, whatever command runs the test.

The recorder of a library lies in the file of this package that has the library's name. It runs inside the
recorded process, whose interpreter may be another's: standard library, numpy, the library and `fuzzing`
are all it may import.
"""
