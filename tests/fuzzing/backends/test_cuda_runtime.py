"""The CUDA runtime's five calls, on a library of the same signatures whose device memory is the host's."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fuzzing.backends.shared import cuda_runtime

#: As cuda_runtime_api.h declares them; a copy of 7 bytes fails as an illegal access would.
STAND_IN = """
#include <stdlib.h>
#include <string.h>
static int devices = DEVICES;
int cudaGetDeviceCount(int *count) { *count = devices; return 0; }
int cudaMalloc(void **at, size_t size) { *at = malloc(size); return *at ? 0 : 2; }
int cudaFree(void *at) { free(at); return 0; }
int cudaMemcpy(void *to, const void *from, size_t size, int kind) {
    if (size == 7) return 700;
    if (kind != 1 && kind != 2) return 21;
    memcpy(to, from, size);
    return 0;
}
int cudaStreamCreate(void **stream) { *stream = (void *)1; return 0; }
int cudaStreamSynchronize(void *stream) { return stream == (void *)1 ? 0 : 400; }
const char *cudaGetErrorName(int code) { return code == 700 ? "cudaErrorIllegalAddress" : "cudaErrorOther"; }
const char *cudaGetErrorString(int code) {
    return code == 700 ? "an illegal memory access was encountered" : "something else";
}
"""

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler for the stand-in")


def stand_in_for_cuda(folder: Path, monkeypatch: pytest.MonkeyPatch, *, devices: int = 1) -> None:
    """Puts the stand-in where NVIDIA's packages put the runtime."""
    lib = folder / "nvidia" / "cuda_runtime" / "lib"
    lib.mkdir(parents=True)
    (lib / "cudart.c").write_text(STAND_IN.replace("DEVICES", str(devices)))
    command = ["gcc", "-shared", "-fPIC", "-o", str(lib / "libcudart.so.12"), str(lib / "cudart.c")]
    subprocess.run(command, check=True)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(cuda_runtime, "_NAMES", ())


def test_memory_goes_to_the_device_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_cuda(tmp_path, monkeypatch)
    runtime = cuda_runtime.CudaRuntime()
    address = runtime.allocate(5)
    runtime.to_device(address, b"\x00abc\xff")
    assert runtime.to_host(address, 5) == b"\x00abc\xff"
    runtime.free(address)
    runtime.wait(runtime.stream())


def test_nothing_has_an_address_and_no_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_cuda(tmp_path, monkeypatch)
    runtime = cuda_runtime.CudaRuntime()
    address = runtime.allocate(0)
    assert address
    runtime.to_device(address, b"")
    assert runtime.to_host(address, 0) == b""


def test_an_error_is_told_in_cudas_words_and_is_sticky(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in_for_cuda(tmp_path, monkeypatch)
    runtime = cuda_runtime.CudaRuntime()
    address = runtime.allocate(7)
    with pytest.raises(
        cuda_runtime.CudaError, match="cudaMemcpy: cudaErrorIllegalAddress: an illegal"
    ) as caught:
        runtime.to_device(address, b"sevenby")
    assert any(re.search(pattern, str(caught.value)) for pattern in cuda_runtime.STICKY)
    with pytest.raises(cuda_runtime.CudaError, match="cudaStreamSynchronize"):
        runtime.wait(99)


def test_a_machine_without_devices_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_cuda(tmp_path, monkeypatch, devices=0)
    with pytest.raises(cuda_runtime.CudaError, match="no CUDA device"):
        cuda_runtime.CudaRuntime()


def test_a_machine_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_runtime, "_NAMES", ("libcudart-of-nobody.so",))
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(cuda_runtime.CudaError, match="install nvidia-cuda-runtime"):
        cuda_runtime.CudaRuntime()
