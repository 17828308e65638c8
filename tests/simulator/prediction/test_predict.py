"""Predictions: traffic that can be counted by hand, limits that kernels were written to have."""

import json
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from simulator import Prediction
from simulator.gpus.table import find
from simulator.prediction.rates import rates
from tests.support.command_line import tilescope

COPY = """
#include <cuda_fp16.h>
extern "C" __global__ void copy(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i];
}
extern "C" __global__ void twice(const float* in, float* out)
{
    float sum = 0;
    for (int round = 0; round < 2; ++round)
        sum += in[round * 0 + threadIdx.x] + *(volatile const float*)&in[threadIdx.x];
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void shifts(unsigned* out, int rounds)
{
    unsigned h = threadIdx.x;
    for (int k = 0; k < rounds; ++k) {
        h ^= h << 13;
        h ^= h >> 17;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = h;
}
extern "C" __global__ void planes(const float* in, float* out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x == 0 || x == n - 1 || y == 0 || y == n - 1 || z == 0 || z == n - 1)
        return;
    int i = (z * n + y) * n + x;
    out[i] = in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n];
}
"""
PRODUCT = """
extern "C" __global__ void product(unsigned* out, unsigned one)
{
    unsigned d[2];
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0, %1}, {%2}, {%2}, {%3, %3};"
                 : "=r"(d[0]), "=r"(d[1]) : "r"(one), "r"(0));
    unsigned h = threadIdx.x;
    for (unsigned k = 0; k < 100 * d[0]; ++k)
        h ^= h << 13;
    out[blockIdx.x * blockDim.x + threadIdx.x] = h;
}
"""
ADD = """
extern "C" __global__ void one_address(int* sum) { atomicAdd(sum, 1); }
"""
FAR = """
#include <cooperative_groups.h>
template <int WORDS> __device__ void frames(float* out, int rounds) {
    float mine[WORDS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < WORDS; k++)
        mine[k] = i;
    for (int r = 0; r < rounds; r++)
        mine[(i * 7 + r * 5) % WORDS] += mine[(i + r * 3) % WORDS];
    for (int k = 0; k < WORDS; k++)
        out[i] += mine[k];
}
extern "C" __global__ void frames_near(float* out, int rounds) { frames<8>(out, rounds); }
extern "C" __global__ void frames_far(float* out, int rounds) { frames<96>(out, rounds); }
template <int AWAY> __device__ void neighbours(float* out, int rounds) {
    __shared__ float own[256];
    auto cluster = cooperative_groups::this_cluster();
    own[threadIdx.x] = threadIdx.x;
    cluster.sync();
    float* other = AWAY ? cluster.map_shared_rank(own, cluster.block_rank() ^ 1) : own;
    float sum = 0;
    for (int r = 0; r < rounds; r++)
        sum += other[(threadIdx.x + r) & 255];
    cluster.sync();
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbours_near(float* out, int rounds) {
    neighbours<0>(out, rounds);
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) neighbours_far(float* out, int rounds) {
    neighbours<1>(out, rounds);
}
extern "C" __global__ void floats(float* sums, int words) {
    atomicAdd(sums + threadIdx.x % words, 1.0f);
}
extern "C" __global__ void walk(const float* in, float* out, int rounds) {
    float sum = 0;
    for (int r = 0; r < rounds; r++)
        sum = sum * sum + in[r * 8];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def of_library(name: str, size: str, tile: int | None = None, **options: object) -> Prediction:
    entry = library.get(name)
    launch = entry.launch(entry.parse_size(size), tile)
    return simulator.predict(entry.kernel(tile), launch.grid, launch.block, launch.args, **options)  # type: ignore[arg-type]


def copied(mebibytes: int, caches: str) -> Prediction:
    count = mebibytes << 18
    args = [np.zeros(count, np.float32), np.zeros(count, np.float32), count]
    kernel = Kernel.from_cuda(COPY, "copy")
    return simulator.predict(kernel, count // 256, 256, args, caches=caches)


@pytest.mark.slow
def test_a_copy_reads_all_of_it_from_dram_unless_l2_has_it() -> None:
    small, large = copied(4, "cold"), copied(256, "cold")
    assert small.dram_read_bytes == 4 << 20
    assert large.dram_read_bytes == pytest.approx(256 << 20, rel=0.01)
    assert small.dram_write_bytes == 0, "it stays in L2"
    assert [any("stays in L2" in n for n in one.notes) for one in (small, large)] == [True, False]
    assert 0.8 * (256 << 20) < large.dram_write_bytes <= 256 << 20
    assert copied(4, "warm").dram_read_bytes == 0
    assert large.l1_hit_rate == 0
    assert large.limiter in ("dram", "latency")


def test_arguments_stay_as_they_are() -> None:
    out = np.zeros(512, np.float32)
    kernel = Kernel.from_cuda(COPY, "copy")
    prediction = simulator.predict(kernel, 2, 256, [np.ones(512, np.float32), out, 512])
    assert not out.any()
    assert prediction.blocks_run == prediction.blocks == 2
    assert prediction.limiter == "launch"


def test_invalid_accesses_are_noted() -> None:
    kernel = Kernel.from_cuda(COPY, "copy")
    short, whole = np.ones(100, np.float32), np.ones(512, np.float32)
    faulty = simulator.predict(kernel, 2, 256, [short, whole, 512])
    assert any("out-of-bounds access" in note for note in faulty.notes)
    right = simulator.predict(kernel, 2, 256, [whole, whole.copy(), 512])
    assert not any("access" in note for note in right.notes)
    idle = simulator.predict(kernel, 2, 256, [whole, whole.copy(), 0])
    assert not any("L2" in note for note in idle.notes), "nothing is stored"


def test_a_launch_counts_what_a_gpus_caches_do() -> None:
    count = 1 << 16
    args = [np.arange(count, dtype=np.float32), np.zeros(count, np.float32), count]
    kernel = Kernel.from_cuda(COPY, "copy")
    run = simulator.launch(kernel, count // 256, 256, args, checks="none", gpu="h200")
    assert (args[0] == args[1]).all()
    assert run.counters.l1
    assert run.counters.dram
    assert run.counters.l1.sectors == run.counters.global_load.sectors
    assert run.counters.l1.hits == 0
    assert run.counters.dram.read_bytes == args[0].nbytes
    assert run.to_dict()["counters"]["dram"]["write_bytes"] == 0
    without = simulator.launch(kernel, count // 256, 256, args, checks="none")
    assert without.counters.dram is None
    assert "dram" not in without.to_dict()["counters"]


@pytest.mark.slow
def test_tiles_are_faster_and_padding_helps() -> None:
    conflicts, padded = (of_library(f"transpose_{name}", "2048") for name in ("tiled", "padded"))
    assert conflicts.limiter == "shared"
    assert conflicts.time_ms > 1.5 * padded.time_ms
    naive, tiled = (of_library(f"matmul_{name}", "512") for name in ("naive", "tiled"))
    assert naive.time_ms > 1.15 * tiled.time_ms
    assert naive.limiter == "l1"
    assert naive.l1_hit_rate == pytest.approx(0.88, abs=0.05), "Nsight Compute says 0.885"


def test_atomics_on_one_address_wait_for_each_other() -> None:
    prediction = simulator.predict(
        Kernel.from_cuda(ADD, "one_address"), 8192, 256, [np.zeros(1, np.int32)]
    )
    assert prediction.limiter == "atomics"


@pytest.mark.slow_but("rtx4090")
@pytest.mark.parametrize("gpu", ["h200", "a100", "rtx4090"])
def test_rounds_of_a_loop_of_integers_are_known(gpu: str) -> None:
    """Its shifts say how often it ran; lines and branches differ by architecture."""
    few, many = (
        simulator.predict(
            Kernel.from_cuda(COPY, "shifts"), 1056, 256, [np.zeros(270336, np.int32), rounds], gpu
        )
        for rounds in (100, 1000)
    )
    assert many.bounds["int"] == pytest.approx(10 * few.bounds["int"], rel=0.05)
    assert many.limiter == "int"


def test_what_tensor_cores_make_is_worked_out_where_it_counts_rounds() -> None:
    kernel, out = Kernel.from_cuda(PRODUCT, "product"), 33792
    few, many = (
        simulator.predict(kernel, 1056, 32, [np.zeros(out, np.uint32), one])
        for one in (0x01, 0x0A)  # squares: 16 and 1,600
    )
    assert many.bounds["int"] > 3 * few.bounds["int"]


@pytest.mark.slow
def test_a_halo_is_read_from_dram_once() -> None:
    """Blocks at the edge have lanes off; the others still look alike."""
    args = [np.zeros(1 << 21, np.float32), np.zeros(1 << 21, np.float32), 128]
    seen = simulator.predict(Kernel.from_cuda(COPY, "planes"), (4, 128, 128), 32, args)
    assert seen.dram_read_bytes == pytest.approx(4 << 21, rel=0.05)


def test_volatile_loads_do_not_look_in_l1() -> None:
    args = [np.zeros(128, np.float32), np.zeros(1024, np.float32)]
    prediction = simulator.predict(Kernel.from_cuda(COPY, "twice"), 8, 128, args)
    assert prediction.l1_hit_rate is not None
    assert prediction.l1_hit_rate < 0.5


def test_what_nothing_can_tell_is_not_guessed() -> None:
    old = of_library("matmul_tiled", "64", gpu="v100")
    assert old.registers is None
    assert any("registers unknown" in note for note in old.notes)
    assert any("never measured" in note for note in old.notes)
    measured = of_library("matmul_tiled", "64")
    assert measured.registers == 32
    for name, (low, high) in measured.bands.items():
        assert low <= getattr(measured, name) <= high, "what is short says how short"
    assert set(measured.bands) == {
        "dram_read_bytes", "dram_write_bytes", "l1_hit_rate", "l2_hit_rate",
    }  # fmt: skip
    assert old.high_ms / old.low_ms > measured.high_ms / measured.low_ms
    given = of_library("matmul_tiled", "64", gpu="v100", registers=40)
    assert given.registers == 40


@pytest.mark.parametrize(
    ("options", "message"), [({"gpu": "h300"}, "no GPU 'h300'"), ({"caches": "hot"}, "hot")]
)
def test_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        of_library("matmul_tiled", "64", **options)


def test_a_block_that_does_not_fit_is_refused() -> None:
    kernel = Kernel.from_cuda(COPY, "copy")
    args = [np.zeros(1024, np.float32), np.zeros(1024, np.float32), 1024]
    with pytest.raises(simulator.LaunchError, match="does not fit on H200 SXM, for registers"):
        simulator.predict(kernel, 1, 1024, args, registers=200)


def test_command(tmp_path: Path) -> None:
    measured, found = tmp_path / "mine.json", tmp_path / "found.json"
    measured.write_text(json.dumps({"gpu": "h200", "rates": {"launch_us": 60.0}}))
    words = ["predict", "matmul_tiled:8", "matmul_naive", "--size", "64", "--json", str(found)]
    result = tilescope(*words, "--gpu", f"h200,{measured}")
    assert result.exit_code == 0, result.output
    assert "matmul_tiled:8" in result.stdout
    usual = rates(find("h200")).launch_us / 1e3
    rows = json.loads(found.read_text())["predictions"]
    assert [row["tile"] for row in rows] == [8, 8, 16, 16]
    assert rows[1]["time_ms"] == pytest.approx(rows[0]["time_ms"] + 0.060 - usual)
    measured.write_text('{"gpu": "h200", "rates": {"speed": 1}}')
    refused = tilescope(*words, "--gpu", str(measured))
    assert refused.exit_code == 2
    assert "no constant is called 'speed'" in refused.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "args", "part"),
    [
        ("frames", [np.zeros(1024 * 256, np.float32), 40], "l2"),
        ("neighbours", [np.zeros(1024 * 256, np.float32), 40], "shared"),
    ],
)
def test_what_leaves_the_sm_takes_longer(entry: str, args: list[object], part: str) -> None:
    """Local memory that does not fit into L1; shared memory of another block of the cluster."""
    near, far = (
        simulator.predict(Kernel.from_cuda(FAR, f"{entry}_{where}"), 1024, 256, args)
        for where in ("near", "far")
    )
    assert far.bounds[part] > 2.5 * near.bounds.get(part, 0.0)
    assert part != "l2" or near.bounds[part] > near.bounds["l1"], "local stores are written through"
    assert far.time_ms > 2 * near.time_ms


@pytest.mark.slow
def test_floats_added_to_many_words_do_not_wait_as_those_added_to_one() -> None:
    kernel, sums = Kernel.from_cuda(FAR, "floats"), np.zeros(64, np.float32)
    one, many = (
        simulator.predict(kernel, 1024, 256, [sums, words]).bounds["atomics"] for words in (1, 64)
    )
    assert one > 8 * many


@pytest.mark.slow
def test_a_block_waits_for_what_any_of_its_warps_has_to_fetch() -> None:
    """Four warps walk through one array: each line is fetched once, and all wait for it."""
    args = [np.zeros(1 << 17, np.float32), np.zeros(132 * 128, np.float32), 1 << 13]
    alone, together = (
        simulator.predict(Kernel.from_cuda(FAR, "walk"), 132, block, args).bounds["latency"]
        for block in (32, 128)
    )
    assert together == pytest.approx(alone, rel=0.1)
