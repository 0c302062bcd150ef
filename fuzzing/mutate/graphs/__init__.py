"""Mutations of operator graphs: of a network of blocks, and of ONNX models."""
