"""The APIs of torch to fuzz, and the reasons for exclusions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from fuzzing.errors import UnknownNameError
from fuzzing.torch_api import serializer
from fuzzing.torch_api.names import CONTAINERS

#: The rooms of torch whose names are public, in the order in which they are walked.
NAMESPACES = (
    "torch", "torch.nn.functional", "torch.nn", "torch.linalg", "torch.special", "torch.fft", "torch.Tensor",
)  # fmt: skip

#: Names that are never called, by what they do instead of computing tensors from tensors.
_LEFT_OUT = (
    (r"(set|get|use|init|are|is)_\w*(deterministic|default|num_threads|num_interop|rng|warn|grad|inference|printoptions"
     r"|flush|float32|device|autocast|vital|anomaly)\w*|seed|initial_seed|manual_seed|thread_safe_generator",
     "it sets or returns the state of the process"),
    (r"load|save|from_file|from_dlpack|from_numpy|frombuffer|hub|import_ir\w*|share_memory_|record_stream|pin_memory",
     "it reads or shares what is outside the tensors"),
    (r"compile|script|cond|while_loop|vmap|jit|fork|wait|export|parse_\w+|merge_type\w*|unify_\w+|sym_\w+|typename"
     r"|boolean_dispatch|has_torch_function\w*|handle_torch_function|assert_int_or_pair|Optional|Callable|classproperty"
     r"|compiled_with_cxx11_abi|cudnn_\w+|mkldnn_\w+|miopen_\w+|cuda|cpu|xpu|ipu|mtia|hip|module_load"
     r"|register_\w*hook\w*|retain_grad|requires_grad_|backward|apply_|map_|map2_|as_subclass|data_ptr|const_data_ptr"
     r"|storage\w*|untyped_storage|set_|set|is_shared|names|align_\w+|refine_names|rename_?|unflatten_names|q_\w+|qscheme"
     r"|int_repr|quantize\w*|quantized_\w+|fake_quantize\w*|dequantize|fbgemm\w*|choose_qparams\w*|fused_moving\w*"
     r"|_\w+|nested_\w+|sparse_\w*|to_mkldnn|mkldnn\w*|lobpcg|result_type|can_cast|promote_types|einsum|segment_reduce"
     r"|is_\w+|isinstance|numpy|tolist|tensor_split_list|new|new_tensor|type|to|asarray|as_tensor|tensor|norm_except_dim"
     r"|get_device\w*|grouped_mm|scaled_\w*mm\w*|varlen_attn|print_\w*|batch_norm_\w+|rnn_\w+|gru|lstm|\w+_cell|obj"
     r"|group_norm_backward|\w+_backward\w*|col_indices\w*|crow_indices\w*|ccol_indices\w*|row_indices\w*|indices\w*"
     r"|values\w*|coalesce|smm|hspmm|sspaddmm|saddmm|native_\w+|constant_pad_nd_list|resize\w*|module|unsafe_chunk_list",
     "it takes or gives what no case of one operator holds"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), reason) for pattern, reason in _LEFT_OUT)
_ABSTRACT = CONTAINERS | {
    "RNNBase", "RNNCellBase", "SyncBatchNorm", "Transformer", "TransformerEncoder", "TransformerDecoder"
}  # fmt: skip


def list_apis() -> Iterator[str]:
    """Every documented API of torch that is fuzzed, by namespace and name, each once under its first name."""
    for namespace in NAMESPACES:
        for name in sorted(dir(resolve(namespace))):
            if (
                not name.startswith("_")
                and not exclusion_reason(namespace, name)
                and _is_documented(namespace, name)
            ):
                yield f"{namespace}.{name}"


def exclusion_reason(namespace: str, name: str) -> str:
    """Why an API is not fuzzed, "" if it is."""
    if namespace == "torch.nn" and (name in _ABSTRACT or name.startswith("Lazy")):
        return "it is a base, a container of modules, or made by its first input"
    return next((reason for pattern, reason in _COMPILED if pattern.fullmatch(name)), "")


def _is_documented(namespace: str, name: str) -> bool:
    found = getattr(resolve(namespace), name, None)
    if not callable(found) or not isinstance(getattr(found, "__doc__", None), str):
        return False
    if namespace == "torch.nn":
        return inspect.isclass(found) and issubclass(found, resolve("torch.nn.Module"))
    return not inspect.isclass(found) and not inspect.ismodule(found)


def split_api(api: str) -> tuple[str, str]:
    """The namespace and the name of an API."""
    namespace, _, name = api.rpartition(".")
    return namespace, name


@cache
def _signature_words(api: str) -> frozenset[str]:
    docstring = getattr(resolve(api), "__doc__", None) or ""
    return frozenset(re.findall(r"\w+", docstring.strip().partition("\n")[0]))


def signature_mentions(api: str, name: str) -> bool:
    """Whether the first line of an API's docstring, its signature, has a name."""
    return name in _signature_words(api)


def resolve(api: str) -> Any:
    """The object of a dotted name below torch; raises UnknownNameError."""
    import torch

    found = serializer.resolve(api)
    if found is None or not f"{api}.".startswith("torch."):
        raise UnknownNameError(
            f"torch {torch.__version__} has no {api!r}; give a dotted name such as torch.nn.Conv2d"
        )
    return found
