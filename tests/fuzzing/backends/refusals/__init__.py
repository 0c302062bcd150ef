"""What compilers say when they lack something, or fail in words that are like it.

The messages are those of onnxruntime 1.31.1, openvino 2026.4.1 and 2023.1.0, apache-tvm 0.27.0.post1,
iree-base-compiler 3.13.0 and tinygrad 0.14.0 over ONNX's node tests and torch's operator samples, cut where
they repeat, and of onnxruntime 1.32.0 as they stand in the packages' sources and libraries, where values are
filled in.
"""

from __future__ import annotations

from tests.fuzzing.backends.refusals import iree, onnxruntime, openvino, tinygrad, tvm
from tests.fuzzing.backends.refusals.said import Said

SAID = [*iree.SAID, *onnxruntime.SAID, *openvino.SAID, *tinygrad.SAID, *tvm.SAID]

__all__ = ["SAID", "Said"]
