"""The control plane: webhooks in, campaigns, reports out. Imports no compiler, torch or onnx."""
