"""The control plane: webhooks in, campaigns, reports out. Imports no compiler, no torch and no onnx (law 1)."""
