"""What no result shows: divergent branches, sectors of local memory, and memory that is taken."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from kernels.errors import LaunchError
from tests.support.launches import compiled, entry

HEAD = """\
.local .align 16 .b8 own[256];
ld.param.u64 %d0, [a]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, 0;
"""


def launched(body: str, grid: int, block: int, schedule: str | int = "lockstep") -> simulator.Run:
    kernel = entry(HEAD + body, ".param .u64 a")
    return simulator.launch(kernel, grid, block, [np.zeros(4, np.int32)], schedule=schedule)


def branch(condition: str) -> str:
    return f"{condition}\n@%p bra SKIP;\nadd.u32 %r2, %r2, 1;\nSKIP:"


@pytest.mark.parametrize(
    ("condition", "grid", "block", "divergent"),
    [
        ("setp.lt.u32 %p, %r0, 16;", 1, 32, 1),
        ("setp.lt.u32 %p, %r0, 16;", 1, 128, 1),
        ("setp.lt.u32 %p, %r0, 16;", 3, 64, 3),
        ("setp.lt.u32 %p, %r0, 32;", 2, 128, 0),
        ("setp.lt.u32 %p, %r0, 48;", 2, 128, 2),
        ("setp.lt.u32 %p, %r1, 1;", 2, 64, 0),
        ("and.b32 %r3, %r0, 1; setp.eq.u32 %p, %r3, 0;", 2, 96, 6),
        ("and.b32 %r3, %r0, 1; setp.eq.u32 %p, %r3, 0;", 1, 33, 1),
        ("add.u32 %r3, %r0, %r1; setp.lt.u32 %p, %r3, 32;", 3, 64, 2),
        ("setp.lt.u32 %p, %r0, 0;", 1, 64, 0),
    ],
)
@pytest.mark.parametrize("schedule", ["lockstep", "warps"])
def test_divergent_branches(
    condition: str, grid: int, block: int, divergent: int, schedule: str
) -> None:
    """A branch is divergent once for each warp whose lanes part."""
    run = launched(branch(condition), grid, block, schedule)
    assert run.counters.divergent_branches == divergent


def test_a_loop_that_lanes_leave_one_by_one() -> None:
    """Each round but the last parts the warp: 31 of 32 rounds; lanes that left do not count."""
    body = "LOOP: add.u32 %r2, %r2, 1; setp.le.u32 %p, %r2, %r0; @%p bra LOOP;"
    assert launched(body, 1, 32).counters.divergent_branches == 31
    assert launched(body, 2, 32).counters.divergent_branches == 62


@pytest.mark.parametrize("block", [32, 64, 40])
@pytest.mark.parametrize(
    ("kind", "width", "offset"),
    [("u32", 4, 0), ("u32", 4, 20), ("u64", 8, 8), ("v2.u32", 8, 16), ("v4.u32", 16, 32),
     ("u8", 1, 3), ("u16", 2, 6)],
)  # fmt: skip
def test_the_same_local_element_of_all_threads(
    kind: str, width: int, offset: int, block: int
) -> None:
    """The same word of a warp's threads stands side by side, and is a request by itself."""
    count = int(kind[1]) if kind.startswith("v") else 1
    names = [f"%d{i}" if width == 8 and count == 1 else f"%r{i + 2}" for i in range(count)]
    value = "{" + ", ".join(names) + "}" if count > 1 else names[0]
    lines = [
        f"st.local.{kind} [own+{offset}], {value};",
        f"ld.local.{kind} {value}, [own+{offset}];",
    ]
    run = launched("\n".join(lines), 1, block)
    warps = [min(32, block - first) for first in range(0, block, 32)]
    words = max(width // 4, 1)
    sectors = sum(-(-lanes * 4 // 32) for lanes in warps) * words
    for traffic in (run.counters.local_store, run.counters.local_load):
        assert traffic.requests == len(warps) * words
        assert traffic.sectors == sectors
        assert traffic.bytes == block * width


def test_another_local_element_in_each_thread() -> None:
    """Thread t's word t: every lane falls into a row, and so into a sector, of its own."""
    body = (
        "mul.wide.u32 %d1, %r0, 4; mov.u64 %d2, own; add.u64 %d2, %d2, %d1;\n"
        "st.local.u32 [%d2], %r0;"
    )
    run = launched(body, 1, 32)
    assert run.counters.local_store.requests == 1
    assert run.counters.local_store.sectors == 32


def test_a_local_byte_and_its_neighbour() -> None:
    """Odd threads take the next byte of the same word: still one word a thread."""
    body = (
        "and.b32 %r3, %r0, 1; cvt.u64.u32 %d1, %r3; mov.u64 %d2, own; add.u64 %d2, %d2, %d1;\n"
        "st.local.u8 [%d2+4], %r0;"
    )
    run = launched(body, 1, 32)
    assert run.counters.local_store.sectors == 4
    assert run.counters.local_store.bytes == 32


# -- memory that a launch takes: bounded by batches and arrays, not by the grid --------------------


@pytest.mark.parametrize("lanes", [0, 5])
def test_a_load_whose_lanes_are_all_off_asks_for_nothing(lanes: int) -> None:
    """The address has no pattern; predicated, as compilers write short branches."""
    body = f"""setp.lt.u32 %p, %r0, {lanes}; mul.lo.u32 %r3, %r0, %r1; and.b32 %r3, %r3, 3;
    mad.wide.u32 %d1, %r3, 4, %d0; @%p ld.global.u32 %r3, [%d1];"""
    load = launched(body, 3, 64).counters.global_load
    assert (load.accesses, load.requests) == (3 * lanes, 3 * min(lanes, 1))


SOURCE = """\
__global__ void pass_on(const float* in, float* sums, int n) {
    __shared__ float tile[256];
    int t = threadIdx.x;
    tile[t] = in[(blockIdx.x * 256 + t) % n];
    __syncthreads();
    float value = tile[255 - t];
    if (value > 0.5f) value = sqrtf(value);
    atomicAdd(&sums[t], value);
}
"""


def peak(blocks: int) -> int:
    """Bytes that Python and NumPy hold at most during a launch of so many blocks."""
    kernel = compiled(SOURCE, "pass_on")
    values = np.random.default_rng(0).random(4096, dtype=np.float32)
    args = [values, np.zeros(256, np.float32), len(values)]
    tracemalloc.start()
    try:
        assert simulator.launch(kernel, blocks, 256, args).hazards == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_grid() -> None:
    """32 batches take what four take; what is remembered between launches is there by then."""
    peak(1024)
    few, many = peak(1024), peak(8192)
    assert many < 1.1 * few, f"{few:,} bytes for 1,024 blocks, {many:,} for 8,192"


def test_the_largest_grid_begins_as_a_small_one_does() -> None:
    """No list of all its batches is made first: it would have 16 GB."""

    class Begun(Exception):
        pass

    def begun(*_: int) -> None:
        raise Begun

    kernel = compiled("__global__ void k(int* a) { if (!blockIdx.x) a[threadIdx.x]++; }", "k")
    tracemalloc.start()
    try:
        with pytest.raises(Begun):
            simulator.launch(kernel, (1 << 31) - 1, 32, [np.zeros(32, np.int32)], progress=begun)
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


@pytest.mark.slow_but("matmul_tiled")
@pytest.mark.parametrize("name", ["matmul_tiled", "matmul_missing_first_barrier"])
def test_without_counters_all_else_is_the_same(name: str) -> None:
    one = library.get(name)
    runs, results = [], []
    for counters in ("all", "none"):
        launch = one.launch((20, 20, 20), None, np.random.default_rng(1))
        runs.append(
            simulator.launch(
                one.kernel(), launch.grid, launch.block, launch.args, counters=counters
            )
        )
        results.append([a.copy() for a in launch.args if isinstance(a, np.ndarray)])
    counted, bare = runs
    assert counted.counted
    assert not bare.counted
    assert bare.to_dict()["counters"] is None
    assert bare.lines == []
    assert [str(h) for h in bare.hazards] == [str(h) for h in counted.hazards]
    assert bare.data_dependence == counted.data_dependence
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("how", [{"counters": "some"}, {"counters": "none", "gpu": "h200"}])
def test_counters_that_cannot_be(how: dict[str, Any]) -> None:
    one = library.get("matmul_tiled")
    launch = one.launch((16, 16, 16), None, np.random.default_rng(1))
    with pytest.raises(LaunchError, match="counters is 'all' or 'none'"):
        simulator.launch(one.kernel(), launch.grid, launch.block, launch.args, **how)


@pytest.mark.parametrize("build", ["device", "source"])
def test_a_line_has_its_branches_and_barriers(build: str) -> None:
    source = """__global__ void k(int* out) {
        int t = threadIdx.x;
        if (t & 1) out[t] = *(volatile int*)(out + t) * 3;
        __syncthreads();
        for (int i = 0; i < t % 8; i++) out[t] += *(volatile int*)(out + t);
        if (t < 64) { __syncthreads(); out[t] += 1; } }"""
    kernel = Kernel.from_cuda(source, "k", build=build)
    run = simulator.launch(kernel, 3, 64, [np.zeros(64, np.int32)], checks="none")
    for name in ("divergent_branches", "barriers"):
        by_line = {line.line: getattr(line.counters, name) for line in run.lines}
        assert sum(by_line.values()) == getattr(run.counters, name) > 0
        if name == "barriers":
            assert (by_line[4], by_line[6]) == (6, 6)
        else:
            assert by_line[3] == 6
            assert by_line[5] > 6
