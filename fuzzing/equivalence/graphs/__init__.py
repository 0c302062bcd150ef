"""Equalities of ONNX graphs: rewrites that change a model's nodes and not its results."""
