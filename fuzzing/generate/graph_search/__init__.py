"""Graph-based fuzzing: networks of blocks, chosen by tree search for operator-level coverage.

Method of "Graph-based fuzz testing for deep learning inference engines" (ICSE 2021): blocks are operators or
subgraphs, a random digraph connects them, and a calculator makes shapes and parameters agree.
"""

from fuzzing.generate.graph_search.generator import GraphSearch

__all__ = ["GraphSearch"]
