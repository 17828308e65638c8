"""The trace of a run against NumPy, and against the run's own counters."""

import functools
from dataclasses import replace

import numpy as np
import pytest

import simulator
from kernels import Kernel, library
from kernels.ptx.module import Instruction
from simulator.analysis.lane_dependence import parts
from simulator.isa.matrix import mma, wmma
from simulator.observe.trace.trace import RELEASE, SHARED, Trace

TILED = library.get("matmul_tiled").path


def traced(size, tile, schedule="lockstep", trace=True):
    kernel = Kernel.from_cuda(TILED, f"tiled<{tile}>")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 10, (size, size)).astype(np.float32) for _ in range(2))
    c = np.zeros((size, size), np.float32)
    grid = -(-size // tile)
    run = simulator.launch(
        kernel, (grid, grid), (tile, tile), [a, b, c, size, size, size],
        schedule=schedule, trace=trace,
    )  # fmt: skip
    return run, a, b, c


def lane(value, batch, block, x, y):
    """A register's value for one thread."""
    if value.ndim == 0:
        return value
    _, rows, columns, blocks = value.shape
    column = batch.blocks.index(block) if blocks > 1 else 0
    return value[0, y if rows > 1 else 0, x if columns > 1 else 0, column]


@pytest.mark.parametrize("schedule", ["lockstep", "warps"])
@pytest.mark.parametrize(("size", "tile"), [(4, 2), (6, 2), (3, 2), (20, 8)])
def test_partial_sums_grow_as_in_numpy(size, tile, schedule):
    run, a, b, c = traced(size, tile, schedule)
    assert np.array_equal(c, a @ b)
    batch = run.trace.batches[0]
    grid = run.grid[0]
    for block in (0, grid * grid - 1):
        row, col = block // grid * tile + 1, block % grid * tile
        if row >= size:
            continue
        terms = np.zeros(-(-size // tile) * tile, np.float32)
        terms[:size] = a[row] * b[:, col]
        fma = [
            event
            for event in batch.events
            if event.watched != RELEASE
            and run.trace.program.watched[event.watched].instruction.opcode == "fma"
            and (event.mask is None or lane(event.mask, batch, block, 0, 1))
        ]
        sums = [lane(event.values[0], batch, block, 0, 1) for event in fma]
        assert sums == np.cumsum(terms).tolist()


@pytest.mark.parametrize("schedule", ["lockstep", "warps"])
def test_counts_of_elements_are_of_all_blocks(schedule):
    run, _, _, _ = traced(20, 8, schedule, Trace(blocks=2))
    a, b, c = (run.trace.maps[n] for n in range(3))
    assert [a.name, b.name, c.name] == ["A", "B", "C"]
    assert a.reads.tolist() == b.reads.tolist() == [3] * 400  # once for each tile across
    assert c.writes.tolist() == [1] * 400
    assert not a.writes.any()
    threads = np.arange(20) // 8 * 64, np.arange(20) % 8  # of a block; within it
    expected = (threads[0] * 3 + threads[1] * 8)[:, None] + threads[0] + threads[1]
    assert c.owner.reshape(20, 20).tolist() == expected.tolist()
    assert [batch.blocks for batch in run.trace.batches] == [[0, 8]]


@pytest.mark.slow_cases("softmax_rows")
@pytest.mark.parametrize("name", ["histogram_shared", "reduction_shuffle", "softmax_rows"])
def test_counts_agree_with_the_counters(name):
    entry = library.get(name)
    launch = entry.launch()
    run = simulator.launch(entry.kernel(), launch.grid, launch.block, launch.args, trace=True)
    counters = run.counters
    maps = run.trace.maps.values()
    read = counters.global_load.bytes + counters.global_atomic.bytes
    written = counters.global_store.bytes + counters.global_atomic.bytes
    assert sum(int(m.reads.sum()) * m.size for m in maps) == read
    assert sum(int(m.writes.sum()) * m.size for m in maps) == written


CONSTANTS = """
struct Pair { float scale; short shift, spare; };
__constant__ int taps[3];
__constant__ Pair pairs[4];
__global__ void k(const float *x, float *y) {
    int i = threadIdx.x;
    y[i] = x[i] * taps[i % 3] + pairs[i % 4].scale + pairs[i % 4].shift;
}
"""


@pytest.mark.parametrize("source", [True, False])
def test_constants_are_counted_by_the_elements_of_source_or_accesses(source):
    """A structure is accessed by several types, so that its elements are bytes."""
    kernel = Kernel.from_cuda(CONSTANTS, "k")
    if not source:
        kernel = Kernel.from_ptx(kernel.ptx)
    args = [np.ones(48, np.float32), np.zeros(48, np.float32)]
    run = simulator.launch(kernel, 1, 48, args, trace=True)
    maps = {item.name: item for item in run.trace.maps.values()}
    assert (maps["taps"].size, maps["taps"].reads.tolist()) == (4, [16] * 3)
    assert maps["taps"].dtype == (np.int32 if source else np.uint32)  # PTX loads an int as u32
    assert (maps["pairs"].is_typed, maps["pairs"].size) == (False, 1)
    assert maps["pairs"].reads.tolist() == ([12] * 6 + [0] * 2) * 4


def test_arrival_and_release_of_warps():
    run, _, _, _ = traced(16, 16, "warps")
    events = run.trace.batches[0].events
    watched = run.trace.program.watched
    arrivals = []
    for event in events:
        if event.watched == RELEASE:
            break
        if watched[event.watched].what == "barrier":
            arrivals.append(np.flatnonzero(np.broadcast_to(event.mask, (1, 16, 16, 1))) // 32)
    assert [set(a.tolist()) for a in arrivals] == [{warp} for warp in range(8)]


def test_steps_end_where_memory_does_and_counts_do_not():
    run, _, _, _ = traced(20, 8, trace=Trace(max_bytes=5000))
    (batch,) = run.trace.batches
    assert batch.full
    assert len(batch.events) < 20
    assert run.trace.maps[0].reads.tolist() == [3] * 400


def test_stores_say_where_and_what():
    run, _, _, c = traced(4, 2)
    watched = run.trace.program.watched
    stores = [e for e in run.trace.batches[0].events if watched[e.watched].what == "store"]
    shared, last = stores[:-1], stores[-1]
    assert {int(e.place) for e in shared} == {SHARED}
    assert int(last.place) == 2
    offsets = np.broadcast_to(last.offset, (1, 2, 2, 4)).reshape(-1)
    values = np.broadcast_to(last.values[0], (1, 2, 2, 4)).reshape(-1)
    assert np.array_equal(c.reshape(-1)[offsets // 4], values)


def test_without_a_trace_nothing_is_recorded():
    run, _, _, _ = traced(4, 2, trace=False)
    assert run.trace is None


PTX = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<4>;
ld.param.u64 %d0, [out];
mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 32; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;
BODY
}
"""


@pytest.mark.parametrize(
    ("kind", "ins"),
    [
        ("exit", "@%p exit;"),
        ("barrier", "@%p bar.sync 1, 32;"),
        ("value", "ld.global.u32 %r1, [%d2]; @%p shfl.sync.up.b32 %r1|%p, %r1, 1, 0, -1;"),
    ],
)
def test_a_guard_says_who_leaves_and_who_waits(kind, ins):
    kernel = Kernel.from_ptx(PTX.replace("BODY", f"{ins} st.global.u32 [%d2], %r0; ret;"))
    run = simulator.launch(kernel, 1, 64, [np.zeros(64, np.uint32)], trace=True)
    watched = run.trace.program.watched
    (event,) = (
        event
        for event in run.trace.batches[0].events
        if event.watched != RELEASE
        and watched[event.watched].instruction.guard
        and watched[event.watched].what != "branch"
    )
    assert watched[event.watched].what == kind
    lanes = np.broadcast_to(event.mask, (1, 1, 64, 1)).reshape(64)
    assert lanes.tolist() == [True] * 32 + [False] * 32


def test_passing_a_struct_is_no_step():
    """Its bytes lie in the threads' own memory for a moment, which no source line asked for."""
    add = """\
.func (.param .b32 sum) add(.param .align 4 .b8 pair[8]) { .reg .b32 %a<3>;
ld.param.b32 %a0, [pair]; ld.param.b32 %a1, [pair+4]; add.u32 %a2, %a0, %a1;
st.param.b32 [sum], %a2; ret; }
.visible"""
    body = (
        ".reg .b32 %s; { .param .align 4 .b8 s[8]; .param .b32 r; st.param.b32 [s], %r0;\n"
        "st.param.b32 [s+4], 7; call (r), add, (s); ld.param.b32 %s, [r]; }\n"
        "st.global.u32 [%d2], %s; ret;"
    )
    kernel = Kernel.from_ptx(PTX.replace("BODY", body).replace(".visible", add))
    out = np.zeros(64, np.uint32)
    run = simulator.launch(kernel, 1, 64, [out], trace=True)
    assert out.tolist() == list(range(7, 71))
    accesses = [w.instruction.name for w in run.trace.program.watched if w.site is not None]
    assert accesses == ["st.global.u32"]


@pytest.mark.slow_cases("...f32 f32-16")
@pytest.mark.parametrize(
    ("row", "words", "depth"),
    [
        (mma, "sync aligned m16n8k16 row col f32 f16 f16 f32", 16),
        (mma, "sync aligned m16n8k16 row col f16 f16 f16 f16", 16),
        (mma, "sync aligned m8n8k4 row row f32 f16 f16 f32", 4),
        (mma, "sync aligned m16n8k8 row col f32 tf32 tf32 f32", 8),
        (mma, "sync aligned m16n8k32 row col s32 s8 s8 s32", 16),
        (mma, "sync aligned m8n8k128 row col s32 b1 b1 s32 xor popc", 8),
        (mma, "sync aligned m8n8k4 row col f64 f64 f64 f64", 4),
        (wmma, "mma sync aligned row col m16n16k16 f32 f32", 16),
        (wmma, "mma sync aligned col row m32n8k16 f16 f16", 16),
        (wmma, "mma sync aligned row col m8n32k16 s32 s8 s8 s32", 8),
    ],
)
def test_a_product_comes_of_a_row_a_column_and_a_sum(row, words, depth):
    """Each result of so many registers, or halves of some, of either matrix, and of one sum.

    Of whole numbers a small change is in the low half alone.
    """
    op = row.multiply(Instruction(words.split()[0], tuple(words.split()), (), None, 0, None))
    found = parts(replace(op, fn=functools.partial(op.fn, 90)))
    counts = np.diff(found.starts).reshape(-1, 2, 32)
    whole = "s32" in words
    assert set(counts[:, :1].ravel() if whole else counts.ravel()) == {2 * depth + 1}
    assert set(found.reads & 31) == set(range(32))


ATOMICS = """
__global__ void all(unsigned* u, float* f, unsigned* seen) {
    atomicAdd(&f[0], 0.5f);
    atomicMax(&u[0], threadIdx.x * 3);
    atomicInc(&u[1], 5);
    seen[threadIdx.x] = atomicCAS(&u[2], threadIdx.x, threadIdx.x + 1);
    atomicExch(&u[3], threadIdx.x);
}
"""


def test_a_trace_has_what_atomics_left():
    """Lanes one after the other; the last of them left what is there in the end."""
    u, f, seen = np.zeros(4, np.uint32), np.zeros(1, np.float32), np.zeros(32, np.uint32)
    run = simulator.launch(Kernel.from_cuda(ATOMICS, "all"), 1, 32, [u, f, seen], trace=True)
    watched = run.trace.program.watched
    left = {}
    for event in run.trace.batches[0].events:
        if event.watched != RELEASE and watched[event.watched].what == "atomic":
            operation = watched[event.watched].site.operation
            left[operation, int(event.place)] = np.broadcast_to(
                event.values[-1], (1, 1, 32, 1)
            ).reshape(-1)
    number = np.arange(32)
    assert left["add", 1].view(np.float32).tolist() == ((number + 1) / 2).tolist()
    assert left["max", 0].tolist() == (3 * number).tolist()
    assert left["inc", 0].tolist() == ((number + 1) % 6).tolist()
    assert left["cas", 0].tolist() == (number + 1).tolist()
    assert left["exch", 0].tolist() == number.tolist()
    assert (f[0], u.tolist()) == (16, [93, 2, 32, 31])


def test_a_guard_that_loaded_data_decide_is_no_access():
    """What the guard decided is told apart from what the guarded atomic did."""
    kernel = Kernel.from_ptx(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
        ".reg .b32 %r<4>; .reg .pred %p; .reg .b64 %d; .shared .b32 s[2];\n"
        "ld.param.u64 %d, [p]; ld.global.u32 %r0, [%d]; setp.ne.u32 %p, %r0, 0;\n"
        "@%p atom.shared.add.u32 %r1, [s], 1; ret; }",
        "k",
    )
    run = simulator.launch(kernel, 1, 32, [np.ones(1, np.uint32)], trace=True)
    told = [w.what for w in run.trace.program.watched if w.site and w.site.access == "atomic"]
    assert told == ["atomic"]
