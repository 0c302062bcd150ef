"""Regression tests as pull requests: a bug's reduced case as a test in the target's own style."""
