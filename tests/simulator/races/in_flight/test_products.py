"""Registers of a ``wgmma``: who touches them while it is under way, or with no fence, is told."""

import numpy as np
import pytest

import simulator
from kernels import Kernel
from tests.simulator.isa.wgmma_cases import CASES, Operands, program
from tests.simulator.isa.wgmma_cases import WAIT as WGMMA_WAIT
from tests.support.launches import BUILDS, SCHEDULES

OPCODES = {"wgmma"}
ARCH = "compute_90a"
SOURCE = r"""
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(n) : "memory")
typedef unsigned long long u64;
__device__ void product(float (&d)[4], const unsigned (&a)[4], u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3},"
        " {%4, %5, %6, %7}, %8, 1, 1, 1, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");  // PRODUCT
}
__device__ u64 tile() {
    __shared__ __align__(128) unsigned s[64];
    if (threadIdx.x < 64) s[threadIdx.x] = 0x3C003C00;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    return (u64)(__cvta_generic_to_shared(s) >> 4 & 0x3FFF) | 8ull << 16 | 16ull << 32;
}
extern "C" __global__ void k(float* out, const float* in, int n) {
    u64 b = tile();
    int t = threadIdx.x;
    unsigned a[4] = {0x3C003C00, 0x3C003C00, 0, 0};
    float d[4], e[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; ++i) d[i] = in[t + 128 * i];  // LOAD
    CODE
    for (int i = 0; i < 4; ++i) out[t + 128 * i] = d[i];  // STORE
}
"""
ONE = "FENCE(); product(d, a, b); COMMIT();"
ROTATE = "for (int i = 0; i < 4; ++i) { float f = d[i]; d[i] = e[i]; e[i] = f; }"
SUM = "float sum = 0; for (int i = 0; i < 4; ++i) sum += e[i];"
LOOP = "for (int k = 0; k < n; ++k) {{ {} }}"
RIGHT = {
    "one": f"{ONE} WAIT(0);",
    "chained": "FENCE(); product(d, a, b); product(d, a, b); COMMIT(); product(d, a, b); COMMIT();"
    " WAIT(0);",
    "loop": "FENCE(); " + LOOP.format("product(d, a, b); COMMIT();") + " WAIT(0);",
    "waits at two places": f"{ONE} if (t < 32) WAIT(0); __syncthreads(); if (t >= 32) WAIT(0);",
    "one behind": "FENCE(); " + LOOP.format("product(d, a, b); COMMIT(); WAIT(1);") + " WAIT(0);",
    "touched in between": LOOP.format(
        f"{ONE} WAIT(0); for (int i = 0; i < 4; ++i) d[i] *= 2;"
    ),
    "two in turn": LOOP.format(f"{ONE} WAIT(1); {SUM} out[512 + t] += sum; {ROTATE}")
    + "WAIT(0);",
    "waits if it has to": f"if (n > 1) {{ {ONE} }} e[0] = 3; if (n > 1) WAIT(0);",
    "fenced late": LOOP.format(
        "for (int i = 0; i < 4; ++i) d[i] *= 2;\nFENCE();\nproduct(d, a, b); COMMIT(); WAIT(0);"
    ),
    "moved": f"{ONE} for (int i = 0; i < 4; ++i) asm volatile(\"\" : \"+f\"(d[i])); WAIT(0);",
    "zero": f"if (n) for (int i = 0; i < 4; ++i) d[i] = 0; {ONE} WAIT(0);",
    "A made in flight": LOOP.format(
        f"{ONE} for (int i = 0; i < 4; ++i) a[i] = (a[i] ^ k) & 0x3C003C00; WAIT(0);"
    ),
    "waits for more than can be left": f"{ONE} {'COMMIT(); ' * 7} WAIT(1099511627776);",
    "others of A": "unsigned c[4] = {1, 1, 1, 1};" + LOOP.format(
        f"{ONE} for (int i = 0; i < 4; ++i) c[i] += k; WAIT(0);"
        " for (int i = 0; i < 4; ++i) a[i] = c[i] & 0x3C00;"
    ),
}  # fmt: skip
WRONG = {
    "no wait": (ONE, ("raw-race", "PRODUCT", "STORE", "wgmma.wait_group")),
    "waits for too few": (f"{ONE} WAIT(1);", ("raw-race", "PRODUCT", "STORE", "wgmma.wait_group")),
    "no commit": (
        "FENCE(); product(d, a, b); WAIT(0);",
        ("raw-race", "PRODUCT", "STORE", "wgmma.commit_group"),
    ),
    "too early": (
        f"{ONE} for (int i = 0; i < 4; ++i) e[i] = d[i] * 3; {SUM} WAIT(0); d[0] += sum;",
        ("raw-race", "PRODUCT", "CODE", "wgmma.wait_group"),
    ),
    "no wait in a loop": (
        LOOP.format(f"{ONE} for (int i = 0; i < 4; ++i) d[i] *= 2;") + "WAIT(0);",
        ("raw-race", "PRODUCT", "CODE", "wgmma.wait_group"),
    ),
    "one too far behind": (
        "FENCE(); " + LOOP.format(f"product(d, a, b); COMMIT(); WAIT(2); {SUM} out[512 + t] += sum;"
                                  + ROTATE) + "WAIT(0);",
        ("raw-race", "PRODUCT", "CODE", "wgmma.wait_group"),
    ),
    "waits at times": (
        f"{ONE} if (n == 3) WAIT(0);", ("raw-race", "PRODUCT", "STORE", "wgmma.wait_group")
    ),
    "no fence": (
        "product(d, a, b); COMMIT(); WAIT(0);", ("raw-race", "PRODUCT", "LOAD", "wgmma.fence")
    ),
    "fence too early": (
        "FENCE();\nfor (int i = 0; i < 4; ++i) d[i] *= in[i];  // CODE\n"
        " product(d, a, b); COMMIT(); WAIT(0);",
        ("raw-race", "PRODUCT", "CODE", "wgmma.fence"),
    ),
    "A changed": (
        f"{ONE} WAIT(0); for (int i = 0; i < 4; ++i) a[i] = t * t; product(d, a, b); COMMIT();"
        " WAIT(0);",
        ("raw-race", "PRODUCT", "CODE", "wgmma.fence"),
    ),
    "no fence after a store": (
        "FENCE(); " + LOOP.format("product(d, a, b); COMMIT(); WAIT(0);"
                                  " for (int i = 0; i < 4; ++i) out[512 + t] = d[i];"),
        ("war-race", "PRODUCT", "CODE", "wgmma.fence"),
    ),
    "a warp at a time": (
        LOOP.format(f"if (t / 32 % 2 == k) {{ {ONE} WAIT(0); }} __syncthreads();"),
        ("bad-mask", "PRODUCT", "", "the four warps"),
    ),
    "half of a warpgroup": (
        f"if (t < 64) {{ {ONE} WAIT(0); }}", ("bad-mask", "PRODUCT", "", "the four warps"),
    ),
}  # fmt: skip


def run(code: str, build: str, schedule: str | int, block: int = 128) -> simulator.Run:
    kernel = Kernel.from_cuda(SOURCE.replace("CODE", code), "k", ARCH, build=build)
    out, data = np.zeros(1024, np.float32), np.ones(512, np.float32)
    return simulator.launch(kernel, 1, block, [out, data, 2], schedule=schedule)


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", RIGHT)
def test_what_waits_and_fences_has_no_hazard(name: str, build: str) -> None:
    for schedule in SCHEDULES:
        assert [str(hazard) for hazard in run(RIGHT[name], build, schedule).hazards] == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_forgotten_is_told_with_both_lines(name: str) -> None:
    code, (kind, first, second, advice) = WRONG[name]
    lines = SOURCE.replace("CODE", f"{code}  // CODE").splitlines()
    where = {
        word: {i for i, line in enumerate(lines, 1) if f"// {word}" in line}
        for word in (first, second)
        if word
    }
    for schedule in SCHEDULES:
        hazards = run(f"{code}  // CODE", "device", schedule).hazards
        assert {(hazard.kind, hazard.severity) for hazard in hazards} == {(kind, "error")}
        found = {line for hazard in hazards for line in hazard.lines}
        assert found <= set.union(*where.values())
        assert all(found & places for places in where.values())
        assert all(advice in "".join(hazard.notes) for hazard in hazards)


def test_an_unoptimised_build_checks_what_it_can() -> None:
    for name, kinds in (
        ("no fence", {"raw-race"}), ("half of a warpgroup", {"bad-mask"}), ("no wait", set())
    ):  # fmt: skip
        ran = run(WRONG[name][0], "source", "lockstep")
        assert {hazard.kind for hazard in ran.hazards} == kinds
        assert any("told by the device build" in note for note in ran.notes)


def test_a_block_has_whole_warpgroups() -> None:
    (hazard,) = run(RIGHT["one"], "device", "lockstep", 64).hazards
    assert "not all four warps of a warpgroup" in hazard.message


def test_registers_of_ptx_are_what_they_are() -> None:
    """A compiler may have made A's next fragment early: nobody has, in PTX with no lines."""
    commit, wait = WGMMA_WAIT.split("; ")
    text = program(CASES[0]).ptx
    assert WGMMA_WAIT in text
    for change, kinds in (("add.u32 %a0, %a0, 1;", {"war-race"}), ("mov.u32 %x, %a0;", set())):
        made = text.replace(WGMMA_WAIT, f"{commit}; {change} {wait}")
        run = Operands(CASES[0]).launch(simulator, Kernel.from_ptx(made, "k"))[1]
        assert {hazard.kind for hazard in run.hazards} == kinds
