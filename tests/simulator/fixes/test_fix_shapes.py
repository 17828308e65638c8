"""Launch shapes in which a fix is verified: none at which the original kernel needs other ones."""

from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.fixes.fix_check import hazards, launch
from tilescope.check import verification_runs

TWICE = """
__device__ float total(float v, float* sums) {
    for (int o = 16; o > 0; o >>= 1) v += SHUFFLE;
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    float all = 0;
    for (int w = 0; w < blockDim.x / 32; w++) all += sums[w];
    return all;
}
__global__ void k(const float* in, float* out) {
    __shared__ float sums[32];
    float a = total(in[threadIdx.x], sums);
    float b = total(a * in[threadIdx.x], sums);
    out[blockIdx.x * blockDim.x + threadIdx.x] = b;
}
"""
WHOLE = TWICE.replace("SHUFFLE", "__shfl_xor_sync(0xffffffffu, v, o)")
ANY = TWICE.replace("SHUFFLE", "v * o")


def test_a_block_of_partial_warps_is_no_proof_for_a_kernel_that_needs_whole_ones(
    tmp_path: Path,
) -> None:
    """The last warp's total is ignored there, so its undefined shuffles are no hazard."""
    proofs = []
    for text in (WHOLE, ANY):
        file = tmp_path / "my.cu"
        file.write_text(text)
        [found] = hazards(*launch(file, 2, 128, "f32[128]=normal", "f32[256]"))
        proofs.append(found["fix"]["verified"])
    whole, ragged = proofs
    assert whole.endswith("at grid 2, block 128 and at another shape, grid 1, block 128")
    assert ragged.endswith("at grid 2, block 128 and at another shape, grid 2, block 103")


def test_an_unused_read_of_a_lane_that_does_not_run_is_noted() -> None:
    kernel = Kernel.from_cuda(WHOLE.replace("__syncthreads();", "__syncthreads();" * 2), "k")
    for threads, noted in ((64, 0), (40, 1)):
        args = [np.ones(128, np.float32), np.zeros(256, np.float32)]
        run = simulator.launch(kernel, 1, threads, args)
        assert [source.line for source in run.inactive_reads] == [3] * noted
        assert sum("lanes that do not run" in note for note in run.notes) == noted


@pytest.mark.parametrize(
    ("rounds", "schedules"),
    [(2, "schedules lockstep, warps, reverse, seed 1"), (80, "schedule lockstep")],
)
def test_a_long_launch_without_locks_is_verified_in_its_own_schedule(
    rounds: int, schedules: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its race check holds for every schedule."""
    monkeypatch.setattr(verification_runs, "LIGHT", 50_000)
    file = tmp_path / "my.cu"
    file.write_text("""
__global__ void k(const float* in, float* out, int rounds) {
    __shared__ float s[128];
    float sum = 0;
    s[threadIdx.x] = in[threadIdx.x];
    #pragma unroll 1
    for (int r = 0; r < rounds; r++) sum = sum * 0.5f + s[(threadIdx.x + 32) % blockDim.x];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
""")
    [found] = hazards(*launch(file, 2, 128, "f32[128]=normal", "f32[384]", str(rounds)))
    proof = found["fix"]["verified"]
    assert proof.endswith(
        f"{schedules} at grid 2, block 128 and at another shape, grid 2, block 103"
    )
