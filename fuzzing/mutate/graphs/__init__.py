"""Mutations of operator graphs: of ONNX models."""
