"""Mutations of ONNX models with data, one file for each kind; mutants are valid by specification."""
