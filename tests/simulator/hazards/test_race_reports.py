"""Races in reports: pairs of threads that belong together, elements, values and certainty."""

import re

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Hazard
from simulator.hazards.folding import fold_causes
from tests.support.launches import BUILDS

TOTALS = """
__global__ void k(const float* in, float* out) {
    __shared__ float totals[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    for (int round = 0; round < 2; round++) {
        if (lane == 0) totals[warp] = in[warp + 4 * round];
        __syncthreads();
        float sum = totals[0];
        for (int w = 1; w < 4; w++) sum += totals[w];
        out[128 * round + threadIdx.x] = sum;
    }
}
"""


def found(text: str, threads: int = 128, build: str = "device", blocks: int = 1) -> list[Hazard]:
    """What blocks are reported for; their arrays hold 0, 1, 2, ... and zeros."""
    args = [np.arange(256, dtype=np.float32), np.zeros(256, np.float32)]
    kernel = Kernel.from_cuda(text, "k", build=build)
    return simulator.launch(kernel, blocks, threads, args).hazards


@pytest.mark.parametrize("build", BUILDS)
def test_both_threads_of_a_line_are_one_pair(build: str) -> None:
    """A warp's first lane alone writes the warp's total, so an element names its writer."""
    hazard = found(TOTALS, build=build)[0]
    reads = [item for item in hazard.involved if item.role == "read"]
    write = next(item for item in hazard.involved if item.role == "write")
    assert len(reads) == 2
    for read in reads:
        writer = read.opponent.thread if read.opponent else write.thread
        assert read.element == f"totals[{writer[0] // 32}]"
        assert writer[0] % 32 == 0
        assert writer != read.thread
        if read.opponent is not None:
            did = f"finds {read.value} in" if read.value else "reads"
            text = f"{did} {read.element}, which thread ({writer[0]},0,0) writes"
            assert text in str(hazard)
    assert float(write.value) == 4 + write.thread[0] // 32


def test_one_barrier_is_one_report() -> None:
    lanes = [hazard for hazard in found(TOTALS) if hazard.reach == "lane"]
    [hazard] = fold_causes(found(TOTALS))
    assert lanes
    assert hazard.reach == "warp"
    assert list(hazard.follows) == lanes
    assert re.search(r"between lanes of one warp as well: [\d,]+ pairs", str(hazard))
    alone = found(TOTALS.replace("w < 4", "w < 1"), threads=32)
    assert [h.reach for h in fold_causes(alone)] == ["lane"]


TILE = """
__global__ void k(const float* in, float* out) {
    __shared__ float tile[8][9];
    int x = threadIdx.x & 7, y = threadIdx.x / 8;
    tile[y][x] = in[threadIdx.x];
    if (CONDITION) out[threadIdx.x] = tile[x][y];
}
"""


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse", 1])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("element", ["float", "double", "short"])
def test_a_value_found_is_what_the_read_returns(
    schedule: str | int, blocks: int, element: str
) -> None:
    """Also if blocks differ, so that their events are replayed, and if a loop reads again."""
    text = """
__global__ void k(const float* in, float* out) {
    __shared__ ELEMENT s[64];
    if (blockIdx.x < 2) s[threadIdx.x] = 100;
    __syncthreads();
    s[threadIdx.x] = in[threadIdx.x] + blockIdx.x;
    out[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}
"""
    out = np.zeros(256, np.float32)
    kernel = Kernel.from_cuda(text.replace("ELEMENT", element), "k")
    args = [np.arange(256, dtype=np.float32), out]
    run = simulator.launch(kernel, blocks, 64, args, schedule=schedule)
    reads = [item for one in run.hazards for item in one.involved if item.role == "read"]
    assert reads
    for read in reads:
        if read.value:
            assert read.thread is not None
            assert read.block is not None
            assert float(read.value) == out[read.block[0] * 64 + read.thread[0]]
    if element == "double":  # wider than a location of shadow memory
        assert not any(read.value for read in reads)
    elif schedule == "lockstep" and blocks == 1:
        assert any(read.value for read in reads)


def test_elements_have_their_array_s_shape_and_writes_their_value() -> None:
    hazard = next(h for h in found(TILE.replace("CONDITION", "true"), 64) if h.reach == "warp")
    write, read = hazard.involved
    column, row = write.thread[0] % 8, write.thread[0] // 8
    assert write.element == read.element == f"tile[{row}][{column}]"
    assert float(write.value) == write.thread[0]
    assert read.value == write.value  # in lockstep, the write comes first
    for columns in (40, 80):
        text = hazard.text(columns)
        assert max(map(len, text.splitlines())) <= columns
        assert f"stores {write.value} in {write.element}" in " ".join(text.split())


COPIED = """
struct Near { float d; int id; };
__global__ void k(const ELEMENT* in, ELEMENT* out) {
    PLACE
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[(threadIdx.x + 33) % 64];
}
"""


@pytest.mark.parametrize(
    "place", ["__shared__ ELEMENT other[2], tile[64];", "ELEMENT* tile = out;"]
)
@pytest.mark.parametrize(
    ("element", "words"), [("float4", 4), ("float2", 2), ("float", 1), ("uint4", 4), ("Near", 2)]
)
def test_copies_of_vectors_have_values_of_their_elements_type(
    place: str, element: str, words: int
) -> None:
    """Compilers copy them as unsigned words; of a structure's nothing is printed."""
    kernel = Kernel.from_cuda(COPIED.replace("PLACE", place).replace("ELEMENT", element), "k")
    kind = np.uint32 if element[0] == "u" else np.float32
    scale = 1 if element[0] == "u" else 0.25
    data = (np.arange(1, 64 * words + 1) * scale).astype(kind)
    run = simulator.launch(kernel, 1, 64, [data, np.zeros_like(data)])
    written = [item for h in run.hazards for item in h.involved if item.role == "write"]
    assert written
    values = [item.value for item in written if item.value]
    assert values
    assert {float(value) for value in values} <= {*data.tolist()}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("true", "certainty: unordered in every schedule, for all array contents"),
        ("in[x] > 0", "certainty: unordered in every schedule with these inputs; array contents"),
    ],
)
def test_it_says_for_which_inputs_a_race_is_certain(condition: str, words: str) -> None:
    for hazard in found(TILE.replace("CONDITION", condition), 64):
        assert words in " ".join(str(hazard).split())


def test_values_that_collide_do_not_make_a_race_a_matter_of_the_inputs() -> None:
    [hazard, *_] = found(
        "__global__ void k(const float* in, float* out) { out[0] = in[threadIdx.x]; }"
    )
    assert [item.value for item in hazard.involved] == ["0.0", "1.0"]
    assert "for all array contents" in hazard.certainty


def test_what_follows_from_a_race_stands_once_with_its_count() -> None:
    text = "__global__ void k(const float* in, float* out) { *out += in[threadIdx.x / 32]; }"
    [hazard] = fold_causes(found(text, blocks=2))
    shorts = [other.in_short() for other in hazard.follows]
    assert len(set(shorts)) < len(shorts)
    joined = " ".join(str(hazard).split())
    for short in set(shorts):
        count = shorts.count(short)
        assert joined.count(short) == 1 + (f"{hazard.severity}: {hazard.title}" == short)
        assert (f"{short} ({count} times)" in joined) == (count > 1)
