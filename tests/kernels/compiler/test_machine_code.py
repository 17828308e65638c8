"""Registers, shared memory and lines of machine code against an H200's driver; how often it ran."""

import functools
import json

import pytest

from kernels import Kernel, KernelError, library
from kernels.machine_code.cubin import MachineCode, machine_code
from simulator.prediction.flow_counts import flows
from tests.support.paths import GROUND_TRUTH

READINGS = json.loads((GROUND_TRUTH / "time_h200.json").read_text())


@functools.cache
def compiled(name: str, tile: int | None) -> MachineCode:
    code = machine_code(library.get(name).kernel(tile))
    assert code
    return code


@pytest.mark.slow_cases(
    "matmul_register_tiled:1024:t128", "matmul_register_tiled:1024:t64", "transpose_padded:1024"
)
@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading["case"])
def test_registers_and_shared_memory_are_the_drivers(reading: dict[str, object]) -> None:
    name, _, *tile = str(reading["case"]).split(":")
    code = compiled(name, int(tile[0][1:]) if tile else None)
    assert (code.registers, code.shared_bytes) == (reading["regs"], reading["shared"])


def test_instructions_know_their_lines_of_ptx() -> None:
    """Every barrier, and a load of 128 bits for four of 32 that ptxas merged."""
    kernel = library.get("matmul_tiled").kernel()
    code = compiled("matmul_tiled", None)
    text = kernel.ptx.splitlines()
    opcodes = {}
    for (low, _), line in zip(code.words, code.lines, strict=True):
        if line:
            opcodes.setdefault(text[line - 1].split()[0], []).append(low & 0xFFF)
    assert opcodes["bar.sync"] == [0xB1D, 0xB1D]
    assert len(opcodes["ld.shared.f32"]) < kernel.ptx.count("ld.shared.f32") / 2


def test_ptx_gives_the_same_code_where_an_assembler_is() -> None:
    kernel = library.get("matmul_tiled").kernel()
    from_ptx = machine_code(Kernel.from_ptx(kernel.ptx, kernel.entry))
    if from_ptx is None:
        pytest.skip("neither ptxas nor nvJitLink is here")
    assert from_ptx == compiled("matmul_tiled", None)


SEVERAL = """template <class T> __device__ T twice(T x) { return x + x; }
__global__ void plain(float* a) { a[threadIdx.x] = twice(a[threadIdx.x]); }
__global__ void __launch_bounds__(128) assembly(float* a) {
  asm volatile("barrier.cluster.arrive;\\nbarrier.cluster.wait;");
}
__global__ void __cluster_dims__(2, 1, 1) cluster(float* a) { a[threadIdx.x] += 1.0f; }
template <int N> __global__ void __cluster_dims__(N, 1, 1) many(float* a) { a[threadIdx.x] += N; }
template __global__ void many<2>(float*);
HOST"""


@pytest.mark.slow_but("int main...")
@pytest.mark.parametrize("host", ["", "int main() { plain<<<1, 32>>>(nullptr); }\n"])
def test_another_kernel_that_is_not_for_that_gpu(host: str) -> None:
    text = SEVERAL.replace("HOST", host)
    code = machine_code(Kernel.from_cuda(text, "plain"), "8.0")
    assert code
    own = text[: text.index("__global__ void __launch")]
    assert code == machine_code(Kernel.from_cuda(own, "plain"), "8.0")
    for entry in ("assembly", "cluster", "many<2>"):  # which is said where it is the one asked for
        with pytest.raises(KernelError):
            machine_code(Kernel.from_cuda(text, entry), "8.0")


def test_a_gpu_that_the_compiler_no_longer_knows_is_no_guess() -> None:
    assert machine_code(library.get("matmul_naive").kernel(), "7.0") is None


def test_a_loop_is_counted_whatever_a_line_from_before_it_seems_to_do_there() -> None:
    """ptxas moves what a loop does not change: such a line's copies tell nothing for sure."""
    edges = [(0, 1), (1, 1), (1, 2), (2, -1)]
    moved = [({0: 1.0 + number, 1: 1.0}, 64.0, False) for number in range(3)]
    passed = flows(edges, [9, 215, 9], [({1: 1.0}, 4096.0, True), *moved], 64.0)
    assert passed.tolist() == pytest.approx([64, 4032, 64, 64], rel=0.1)
