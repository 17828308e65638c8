"""Asynchronous copies: what they bring, and what touches their bytes before they are there."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.support.launches import SCHEDULES, compiled

OPCODES = {"cp"}
BUILDS = ("device", "source")
PAIRS = [
    *(("device", s) for s in ("lockstep", "warps", "reverse", 3)),
    pytest.param("source", "lockstep", marks=pytest.mark.slow),
    pytest.param("source", 3, marks=pytest.mark.slow),
]
PIPELINE = """
#include <cuda_pipeline.h>
template<int FAULT> __device__ void tiles(float* out, const float* in, int n)
{
    __shared__ __align__(16) float s[2][128];
    int t = threadIdx.x;
    if (t < 32) __pipeline_memcpy_async(&s[0][4 * t], in + 4 * t, 16);                      // 7
    __pipeline_commit();
    float sum = 0;
    for (int i = 0; i < n / 128; ++i) {
        if (i + 1 < n / 128 && t < 32)
            __pipeline_memcpy_async(&s[(i + 1) & 1][4 * t], in + 128 * (i + 1) + 4 * t, 16);  // 12
        if (FAULT != 5) __pipeline_commit();
        if (FAULT != 1) __pipeline_wait_prior(FAULT == 2 ? 2 : 1);
        if (FAULT != 3) __syncthreads();
        sum += s[i & 1][127 - t] * (i + 1);                                                  // 16
        if (FAULT != 4) __syncthreads();
    }
    out[t] = sum;
}
#define KERNEL(name, fault) extern "C" __global__ void name(float* o, const float* i, int n) \\
    { tiles<fault>(o, i, n); }
KERNEL(good, 0)
KERNEL(no_wait, 1)
KERNEL(wait_for_too_few, 2)
KERNEL(no_barrier, 3)
KERNEL(refilled_too_soon, 4)
KERNEL(no_commit, 5)
"""
UNDER_WAY = "an asynchronous copy that is under way"


def run(source: str, entry: str, build: str, *args: object, **options: object) -> simulator.Run:
    kernel = Kernel.from_cuda(source, entry, build=build)
    return simulator.launch(kernel, 2, 128, args, **options)  # type: ignore[arg-type]


@pytest.mark.slow_but("no_barrier-lines4-another warp")
@pytest.mark.parametrize(("build", "schedule"), PAIRS)
@pytest.mark.parametrize(
    ("entry", "lines", "words"),
    [
        ("good", None, ""),
        ("no_wait", {7, 12, 16}, UNDER_WAY),
        ("wait_for_too_few", {7, 12, 16}, UNDER_WAY),
        ("no_commit", {7, 12, 16}, UNDER_WAY),
        ("no_barrier", {7, 12, 16}, "another warp"),
        ("refilled_too_soon", {12, 16}, "another warp"),
    ],
)
def test_stages_of_a_pipeline(
    entry: str, lines: set[int] | None, words: str, build: str, schedule: str | int
) -> None:
    data = np.random.default_rng(1).integers(-99, 99, 512).astype(np.float32)
    out = np.zeros(128, np.float32)
    kernel = Kernel.from_ptx(compiled(PIPELINE, "good", build).ptx, entry)  # all compiled once
    ran = simulator.launch(kernel, 2, 128, [out, data, 512], schedule=schedule)
    errors = [hazard for hazard in ran.hazards if hazard.severity == "error"]
    if lines is None:
        assert errors == []
        expected = np.zeros(128, np.float32)
        for i, tile in enumerate(data.reshape(4, 128).astype(np.float64)):
            expected = (tile[::-1] * (i + 1) + expected).astype(np.float32)
        np.testing.assert_array_equal(out, expected)
        return
    race = next(h for h in errors if h.kind in ("raw-race", "war-race"))
    assert words in race.message
    assert {line for _, line in race.places} <= lines
    assert 16 in {line for _, line in race.places}
    assert race.variable == "s"


PTX = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 bytes)
{
    .reg .pred %p;
    .reg .b32 %t, %s, %n, %v;
    .reg .b64 %o, %i, %a;
    .shared .align 16 .b8 buffer[2048];
    mov.u32 %t, %tid.x;
    ld.param.u64 %o, [out];
    ld.param.u64 %i, [in];
    ld.param.u32 %n, [bytes];
    mul.lo.u32 %s, %t, 16;
    mov.u32 %v, buffer;
    add.u32 %s, %s, %v;
    mov.u32 %v, 0x01020304;
    st.shared.v4.u32 [%s], {%v, %v, %v, %v};
    setp.eq.u32 %p, %t, 2;
    mad.wide.u32 %a, %t, 16, %i;
    COPY
    cp.async.commit_group;
    cp.async.wait_group 0;
    .reg .b32 %w<4>;
    ld.shared.v4.u32 {%w0, %w1, %w2, %w3}, [%s];
    mad.wide.u32 %a, %t, 16, %o;
    st.global.v4.u32 [%a], {%w0, %w1, %w2, %w3};
    ret;
}
"""


@pytest.mark.parametrize(
    ("copy", "size", "taken"),
    [
        ("cp.async.ca.shared.global [%s], [%a], 4;", 4, [4] * 4),
        ("cp.async.ca.shared.global [%s], [%a], 8;", 8, [8] * 4),
        ("cp.async.cg.shared.global.L2::128B [%s], [%a], 16;", 16, [16] * 4),
        ("cp.async.ca.shared::cta.global [%s], [%a], 16, %n;", 16, [5] * 4),
        ("cp.async.ca.shared.global [%s], [%a], 16, 0;", 16, [0] * 4),
        ("cp.async.ca.shared.global [%s], [%a], 8, %t;", 8, [0, 1, 2, 3]),
        ("cp.async.ca.shared.global [%s], [%a], 16, %p;", 16, [16, 16, 0, 16]),
        ("@%p cp.async.ca.shared.global [%s], [%a], 16, %n;", 16, [None, None, 5, None]),
    ],
)
def test_what_is_not_copied_is_zero(copy: str, size: int, taken: list[int | None]) -> None:
    data = np.random.default_rng(2).integers(0, 256, 64, dtype=np.uint8)
    out = np.zeros(64, np.uint8)
    text = PTX.replace("COPY", copy)
    run = simulator.launch(Kernel.from_ptx(text, "k"), 1, 4, [out, data, 5])
    assert run.hazards == []
    expected = np.tile(np.array([4, 3, 2, 1], np.uint8), 16).reshape(4, 16)
    for lane, bytes_ in enumerate(taken):
        if bytes_ is not None:
            expected[lane, :size] = 0
            expected[lane, :bytes_] = data[16 * lane : 16 * lane + bytes_]
    np.testing.assert_array_equal(out.reshape(4, 16), expected)


def test_only_the_bytes_that_are_copied_are_read() -> None:
    text = PTX.replace("COPY", "cp.async.ca.shared.global [%s], [%a], 16, %n;")
    out = np.zeros(64, np.uint8)
    within, beyond = (
        simulator.launch(Kernel.from_ptx(text, "k"), 1, 4, [out, np.ones(53, np.uint8), n])
        for n in (5, 6)
    )
    assert within.hazards == []
    (hazard,) = beyond.hazards
    assert (hazard.kind, hazard.element, hazard.count) == ("out-of-bounds", 53, 1)


def test_a_copy_counts_as_the_load_and_the_store_that_it_is() -> None:
    text = PTX.replace("COPY", "cp.async.cg.shared.global [%s], [%a], 16;")
    out, data = np.zeros(512, np.uint8), np.ones(512, np.uint8)
    counters = simulator.launch(Kernel.from_ptx(text, "k"), 1, 32, [out, data, 0]).counters
    load, store = counters.global_load, counters.shared_store
    assert (load.requests, load.sectors, load.bytes) == (1, 16, 512)
    assert (store.requests, store.wavefronts, store.bytes) == (2, 8, 1024)  # one is the fill's


BEFORE = "ld.shared.u32 %v, [%s]; st.global.u32 [%o], %v;"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("", "", set()),
        (BEFORE, "", {"raw-race"}),
        ("st.shared.u32 [%s], %t;", "", {"waw-race"}),
        ("st.shared.u32 [%s+512], %t;", "", set()),
        ("bar.sync 0;", BEFORE, set()),
        ("cp.async.ca.shared.global [%s], [%a], 4;", "", {"waw-race"}),
    ],
)
@pytest.mark.parametrize(
    "wait",
    [
        "cp.async.wait_all;",
        "cp.async.commit_group; cp.async.wait_group 0;",
        f"cp.async.commit_group; cp.async.wait_group {2**40};",  # 32 bits of it
        "cp.async.commit_group; " * 64 + "cp.async.wait_group -1;",  # no more than 63 are left
    ],
)
def test_the_thread_itself_waits_for_its_copies(
    before: str, after: str, found: set[str], wait: str
) -> None:
    copy = f"cp.async.cg.shared.global [%s], [%a], 16; {before} {wait} {after}"
    out, data = np.zeros(64, np.uint8), np.ones(64, np.uint8)
    run = simulator.launch(Kernel.from_ptx(PTX.replace("COPY", copy), "k"), 1, 4, [out, data, 0])
    errors = {h.kind for h in run.hazards if UNDER_WAY in h.message}
    assert errors == found


COPY, ENDS, LANE, OTHER = (
    "cp.async.ca.shared.global [%m], [%a], 4;", "cp.async.wait_all;",
    "xor.b32 %w, %t, 1; mad.lo.u32 %w, %w, 4, %s;", "xor.b32 %w, %t, 32; mad.lo.u32 %w, %w, 4, %s;",
)  # fmt: skip
READS, WRITES, MEETS = "ld.shared.u32 %v, [%w];", "st.shared.u32 [%w], %t;", "bar.sync 0;"
COPIES_THERE = "cp.async.ca.shared.global [%w], [%a], 4;"
ONE_PLACE = "cp.async.ca.shared.global [%s], [%a], 4;"
SOMEONE_WAITS = "setp.ne.u32 %p, %t, 9;\n@%p bra past;\ncp.async.wait_group 1;\npast:"
ARRIVES = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"
SEES = "sees:\nmbarrier.try_wait.parity.shared.b64 %p, [bar], 0;\n@!%p bra sees;"
RAW, WAW, NEAR = ("raw-race", "error"), ("waw-race", "error"), ("raw-race", "warning")


def launch_steps(steps: tuple[str, ...], schedule: str | int) -> simulator.Run:
    text = "\n".join(steps)
    kernel = Kernel.from_ptx(f"""
        .version 9.0
        .target sm_90
        .visible .entry k(.param .u64 in) {{
        .reg .b64 %a; .reg .b32 %t, %s, %m, %v, %w; .reg .pred %p;
        .shared .align 16 .b32 place[64]; .shared .b64 bar;
        ld.param.u64 %a, [in]; mov.u32 %t, %tid.x; mov.u32 %s, place; mad.lo.u32 %m, %t, 4, %s;
        mad.wide.u32 %a, %t, 4, %a;
        setp.ne.u32 %p, %t, 0;
        @!%p mbarrier.init.shared.b64 [bar], 64;
        bar.sync 0;
        {text}
        ret; }}""")
    data = np.arange(64, dtype=np.int32)
    return simulator.launch(kernel, 1, 64, [data], schedule=schedule, checks={"races"})


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((LANE, COPY, READS, ENDS), ("raw-race", "error", "copy")),
        ((LANE, COPY, WRITES, ENDS), ("waw-race", "error", "copy")),
        ((LANE, COPY, COPIES_THERE, ENDS), ("waw-race", "error", "copy")),
        ((LANE, COPY, MEETS, READS, ENDS), ("raw-race", "error", "copy")),
        ((LANE, COPY, ENDS, READS), ("raw-race", "warning", "in step")),
        ((LANE, COPY, MEETS, ENDS, READS), ("raw-race", "warning", "in step")),
        ((LANE, COPY, ENDS, MEETS, READS), None),
        ((OTHER, COPY, READS, ENDS), ("raw-race", "error", "copy")),
        ((OTHER, COPY, MEETS, READS, ENDS), ("raw-race", "error", "copy")),
        ((OTHER, COPY, MEETS, READS, MEETS, ENDS), ("raw-race", "error", "copy")),
        ((OTHER, COPY, MEETS, READS), ("raw-race", "error", "copy")),
        ((OTHER, COPY, MEETS, WRITES, MEETS, ENDS), ("waw-race", "error", "copy")),
        ((OTHER, COPY, ENDS, READS), ("raw-race", "error", "")),
        ((OTHER, COPY, MEETS, ENDS, READS), ("raw-race", "error", "")),
        ((OTHER, COPY, MEETS, ENDS, WRITES), ("waw-race", "error", "")),
        ((OTHER, COPY, ENDS, MEETS, READS), None),
        ((OTHER, READS, COPY, ENDS), ("war-race", "error", "")),
        ((OTHER, READS, MEETS, COPY, ENDS), None),
        ((LANE, COPY, ARRIVES, ENDS, READS), ("raw-race", "warning", "in step")),
        ((LANE, COPY, ARRIVES, MEETS, ENDS, READS), ("raw-race", "warning", "in step")),
        ((LANE, COPY, ARRIVES, ENDS, SEES, READS), None),
        ((LANE, COPY, ARRIVES, SEES, ENDS, READS), None),
        ((OTHER, COPY, ARRIVES, ENDS, READS), ("raw-race", "error", "")),
        ((OTHER, COPY, ARRIVES, MEETS, READS, ENDS), ("raw-race", "error", "copy")),
        ((OTHER, COPY, ARRIVES, ENDS, MEETS, READS), None),
        ((OTHER, COPY, ARRIVES, ENDS, SEES, READS), None),
        ((OTHER, COPY, ARRIVES, SEES, ENDS, WRITES), None),
    ],
)
def test_one_hazard_under_every_schedule(
    steps: tuple[str, ...], told: tuple[str, str, str] | None, schedule: str | int
) -> None:
    """Who touches what another thread brings is told once, and of what is missing."""
    run = launch_steps(steps, schedule)
    found = [(h.kind, h.severity, h.case) for h in run.hazards]
    assert found == ([told] if told else [])
    assert all(h.count == 32 for h in run.hazards)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((ONE_PLACE, SOMEONE_WAITS, "ld.shared.u32 %v, [%s];"), {WAW, RAW}),
        ((ONE_PLACE, SOMEONE_WAITS, "st.shared.u32 [%s], %t;"), {WAW}),
        ((ONE_PLACE, "ld.shared.u32 %v, [%s];", ENDS), {WAW, RAW}),
        ((ONE_PLACE, ENDS, MEETS, "ld.shared.u32 %v, [%s];"), {WAW}),
        ((ONE_PLACE, ARRIVES, SEES, "ld.shared.u32 %v, [%s];"), {WAW}),
        ((ONE_PLACE, ARRIVES, ENDS, SEES, "ld.shared.u32 %v, [%s];"), {WAW}),
        ((ONE_PLACE, ENDS, ARRIVES, SEES, "ld.shared.u32 %v, [%s];"), {WAW}),
        ((ONE_PLACE, ARRIVES, ENDS, "ld.shared.u32 %v, [%s];"), {WAW, RAW, NEAR}),
        ((OTHER, COPY, ARRIVES, MEETS, ENDS, READS), {RAW}),
        ((OTHER, COPY, ARRIVES, MEETS, ENDS, WRITES), {WAW}),
    ],
)
def test_copies_of_many_threads_to_one_place(
    steps: tuple[str, ...], told: set[tuple[str, str]], schedule: str | int
) -> None:
    """Each of them is looked at, and is done once, whichever way somebody waits for it."""
    run = launch_steps(steps, schedule)
    assert {(h.kind, h.severity) for h in run.hazards} == told
