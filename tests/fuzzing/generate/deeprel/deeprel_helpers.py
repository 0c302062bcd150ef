"""What tests of DeepREL share: recorded calls made by hand, and executions that nobody ran."""

from __future__ import annotations

import numpy as np

from fuzzing.cases import Argument, Init, Provenance, Tensor, TensorArg, TestCase, TorchCall
from fuzzing.execution import Execution
from fuzzing.generate.deeprel.api_inventory import list_apis
from fuzzing.generate.deeprel.call_transfer import Invocation, bind_case
from fuzzing.outcomes import Phase

X = TensorArg("x")


def recorded(
    api: str, *args: Argument, init: Init | None = None, shape: tuple[int, ...] = (2, 3), **kwargs: Argument
) -> TestCase:
    """A call of `api` on tensors of one shape, their elements -1, 0, 1, …, as if it had been recorded."""
    program = TorchCall(api, args, tuple(kwargs.items()), init)
    values = np.arange(-1, np.prod(shape, dtype=int) - 1, dtype=np.float32).reshape(shape)
    inputs = tuple((tensor.name, Tensor.of(values)) for tensor in program.tensors)
    return TestCase(
        program, inputs, Provenance("by-hand", f"{api}/0", api.removeprefix("torch."), "torch", "2")
    )


def call(api: str, *args: Argument, init: Init | None = None, **kwargs: Argument) -> Invocation:
    """The same, bound to a signature of the API."""
    found = bind_case(list_apis()[api], recorded(api, *args, init=init, **kwargs))
    assert found is not None
    return found


def returned(*values: object) -> Execution:
    """An execution that gave these arrays or numbers."""
    outputs = tuple((str(place), Tensor.of(np.asarray(value))) for place, value in enumerate(values))
    return Execution("returned", Phase.RUN, outputs=outputs)


def raised(message: str, error: str = "RuntimeError") -> Execution:
    """An execution that an exception ended."""
    return Execution("raised", Phase.RUN, error=error, message=message)


def killed() -> Execution:
    """An execution whose process died."""
    return Execution("killed", Phase.RUN, signal="SIGSEGV")
