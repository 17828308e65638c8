"""Waits, ends of groups, fences and barriers of asynchronous copies: a lost one is given back.

Each line that is marked is deleted in turn. Whatever error is there then has a cure; written by
``--fix``, it leaves none.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from test_cures import check, launch

import simulator
from kernels import Kernel
from simulator.cures import find_cures
from simulator.cures.remedies import remedies
from simulator.cures.statements import Syntax

pytestmark = pytest.mark.slow


INTRINSICS = """\
#include <cuda_pipeline.h>
__global__ void k(float* out, const float* in, int n) {
    __shared__ __align__(16) float s[2][128];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], in + t, 4);
    __pipeline_commit();
    float sum = 0;
    for (int i = 0; i < n; ++i) {
        if (i + 1 < n)
            __pipeline_memcpy_async(&s[(i + 1) & 1][t], in + 128 * (i + 1) + t, 4);
        __pipeline_commit();  // lost
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += s[i & 1][127 - t];
        __syncthreads();
    }
    out[t] = sum;
}
"""
WRAPPED = """\
__device__ void copy(void* to, const void* from) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
}
template <int N> __device__ void groups_left() {
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}
__device__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__global__ void k(float* out, const float* in, int n) {
    __shared__ __align__(16) float s[128];
    int t = threadIdx.x;
    for (int i = 0; i < n; ++i) {
        if (t < 32) copy(s + 4 * t, in + 128 * i + 4 * t);
        end_group();  // lost
        groups_left<0>();  // lost
        __syncthreads();  // lost
        float sum = s[t] + s[127 - t];
        out[128 * i + t] = sum;
        __syncthreads();  // lost
    }
}
"""
PLAIN = """\
__global__ void k(float* out, const float* in, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(s + t);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(in + t) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");  // lost
    __syncthreads();  // lost
    out[t] = s[127 - t];
}
"""
BULK = """\
__global__ void k(float* out, const float* in, int n) {
    __shared__ __align__(128) float s[128];
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(s);
    for (int i = 0; i < n; ++i) {
        s[t] = 2 * in[128 * i + t];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // lost
        __syncthreads();  // lost
        if (t == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;"
                         :: "l"(out + 128 * i), "r"(at) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  // lost
        }
        __syncthreads();  // lost
    }
}
"""
PRODUCT = """\
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
__device__ void product(float (&d)[4], unsigned a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3},"
        " {%4, %4, %4, %4}, %5, 1, 1, 1, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a), "l"(b) : "memory");
}
__global__ void k(float* out, const float* in, int n) {
    __shared__ __align__(128) unsigned s[64];
    int t = threadIdx.x;
    if (t < 64) s[t] = 0x3C003C00;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // lost
    __syncthreads();  // lost
    auto b = __cvta_generic_to_shared(s) >> 4 & 0x3FFF | 8ull << 16 | 16ull << 32;
    float d[4] = {in[t], 1, 2, 3};
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < 4; ++j) d[j] *= 2;
        FENCE();  // lost
        product(d, 0x3C003C00, b);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");  // lost
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");  // lost
    }
    for (int j = 0; j < 4; ++j) out[128 * j + t] = d[j];
}
"""
UNWAITED = """\
__global__ void k(float* out, const float* in) {
    __shared__ __align__(128) float s[128];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&full);
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" :: "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1], 512, [%2];"
                     :: "r"((unsigned)__cvta_generic_to_shared(s)), "l"(in), "r"(at) : "memory");
    }
    __syncthreads();
    out[t] = s[127 - t];
}
"""
PROGRAMS = {
    "intrinsics": INTRINSICS, "wrapped": WRAPPED, "plain": PLAIN, "bulk": BULK, "product": PRODUCT,
}  # fmt: skip
LOST = [
    (name, number)
    for name, text in PROGRAMS.items()
    for number, line in enumerate(text.splitlines())
    if line.endswith("// lost")
]
OPTIONS = ("--shared", 512, "--arch", "compute_90a")


def without(name: str, lost: int, file: Path) -> list[str]:
    lines = PROGRAMS[name].splitlines()
    file.write_text("\n".join(lines[:lost] + lines[lost + 1 :]) + "\n")
    return lines


@pytest.mark.parametrize(("name", "lost"), LOST, ids=lambda value: str(value))
def test_what_is_lost_is_given_back(name: str, lost: int, tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    words = launch(file, 1, 128, "f32[512]", "f32[512]=arange", 4, *OPTIONS)
    without(name, lost, file)
    told = tmp_path / "told.json"
    assert check(*words, "--fix", "--json", told).exit_code == 0
    errors = [h for h in json.loads(told.read_text())["hazards"] if h["severity"] == "error"]
    assert errors
    assert all("seed 1" in error["cure"]["verified"] for error in errors)
    again = check(*words, "--fail-on", "warning")
    assert again.exit_code == 0, again.stdout


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("missing_wait", "WAIT() after"),
        ("missing_commit", "COMMIT() after"),
        ("stage_reuse", "__syncthreads() after"),
        ("missing_proxy_fence", "fence.proxy.async"),
        ("wrong_phase", "round & 1 for RIGHT ? round : 0 on"),
    ],
)
def test_faulty_copies_are_cured(name: str, cure: str) -> None:
    said = " ".join(check(f"faulty_{name}").stdout.split())
    assert cure in said.partition(" cure ")[2].partition(": verified, 0 errors left")[0]
    assert "lockstep, warps, reverse, seed 1 at size 2 and at size 1" in said


@pytest.mark.parametrize(
    ("line", "wait"),
    [
        ("cg::memcpy_async(all, s, in, n);", "cooperative_groups::wait(all);"),
        ("auto pipe = cuda::make_pipeline();", "pipe.consumer_wait();"),
        ("__pipeline_memcpy_async(s, in, 4);", "__pipeline_wait_prior(0);"),
        ("cuda::memcpy_async(a, s, in,n,b);", 'asm volatile("cp.async.wait_all;" ::: "memory");'),
    ],
)
def test_a_wait_is_written_as_its_library_writes_it(line: str, wait: str, tmp_path: Path) -> None:
    tried = remedies(Syntax({tmp_path: f"__global__ void k() {{ {line} }}".encode()}), "copy")
    assert tried is not None
    waits = [text for text, _ in tried if "commit" not in text]
    assert waits[0] == wait


@pytest.mark.parametrize(
    ("name", "lost", "text"),
    [("plain", 5, "cp.async.wait_all;"), ("bulk", 6, "fence.proxy.async.shared::cta;"),
     ("wrapped", 13, "cp.async.commit_group;"), ("product", 16, "wgmma.fence.sync.aligned;")],
)  # fmt: skip
def test_a_place_in_ptx_alone(name: str, lost: int, text: str, tmp_path: Path) -> None:
    without(name, lost, tmp_path / "my.cu")
    made = Kernel.from_cuda(tmp_path / "my.cu", "k", "compute_90a")
    kernel = Kernel.from_ptx(made.ptx, made.entry)

    def rerun(edited: Kernel) -> simulator.Run:
        arguments = [np.zeros(512, np.float32), np.arange(512, dtype=np.float32), 4]
        return simulator.launch(edited, 1, 128, arguments, shared_bytes=512)

    run = rerun(kernel)
    errors = [hazard for hazard in run.hazards if hazard.severity == "error"]
    assert errors
    assert find_cures(kernel, run, rerun) == len(errors)
    assert {(h.cure.text, h.cure.left) for h in errors if h.cure} == {(text, 0)}


def test_what_no_statement_cures_says_so(tmp_path: Path) -> None:
    """A wait for an mbarrier is of a phase that only the program knows."""
    file = tmp_path / "my.cu"
    file.write_text(UNWAITED)
    said = " ".join(check(*launch(file, 1, 128, "f32[128]", "f32[128]=arange")).stdout.split())
    assert "no cure: which mbarrier to wait for, and until which phase, no text alone tells" in said


TWO_LOST = """\
#define WAIT() asm volatile("cp.async.wait_group 0;" ::: "memory")
template <bool WAITS> __global__ void k(float* out, const float* in, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(s + t);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(in + t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (WAITS) WAIT();
    out[t] = s[127 - t];
}
"""


def test_a_wait_that_only_gives_the_race_another_name_is_no_cure(tmp_path: Path) -> None:
    """In front of the end of its group it waits for nothing; the builds tell of two races."""
    file = tmp_path / "my.cu"
    file.write_text(TWO_LOST)
    _, *words = launch(file, 1, 128, "f32[128]", "f32[128]=arange", 4, *OPTIONS)
    said = " ".join(check(file, "k<false>", *words).stdout.split())
    cures = said.split(" cure ")[1:]
    assert [cure.partition(", ")[0] for cure in cures] == [
        "WAIT(); __syncthreads() after line 8: verified"
    ]
    assert "verified, 0 errors left" in cures[0]
