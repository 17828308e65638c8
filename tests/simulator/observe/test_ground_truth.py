"""All 100 launches measured on an H200: output hashes and every counter, to the unit."""

import hashlib
import json
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator.observe.counters.banks import bank_passes, inactive_address, requests
from simulator.observe.counters.costs import MaskedBankModel, Requests, request_cost
from simulator.observe.counters.deferred_requests import DeferredRequests, LaneSample
from tests.support.paths import GROUND_TRUTH

FOLDER = GROUND_TRUTH
CASES: list[dict[str, Any]] = json.loads((FOLDER / "h200.json").read_text())

METRICS = {
    "global_load.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld",
    "global_store.requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st",
    "global_load.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "global_store.sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "global_load.distinct_bytes": "smsp__sass_data_bytes_mem_global_op_ld",
    "global_store.distinct_bytes": "smsp__sass_data_bytes_mem_global_op_st",
    "shared_load.distinct_bytes": "smsp__sass_data_bytes_mem_shared_op_ld",
    "shared_store.distinct_bytes": "smsp__sass_data_bytes_mem_shared_op_st",
    "shared_load.requests": "smsp__inst_executed_op_shared_ld",
    "shared_store.requests": "smsp__inst_executed_op_shared_st",
    "shared_load.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
    "shared_store.wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st",
    "shared_load.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
    "shared_store.bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st",
    "fma_f32": "smsp__sass_thread_inst_executed_op_ffma_pred_on",
    "add_f32": "smsp__sass_thread_inst_executed_op_fadd_pred_on",
    "mul_f32": "smsp__sass_thread_inst_executed_op_fmul_pred_on",
}
"""Our counters and the Nsight Compute metric each one equals."""

NOISE = {
    ("tiled8:256x256x256", "shared_store.wavefronts"): 131072,
    ("tiled8:256x256x256", "shared_store.bank_conflicts"): 0,
}
"""Readings that the measurement's README calls noise, with the figure it calls true."""


def arguments(case: dict[str, Any]) -> tuple[list[Any], Any]:
    """Arguments and output array, as the measurement's README says."""
    rng = np.random.default_rng(7)
    if case["set"] == "matmul":
        m, n, k = case["dims"]
        a = rng.standard_normal((m, k), dtype=np.float32)
        b = rng.standard_normal((k, n), dtype=np.float32)
        c = np.zeros((m, n), np.float32)
        return [a, b, c, m, n, k], c
    name, _, lanes = case["dtype"].partition("x")
    count = case["n"] * int(lanes or 1)
    if name.startswith("float"):
        source = rng.standard_normal(count).astype(name)
    else:
        source = rng.integers(-100, 100, count).astype(name)
    out = np.zeros_like(source)
    return [source, out, case["n"]], out


def counter(run: simulator.Run, path: str) -> int:
    value: Any = run.counters
    for name in path.split("."):
        value = getattr(value, name)
    return int(value)


@pytest.fixture(scope="module")
def score() -> Any:
    counts = {"hashes": [0, 0], "counters": [0, 0]}
    yield counts
    print()
    for name, (good, total) in counts.items():
        print(f"ground truth: {good}/{total} {name} equal the H200's")


@pytest.mark.slow_cases(
    "missing_first_barrier:64x64x64", "naive32x8:64x64x64", "naive:64x64x64",
    "register_tiled:256x256x256", "register_tiled:64x64x64", "register_tiled:70x50x90",
    "tiled16:64x64x64", "tiled32:64x64x64", "tiled32:70x50x90", "tiled8:256x256x256",
    "tiled8:64x64x64", "tiled8:70x50x90", "transposed_pad0:64x64x64", "transposed_pad1:64x64x64",
    "transposed_pad1:70x50x90",
)  # fmt: skip
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_launch(case: dict[str, Any], score: dict[str, list[int]]) -> None:
    kernel = Kernel.from_cuda(FOLDER / case["file"], case["kernel"])
    args, out = arguments(case)
    racy = "missing" in case["kernel"]  # its output depends on timing; its races are known
    checks = "none" if racy else "all"
    run = simulator.launch(kernel, case["grid"], case["block"], args, checks=checks)
    if not racy:
        good = hashlib.sha256(out.tobytes()).hexdigest()[:16] == case["O0"]["sha256_16"]
        score["hashes"][0] += good
        score["hashes"][1] += 1
        assert good, "the output's bits differ from the H200's"
        assert run.hazards == []
    wrong = {}
    for ours, theirs in METRICS.items():
        wanted = NOISE.get((case["name"], ours), case["O0"]["counters"][theirs])
        found = counter(run, ours)
        score["counters"][0] += found == wanted
        score["counters"][1] += 1
        if found != wanted:
            wrong[ours] = (found, wanted)
    assert not wrong


def test_the_set_is_whole() -> None:
    assert len(CASES) == 100
    assert sum("missing" not in case["kernel"] for case in CASES) == 94


# -- bank conflicts: the rule against patterns measured ------------------------------------------

MEASURED = json.loads((FOLDER / "banks.json").read_text())
WIDTHS = {"f4": 16, "f2": 8, "f1": 4, "s1": 2}


def lanes(index: Any, width: int) -> Any:
    """Rows of 32 element numbers as requests; lanes that are off (-1) hold an address far away."""
    return requests(np.where(index < 0, 2**40, index * width).T, (index >= 0).T)


@pytest.mark.parametrize("kernel", sorted({m["kernel"] for m in MEASURED}))
def test_every_measured_pattern(kernel: str) -> None:
    operation, element = kernel.split("_")
    width = WIDTHS[element]
    cases = [m for m in MEASURED if m["kernel"] == kernel]
    assert cases
    for case in cases:
        index = np.array([case["index"]], np.int64)
        passes, conflicts, _ = bank_passes(lanes(index, width), width, operation == "ld")
        assert (passes, conflicts) == (case["wavefronts"], case["bank_conflicts"]), case


def test_requests_add_up() -> None:
    index = np.array([m["index"] for m in MEASURED if m["kernel"] == "ld_f4"], np.int64)
    total = sum(m["wavefronts"] for m in MEASURED if m["kernel"] == "ld_f4")
    assert bank_passes(lanes(index, 16), 16, True)[0].sum() == total


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("words", [3, 40, 50_000])
@pytest.mark.parametrize("most", [1, 5, 12, 32])
def test_whichever_way_it_is_counted(width: int, words: int, most: int) -> None:
    rng = np.random.default_rng(words)
    address = rng.integers(0, words * 8 // width, (64, 32)) * width
    on = rng.random((64, 32)) < rng.random((64, 1))
    on[0], on[1] = False, True
    near = requests(address.T, on.T)
    far = np.where(near == inactive_address(near), np.uint64(2**64 - 1), near.astype(np.uint64))
    for one, other in zip(
        bank_passes(near, width, True), bank_passes(far, width, True), strict=True
    ):
        assert (one == other).all()
    for space in ("shared", "global"):
        figures = request_cost(width, True, space, near)
        assert (figures == request_cost(width, True, space, far)).all()
    few = on & (np.cumsum(on, axis=1) <= most)
    places = np.flatnonzero(few)
    figures = request_cost(width, True, "global", requests(address.T, few.T))
    begins = np.flatnonzero(np.diff(places // 32, prepend=-1))
    scattered = Requests(begins, len(places)).sorted(near.reshape(-1)[places])
    assert (scattered.cost(width, 0) == figures).all()
    for offset in (-48, 16, 40_000):
        moved = request_cost(width, True, "global", requests(address.T + 64 + offset, few.T))
        assert (scattered.cost(width, offset + 64) == moved).all()


def test_what_is_put_by_is_judged_where_it_is() -> None:
    """Few lanes' addresses, and how far behind them they access."""
    judged = []

    def judge(site: Any, space: str, rows: Any) -> Any:
        judged.append(rows)
        return np.zeros(8, np.int64)

    put_by = DeferredRequests(np.zeros((1, 8), np.int64), judge, sparse=False)
    site: Any = None
    for offset in (0, 36, -8):
        address, places = np.array([256, 300, 512]), np.array([3, 7, 32])
        put_by.add(0, LaneSample(site, "global", address, places, 2, offset))
    put_by.settle()
    for rows, offset in zip(judged, (0, 36, -8), strict=True):
        at = np.array([256, 300, 512]) + offset
        assert rows.reshape(-1)[[3, 7, 32]].tolist() == (at - at[0] // 128 * 128).tolist()
        assert np.count_nonzero(rows != inactive_address(rows)) == 3


@pytest.mark.parametrize("threads", [1, 45, 96])
@pytest.mark.parametrize("words", [3, 40, 5000])
def test_the_same_words_under_other_masks(threads: int, words: int) -> None:
    rng = np.random.default_rng(threads + words)
    address = rng.integers(-9, words, threads) * 4
    on = rng.random((threads, 70)) < rng.random(70)
    every = np.broadcast_to(address[:, None], on.shape)
    figures = request_cost(4, False, "shared", requests(every, on))
    assert (MaskedBankModel(address).cost(on) == figures).all()


def test_loads_and_stores_of_one_pattern_are_judged_apart() -> None:
    source = """\
extern "C" __global__ void both(float4* out) {
  __shared__ float4 s[16];
  s[threadIdx.x & 1] = out[0];
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x & 1];
}
"""
    out = np.zeros((32, 4), np.float32)
    run = simulator.launch(Kernel.from_cuda(source, "both"), 1, 32, [out], checks="none")
    # Lanes two apart agree: the load joins quarter warps, the store does not.
    assert run.counters.shared_store.wavefronts == 4
    assert run.counters.shared_load.wavefronts == 2
