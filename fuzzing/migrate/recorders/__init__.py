"""Recorders: convert the calls of a running library test to cases, for any command.

The recorder of a library is the file of this package with the library's name. It runs inside the recorded
process, whose interpreter may be another: it may import only the standard library, numpy, the library and
`fuzzing`.
"""
