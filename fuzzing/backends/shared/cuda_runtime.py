"""CUDA memory for engines that take raw addresses, and the errors that no process survives.

The runtime library is called through ctypes, by the signatures of `cuda_runtime_api.h`: five functions do not
justify another package in every toolchain. Not yet run on a device; the tests use a library of the same
signatures that keeps "device" memory on the host.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from typing import Any, List

#: cudaGetErrorString's texts and names of errors that "leave the process in an inconsistent state": "to
#: continue using CUDA, the process must be terminated and relaunched" (driver_types.h).
STICKY = (
    r"an illegal memory access was encountered|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS",
    r"device-side assert triggered|cudaErrorAssert|CUDA_ERROR_ASSERT",
    r"unspecified launch failure|cudaErrorLaunchFailure|CUDA_ERROR_LAUNCH_FAILED",
    r"the launch timed out and was terminated|cudaErrorLaunchTimeout|CUDA_ERROR_LAUNCH_TIMEOUT",
    r"misaligned address|cudaErrorMisalignedAddress|CUDA_ERROR_MISALIGNED_ADDRESS",
    r"an illegal instruction was encountered|cudaErrorIllegalInstruction|CUDA_ERROR_ILLEGAL_INSTRUCTION",
    r"hardware stack error|cudaErrorHardwareStackError|CUDA_ERROR_HARDWARE_STACK_ERROR",
    r"operation not supported on global/shared address space|cudaErrorInvalidAddressSpace"
    r"|CUDA_ERROR_INVALID_ADDRESS_SPACE",
    r"invalid program counter|cudaErrorInvalidPc|CUDA_ERROR_INVALID_PC",
    r"uncorrectable (?:ECC|NVLink) error|cudaError(?:ECC|Nvlink)Uncorrectable"
    r"|CUDA_ERROR_(?:ECC|NVLINK)_UNCORRECTABLE",
)

_TO_DEVICE, _TO_HOST = 1, 2  # enum cudaMemcpyKind, driver_types.h
_NAMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12")


class CudaError(Exception):
    """A call of the CUDA runtime failed; the text holds the error's name and CUDA's description."""


class CudaRuntime:
    """The CUDA runtime library; raises CudaError if the library or a device is missing."""

    def __init__(self) -> None:
        self._library = _find()
        self._library.cudaGetErrorName.restype = ctypes.c_char_p
        self._library.cudaGetErrorString.restype = ctypes.c_char_p
        count = ctypes.c_int()
        self._call("cudaGetDeviceCount", ctypes.byref(count))
        if count.value < 1:
            raise CudaError("this machine has no CUDA device")

    def allocate(self, size: int) -> int:
        """The address of `size` bytes on the device; never null, which engines reject."""
        address = ctypes.c_void_p()
        self._call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value or 0

    def free(self, address: int) -> None:
        """Frees memory on the device."""
        self._call("cudaFree", ctypes.c_void_p(address))

    def to_device(self, address: int, data: bytes) -> None:
        """Copies `data` to the device."""
        if data:
            self._call("cudaMemcpy", ctypes.c_void_p(address), data, ctypes.c_size_t(len(data)), _TO_DEVICE)

    def to_host(self, address: int, size: int) -> bytes:
        """`size` bytes of the device's memory."""
        buffer = ctypes.create_string_buffer(size)
        if size:
            self._call("cudaMemcpy", buffer, ctypes.c_void_p(address), ctypes.c_size_t(size), _TO_HOST)
        return buffer.raw

    def stream(self) -> int:
        """A new stream's handle."""
        handle = ctypes.c_void_p()
        self._call("cudaStreamCreate", ctypes.byref(handle))
        return handle.value or 0

    def wait(self, stream: int) -> None:
        """Waits for all work on `stream`; errors of its kernels are raised here."""
        self._call("cudaStreamSynchronize", ctypes.c_void_p(stream))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            error = self._library.cudaGetErrorName(code).decode()
            raise CudaError(f"{name}: {error}: {self._library.cudaGetErrorString(code).decode()}")


def _find() -> Any:
    """The library, from the loader's paths and from NVIDIA's packages beside this interpreter."""
    packages: List[str] = []
    for folder in sys.path:
        packages += glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libcudart.so*"))  # noqa: PTH118, PTH207
    for name in (*_NAMES, *sorted(packages, reverse=True)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CudaError(
        "the CUDA runtime library (libcudart.so) was not found; install nvidia-cuda-runtime "
        "beside the compiler, or put its folder on LD_LIBRARY_PATH"
    )
