"""Python programs mutated without changing their result (TorchProbe, APLAS 2023)."""
