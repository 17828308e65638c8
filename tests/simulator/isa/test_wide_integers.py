"""64-bit integers that are made of two words, from CUDA C++ in both builds."""

from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.paths import DEFECTS

PROGRAMS = DEFECTS / "random"
LANES = np.arange(32)
LOW = LANES.astype(np.uint32) * 77 + 1
HIGH = np.full(32, 0xFFFFFFFF, np.uint32)
NEGATIVE = ((HIGH.astype(np.uint64) << np.uint64(32)) | LOW).view(np.int64)
ADDED = LANES * 10**12 - 5

BUILDS = pytest.mark.parametrize("build", ["device", "source"])


@BUILDS
@pytest.mark.parametrize("checked", ["", "1"])
@pytest.mark.parametrize(
    ("entry", "out", "inputs", "wanted"),
    [
        ("pack", np.int64, [LOW, HIGH, ADDED], NEGATIVE + ADDED),
        ("sum", np.int64, [ADDED], ADDED.sum()),
        ("less", np.int32, [np.stack([LOW, HIGH], 1), ADDED], NEGATIVE < ADDED),
    ],
)
def test_words(
    build: str, checked: str, entry: str, out: type, inputs: list[np.ndarray], wanted: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("TILESCOPE_CHECK_WRITES", checked)
    kernel = Kernel.from_cuda(PROGRAMS / "wrong_int64.cu", entry, build=build)
    result = np.zeros(np.shape(wanted) or 1, out)
    run = simulator.launch(kernel, 1, 32, [result, *(np.ascontiguousarray(a) for a in inputs)])
    assert run.hazards == []
    assert (result == wanted).all()


@BUILDS
def test_atomic_in_shared_memory(build: str) -> None:
    kernel = Kernel.from_cuda(PROGRAMS / "shared_or64.cu", "k", build=build)
    out = np.zeros(64, np.uint64)
    assert simulator.launch(kernel, 1, 64, [out]).hazards == []
    assert (out == np.uint64(2**64 - 1)).all()


@BUILDS
def test_sum_by_shuffles_of_unsigned_and_double(build: str) -> None:
    source = """
    template <typename T> __global__ void sum(T* out, const T* in) {
        T v = in[threadIdx.x];
        for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
        out[threadIdx.x] = v;
    }
    """
    for name, dtype in (("unsigned long long", np.uint64), ("double", np.float64)):
        values = (LANES * 2**40 + 2**62).astype(dtype)
        out = np.zeros(32, dtype)
        kernel = Kernel.from_cuda(source, f"sum<{name}>", build=build)
        simulator.launch(kernel, 1, 32, [out, values])
        assert (out == values.sum()).all()


DIVISION = """
__global__ void divide(const long long *high, const long long *low, const long long *by,
                       unsigned long long *out) {
    int t = threadIdx.x;
    __int128 whole = ((__int128)high[t] << 64) | (unsigned long long)low[t];
    __int128 quotient = whole / by[t];
    out[3 * t] = quotient;
    out[3 * t + 1] = quotient >> 64;
    out[3 * t + 2] = whole % by[t];
}
"""


@pytest.mark.slow_cases("source")
@BUILDS
def test_division_of_128_bits(build: str, tmp_path: Path) -> None:
    """NVRTC divides by chains of ``subc`` whose last carry an ``addc`` reads."""
    (tmp_path / "divide.cu").write_text(DIVISION)
    kernel = Kernel.from_cuda(tmp_path / "divide.cu", "divide", build=build)
    edges = [1, 2, 7, -7, 10**12, 2**32, -(2**40) + 3, 2**63 - 1, -(2**63)]
    cases = [(h, low, by) for h in [0, -1, *edges] for low in [0, *edges] for by in edges]
    high, low, by = (np.array(column) for column in zip(*cases, strict=True))
    out = np.zeros((len(cases), 3), np.uint64)
    run = simulator.launch(kernel, 1, len(cases), [high, low, by, out])
    assert not run.hazards

    def divided(high: int, low: int, by: int) -> list[int]:
        whole = (high << 64) | (low & (2**64 - 1))
        quotient = abs(whole) // abs(by) * (1 if (whole < 0) == (by < 0) else -1)
        return [x & (2**64 - 1) for x in (quotient, quotient >> 64, whole - quotient * by)]

    np.testing.assert_array_equal(out, np.array([divided(*case) for case in cases], np.uint64))
