"""Copies in bulk: what they bring, and what touches their bytes too soon or by another way."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.execute.sync.test_mbarrier import HEAD
from tests.support.launches import ONE_FIRST, SCHEDULES

OPCODES = {"cp", "fence"}
TILES = (
    HEAD
    + r"""
__device__ void bring(void* s, const void* g, int n, u64* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 :: AT(s), "l"(g), "r"(n), AT(b) : "memory");  // BRING
}
__device__ void expect(u64* b, int n) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: AT(b), "r"(n) : "memory");
}
template<int FAULT> __device__ void tiles(float* out, const float* in, int n)
{
    __shared__ __align__(128) float s[2][256], t[256];
    __shared__ u64 full[2], empty[2];
    int i = threadIdx.x;
    if (i < 2) {
        init(&full[i], 1);
        init(&empty[i], 64);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    if (i == 64) {
        for (int k = 0; k < n; ++k) {
            if (FAULT != 1 && k >= 2) while (!parity(&empty[k & 1], (k >> 1 & 1) ^ 1)) { }
            if (FAULT != 5 || k != 1) expect(&full[k & 1], FAULT == 6 ? 1008 : 1024);
            bring(s[k & 1], in + 256 * k, 1024, &full[k & 1]);
        }
    } else if (i < 64) {
        for (int k = 0; k < n; ++k) {
            if (FAULT != 2) while (!parity(&full[k & 1], (k >> 1 & 1) ^ (FAULT == 7))) { }
            for (int j = i; j < 256; j += 64) {
                float sum = k ? t[j] : 0;
                t[j] = sum + s[k & 1][255 - j];  // READ
            }
            arrive(&empty[k & 1]);
        }
    }
    if (FAULT != 3) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (i == 32) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;"
                     " cp.async.bulk.commit_group;" :: "l"(out), AT(t) : "memory");  // SEND
        if (FAULT != 4) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        t[7] = 0;  // LATER
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
#define KERNEL(name, fault) extern "C" __global__ void name(float* o, const float* i, int n) \
    { tiles<fault>(o, i, n); }
extern "C" __global__ void part(float* out, const float* in, int n)
{
    __shared__ __align__(128) float s[256];
    __shared__ u64 full;
    if (threadIdx.x == 0) init(&full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&full, n);
        bring(s, in, n, &full);
    }
    while (!parity(&full, 0)) { }
    out[threadIdx.x] = s[threadIdx.x];
}
KERNEL(good, 0)
KERNEL(stage_reused, 1)
KERNEL(no_wait, 2)
KERNEL(no_proxy_fence, 3)
KERNEL(no_wait_for_group, 4)
KERNEL(bytes_not_expected, 5)
KERNEL(wrong_count, 6)
KERNEL(wrong_phase, 7)
"""
)
BRING, READ, SEND, LATER = (
    next(i for i, line in enumerate(TILES.splitlines(), 1) if f"// {word}" in line)
    for word in ("BRING", "READ", "SEND", "LATER")
)


def run(entry: str, build: str, schedule: str | int) -> tuple[simulator.Run, bool]:
    data = np.random.default_rng(1).integers(-99, 99, (5, 256)).astype(np.float32)
    out = np.zeros(256, np.float32)
    kernel = Kernel.from_cuda(TILES, entry, build=build)
    arguments = [out, data.reshape(-1), 5]
    ran = simulator.launch(kernel, 1, 96, arguments, schedule=schedule, step_limit=9_000)
    return ran, bool((out == data[:, ::-1].sum(axis=0)).all())


@pytest.mark.slow_but("1")
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stages_filled_in_bulk(build: str, schedule: str | int) -> None:
    ran, right = run("good", build, schedule)
    assert right
    assert ran.hazards == []


@pytest.mark.slow_but("wrong_count-kinds6-lines6--reverse")
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("entry", "kinds", "lines", "words"),
    [
        ("stage_reused", {"war-race", "raw-race", "waw-race"}, {BRING, READ}, ""),
        ("no_wait", {"raw-race"}, {BRING, READ}, "a copy in bulk that is under way"),
        ("no_proxy_fence", {"raw-race"}, {READ, SEND}, "fence.proxy.async"),
        ("no_wait_for_group", {"war-race"}, {SEND, LATER}, "a copy in bulk that is under way"),
        ("wrong_phase", {"raw-race", "livelock", "deadlock"}, {BRING, READ}, ""),
        ("bytes_not_expected", {"livelock", "deadlock"}, set(), ""),
        ("wrong_count", {"livelock", "deadlock"}, set(), ""),
    ],
)
def test_what_is_forgotten_is_found(
    entry: str, kinds: set[str], lines: set[int], words: str, build: str, schedule: str | int
) -> None:
    ran, _ = run(entry, build, schedule)
    errors = [h for h in ran.hazards if h.severity == "error" and h.kind in kinds]
    assert errors
    races = [h for h in errors if "race" in h.kind and words in h.message]
    assert races or "livelock" in kinds
    assert all({line for _, line in h.places} <= lines for h in races)


@pytest.mark.slow_but("112")
@pytest.mark.parametrize("build", ONE_FIRST)
@pytest.mark.parametrize("brought", [1024, 1008, 896, 112])
def test_what_no_copy_brings_is_uninitialised(brought: int, build: str) -> None:
    """Of a page, too, of which copies bring the most."""
    kernel = Kernel.from_cuda(TILES, "part", build=build)
    data = np.arange(256, dtype=np.float32)
    out = np.zeros(256, np.float32)
    ran = simulator.launch(kernel, 1, 256, [out, data, brought])
    assert (out == data)[: brought // 4].all()
    told = [h for h in ran.hazards if h.severity != "note"]
    assert [h.kind for h in told] == ["uninitialised"] * (brought < 1024)
    assert [h.count for h in told] == [256 - brought // 4] * (brought < 1024)


PTX = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 bytes)
{
    .reg .pred %p;
    .reg .b32 %t, %s, %n, %v;
    .reg .b64 %o, %i;
    .shared .align 16 .b8 buffer[256];
    mov.u32 %t, %tid.x;
    ld.param.u64 %o, [out];
    ld.param.u64 %i, [in];
    ld.param.u32 %n, [bytes];
    mov.u32 %s, buffer;
    mad.lo.u32 %v, %t, 8, %s;
    .reg .b64 %w;
    mad.wide.u32 %w, %t, 8, %i;
    ld.global.b64 %w, [%w];
    st.shared.b64 [%v], %w;
    fence.proxy.async;
    bar.sync 0;
    setp.eq.u32 %p, %t, 3;
    @!%p bra done;
    COPY
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
done:
    ret;
}
"""


def send(copy: str, out: np.ndarray, data: np.ndarray, size: int = 256) -> simulator.Run:
    kernel = Kernel.from_ptx(PTX.replace("COPY", copy), "k")
    return simulator.launch(kernel, 1, 32, [out, data, size])


RNG = np.random.default_rng(2)


OPERATIONS: dict[str, np.ufunc] = {
    "add.u32": np.add, "add.s32": np.add, "add.u64": np.add, "add.f32": np.add, "add.f64": np.add,
    "and.b32": np.bitwise_and, "or.b64": np.bitwise_or, "xor.b32": np.bitwise_xor,
    "min.s32": np.minimum, "max.u32": np.maximum, "min.u64": np.minimum, "max.s64": np.maximum,
    "add.noftz.f16": np.add, "min.f16": np.minimum, "max.f16": np.maximum,
}  # fmt: skip


@pytest.mark.parametrize(("operation", "meaning"), OPERATIONS.items())
def test_reductions_in_bulk(operation: str, meaning: np.ufunc) -> None:
    kind = operation[-3:].replace("b", "u")
    dtype = np.dtype({"u": "u", "s": "i", "f": "f"}[kind[0]] + str(int(kind[1:]) // 8))
    if dtype.kind == "f":
        out, data = (RNG.normal(size=256 // dtype.itemsize).astype(dtype) for _ in range(2))
    else:
        out, data = (RNG.integers(0, 256, 256, dtype=np.uint8).view(dtype) for _ in range(2))
    expected = meaning(out, data)
    run = send(f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%o], [%s], %n;",
               out, data)  # fmt: skip
    assert run.hazards == []
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("copy", "kind"),
    [
        ("[%o], [%s], 256", None),
        ("[%o+16], [%s+32], 64", None),
        ("[%o], [%s], 0", None),
        ("[%o+8], [%s], 64", "misaligned"),
        ("[%o], [%s+4], 64", "misaligned"),
        ("[%o], [%s], 72", "misaligned"),
        ("[%o+64], [%s], 208", "out-of-bounds"),
        ("[%o], [%s+64], 208", "out-of-bounds"),
        ("[%i], [%s], 16", "read-only"),
    ],
)
def test_where_a_copy_in_bulk_may_be(copy: str, kind: str | None) -> None:
    data = RNG.integers(0, 256, 256, dtype=np.uint8)
    data.flags.writeable = False
    out = np.zeros(256, np.uint8)
    *places, bytes_ = copy.split(", ")  # of a constant the compiler knows what it must not be
    register = f"cp.async.bulk.global.shared::cta.bulk_group {', '.join(places)}, %n;"
    run = send(register, out, data, int(bytes_))
    assert [hazard.kind for hazard in run.hazards] == [kind] * (kind is not None)
    into, start, count = (int(n.strip("[%ois]") or 0) for n in copy.split(", "))
    if kind is None:
        np.testing.assert_array_equal(out[into : into + count], data[start : start + count])
        assert not out[:into].any()
        assert not out[into + count :].any()
    elif kind == "misaligned":
        assert not out.any()


def test_a_prefetch_has_no_effect() -> None:
    out, data = np.zeros(256, np.uint8), np.ones(256, np.uint8)
    assert send("cp.async.bulk.prefetch.L2.global [%i], %n;", out, data).hazards == []
    assert not out.any()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("fence", "races"),
    [
        ("fence.proxy.async; bar.sync 0;", False),
        ("bar.sync 0; fence.proxy.async;", False),
        ("bar.sync 0; setp.eq.u32 %p, %t, 3; @%p fence.proxy.async;", False),
        ("bar.sync 0; setp.eq.u32 %p, %t, 2; @%p fence.proxy.async;", True),
        ("fence.proxy.async.global; bar.sync 0;", True),
        ("bar.sync 0;", True),
    ],
)
def test_who_may_execute_the_fence(fence: str, races: bool, schedule: str | int) -> None:
    text = PTX.replace("fence.proxy.async;\n    bar.sync 0;", fence)
    text = text.replace("COPY", "cp.async.bulk.global.shared::cta.bulk_group [%o], [%s], %n;")
    out, data = np.zeros(256, np.uint8), np.ones(256, np.uint8)
    kernel = Kernel.from_ptx(text, "k")
    run = simulator.launch(kernel, 1, 32, [out, data, 256], schedule=schedule)
    assert ["fence.proxy.async" in hazard.message for hazard in run.hazards] == [True] * races
