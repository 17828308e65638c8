"""The identical PTX on a GPU: every library kernel bit for bit, and honest errors without one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import device
from device.validate import ulp_distance
from kernels import Kernel, library

FOUND, WHY = device.available()
gpu = pytest.mark.skipif(not FOUND, reason=f"no GPU: {WHY.splitlines()[0]}")
CLEAN = [
    name for name in library.names()
    if not library.get(name).racy and not library.get(name).twin
]  # fmt: skip


@pytest.fixture(scope="module")
def score() -> Iterator[dict[str, list[int]]]:
    counts: dict[str, list[int]] = {"examples": [], "bit for bit": []}
    yield counts
    print(
        f"\n{len(counts['bit for bit'])} of {len(counts['examples'])} examples bit for bit; "
        "the others have float atomics or .approx"
    )


EXAMPLES = 40
"""Hypothesis examples a kernel: over all of the library more than 1,000."""


FLOAT_ATOMIC = re.compile(r"\b(atom|red)\S*\.add\.f(32|64)")


@pytest.mark.gpu
@gpu
@pytest.mark.parametrize("name", CLEAN)
def test_library_kernel_bit_for_bit(name: str, score: dict[str, list[int]]) -> None:
    counted, exact = score["examples"], score["bit for bit"]
    entry = library.get(name)
    kernel = entry.kernel()

    @settings(max_examples=EXAMPLES, deadline=None, database=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        size = tuple(data.draw(st.integers(1, 96)) for _ in entry.axes)
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        try:
            launch = entry.launch(size, rng=rng)
        except ValueError:  # a size that this kernel is not made for
            launch = entry.launch(rng=rng)
        special = data.draw(
            st.lists(st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 1e-45, -1e-40]), max_size=4)
        )
        for value in special:
            for arg in launch.args:
                if isinstance(arg, np.ndarray) and arg.dtype == np.float32 and arg.size:
                    arg.flat[int(rng.integers(arg.size))] = value
        result = device.validate(
            kernel, launch.grid, launch.block, launch.args, shared_bytes=launch.shared_bytes
        )
        counted.append(1)
        if result.bits_promised and not FLOAT_ATOMIC.search(kernel.ptx):
            assert result.validated, result.reason
            exact.append(1)
        else:  # the order of float atomics is the hardware's; .approx has an error bound only
            assert result.output is not None

    check()


@pytest.mark.gpu
@gpu
def test_a_racy_kernel_is_not_validated() -> None:
    entry = library.get("matmul_missing_first_barrier")
    launch = entry.launch((64, 64, 64))
    result = device.validate(entry.kernel(), launch.grid, launch.block, launch.args)
    assert not result.validated
    assert result.output is None
    assert "race" in result.reason


@pytest.mark.gpu
@gpu
def test_error_names_call_and_code() -> None:
    text = library.get("matmul_naive").kernel().ptx.replace(".version 9.0", ".version 99.0")
    kernel = Kernel.from_ptx(text, "_Z5naivePKfS0_Pfiii")
    array = np.zeros(4, np.float32)
    with pytest.raises(device.DeviceError, match="cuModuleLoadDataEx") as caught:
        device.launch(kernel, 1, 1, [array, array.copy(), array.copy(), 2, 2, 2])
    assert caught.value.call == "cuModuleLoadDataEx"
    assert caught.value.code.startswith("CUDA_ERROR")


@pytest.mark.skipif(FOUND, reason="this machine has a GPU")
def test_without_a_gpu_it_says_so() -> None:
    entry = library.get("matmul_naive")
    launch = entry.launch((8, 8, 8))
    with pytest.raises(device.DeviceError) as caught:
        device.launch(entry.kernel(), launch.grid, launch.block, launch.args)
    assert "\n" not in str(caught.value)
    assert str(caught.value) == WHY


def test_ulp_distance() -> None:
    one = np.array([1.0, -1.0, 0.0, np.nan, np.nan, 1e-45], np.float32)
    two = np.array([np.nextafter(np.float32(1), np.float32(2)), -1.0, -0.0, np.nan, 1.0, 0.0])
    assert ulp_distance(one, two.astype(np.float32)).tolist() == [1, 0, 0, 0, 2**63, 1]
