"""Read-only loads of what the launch writes, and bytes that two restricted pointers reach."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, Pointer, Texture
from kernels.source.restrict_pointers import restricted
from simulator import Hazard
from tests.simulator.observe.test_merge import run as in_parts
from tests.support.launches import compiled

KIND = "read-only-path"
BUILDS = ("device", "source")
SOURCE = """
#define K(name) extern "C" __global__ void name
#define RESTRICT __restrict__
typedef const int* RESTRICT reading;
using writing = int* __restrict;
#define T threadIdx.x
struct Both { const int* __restrict__ from; int* RESTRICT to; int n; };
struct Plain { const int* from; int* __restrict__ to; };
__device__ int table[64];
__device__ int through(const int* p, int i) { return __ldg(p + i); }
__device__ void put(int* p, int v) { *p = v; }

K(behind_barrier)(int* x, int* out) { x[T] = T; __syncthreads(); out[T] = __ldg(x + (T ^ 32)); }
K(behind_fence)(int* x, int* out) { x[T] = T; __threadfence(); out[T] = __ldg(x + T); }
K(before_write)(int* x, int* out) { out[T] = __ldg(x + T); x[T] = 1; }
K(called)(int* x, int* out) { put(x + T, 3); __syncthreads(); out[T] = through(x, T ^ 1); }
K(added)(int* x, int* out) { atomicAdd(x + T, 2); __syncthreads(); out[T] = __ldg(x + (T ^ 1)); }
K(wide)(int* x, int* out) {
    x[T] = T; __syncthreads();
    if (T < 16) { int4 v = __ldg((const int4*)x + T); out[T] = v.x + v.w; }
}
K(of_module)(int* x, int* out) { table[T] = T; __syncthreads(); out[T] = __ldg(table + (T ^ 1)); }
K(two_lines)(int* x, int* out) {
    x[T] = T; __syncthreads();
    out[T] = __ldg(x + (T ^ 1));
    out[T] += __ldg(x + (T ^ 2));
}

K(plain)(int* x, int* out) { x[T] = T; __syncthreads(); out[T] = x[T ^ 32]; }
K(other_array)(int* x, int* out) { out[T] = __ldg(x + T); }
K(other_half)(int* x, int* out) { x[T] = T; out[T] = __ldg(x + 64 + T); }
K(swap_in_vain)(int* x, int* out) { out[T] = __ldg(x + T) + atomicCAS(x + T, 5, 5); }
K(adds_zero)(int* x, int* out) { out[T] = __ldg(x + T) + atomicAdd(x + T, 0); }
K(strong)(int* x, int* out) {
    x[T] = T; __syncthreads();
    out[T] = *(volatile int*)(x + (T ^ 32)) + __ldcg(x + T);
}

K(alias)(const int* __restrict__ x, int* __restrict__ y) { y[T] = x[T] + 1; y[T] += x[T]; }
K(by_macro)(const int* RESTRICT x, int* RESTRICT y) { y[T] = x[T] + 1; y[T] += x[T]; }
K(by_typedef)(reading x, writing y) { y[T] = x[T] + 1; y[T] += x[T]; }
K(both_write)(int* __restrict__ x, int* __restrict__ y) { x[T] = 1; y[T] = 2; }
K(sums)(int* __restrict__ x, int* __restrict__ y) { atomicAdd(y + T, x[T]); }
K(walks)(const int* __restrict__ x, int* __restrict__ y) {
    for (int i = 0; i < 2; ++i, x += 32, y += 32) if (T < 32) y[T] = x[T] * 2;
}
K(ends_with_null)(const int* __restrict__ x, int* __restrict__ y) {
    for (const int* p = x + T; p; p = nullptr) y[T] = *p + 1;
}
K(hands_on)(const int* __restrict__ x, int* __restrict__ y) { put(y + T, through(x, T)); }
K(distance)(const int* __restrict__ x, int* __restrict__ y) {
    for (const int* p = x + T, *end = x + 64; p < end; p += 64) y[p - x] = *p + 1;
}
K(either)(const int* __restrict__ x, int* __restrict__ y, const int* z) {
    const int* p = T & 1 ? x : z;
    y[T] = p[T];
}
K(reads)(const int* __restrict__ x, const int* __restrict__ y, int* out) { out[T] = x[T] + y[T]; }
K(one)(const int* __restrict__ x, int* y) { y[T] = x[T] + 1; }
K(of_pointers)(const int* const* x, int* __restrict__ y) { y[T] = 1; }
K(members)(Both s) { s.to[T] = s.from[T] + 1; }
K(one_member)(Plain s) { s.to[T] = s.from[T] + 1; }
"""
GRID = """
#include <cooperative_groups.h>
extern "C" __global__ void grid(int* x, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = i;
    cooperative_groups::this_grid().sync();
    out[i] = __ldg(x + (i + 32) % 64);
}
"""
ROWS = (
    ("behind_barrier", 64, 64), ("behind_fence", 64, 64), ("before_write", 64, 64),
    ("called", 64, 64), ("added", 64, 64), ("wide", 64, 64), ("two_lines", 64, 64),
)  # fmt: skip
CLEAN = ("plain", "other_array", "other_half", "swap_in_vain", "adds_zero", "strong")
ALIASES = (
    "alias",
    "by_macro",
    "by_typedef",
    "both_write",
    "sums",
    "walks",
    "hands_on",
    "ends_with_null",
)


def kernel(name: str, build: str = "device") -> Kernel:
    return compiled(SOURCE, name, build)


def found(made: Kernel, args: list[Any], **how: Any) -> list[Hazard]:
    shape = {"grid": 1, "block": 64} | how
    run = simulator.launch(made, shape.pop("grid"), shape.pop("block"), args, **shape)
    return run.hazards


def pointers(hazard: Hazard) -> list[str]:
    """The two that a title names."""
    return re.findall(r"`([\w.]+)` \(", hazard.message)


def lines_of_roles(hazard: Hazard) -> list[tuple[str, str]]:
    return [(str(part.source.line), part.role) for part in hazard.involved]


def roles(hazard: Hazard) -> set[str]:
    return {part.role for part in hazard.involved}


@pytest.mark.parametrize("schedule", ["lockstep", "warps", "reverse", 3])
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("name", "size", "elements"), ROWS)
def test_reads_what_is_written(
    name: str, size: int, elements: int, build: str, schedule: str | int
) -> None:
    x, out = np.zeros(size, np.int32), np.zeros(64, np.int32)
    (hazard,) = found(kernel(name, build), [x, out], schedule=schedule)
    assert (hazard.kind, hazard.severity, hazard.variable) == (KIND, "error", "x")
    assert (hazard.locations, hazard.case, hazard.element) == (elements, "cache", 0)
    assert roles(hazard) == {"read", "atomic" if name == "added" else "write"}
    lines = SOURCE.splitlines()
    codes = {part.role: lines[part.source.line - 1] for part in hazard.involved}
    assert "__ldg" in codes["read"]
    assert len(hazard.involved) == (3 if name == "two_lines" else 2)
    reads = [line for line, role in lines_of_roles(hazard) if role == "read"]
    assert f"read-only cache (line{'s' * (len(reads) > 1)} {' and '.join(reads)})" in hazard.message
    assert all(part.thread and part.block == (0, 0, 0) for part in hazard.involved)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", CLEAN)
def test_reads_what_nothing_writes(name: str, build: str) -> None:
    assert not found(kernel(name, build), [np.zeros(128, np.int32), np.zeros(64, np.int32)])


@pytest.mark.parametrize("build", BUILDS)
def test_variable_of_the_module(build: str) -> None:
    args = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    (hazard,) = found(kernel("of_module", build), args)
    assert (hazard.kind, hazard.variable, hazard.locations) == (KIND, "table", 64)


@pytest.mark.parametrize("build", BUILDS)
def test_barrier_of_the_grid(build: str) -> None:
    args = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    (hazard,) = found(compiled(GRID, "grid", build), args, grid=2, block=32, cooperative=True)
    assert (hazard.kind, hazard.locations) == (KIND, 64)
    assert [part.block for part in hazard.involved] == [(1, 0, 0), (0, 0, 0)]


def test_race_and_read_only_load_are_two_findings() -> None:
    source = "__global__ void k(int* x, int* o) { x[threadIdx.x] = 1; o[0] = __ldg(x + 63); }"
    args = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    assert {h.kind for h in found(compiled(source), args)} >= {KIND, "raw-race"}


def test_another_launch_may_write() -> None:
    x, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
    assert not found(kernel("other_array"), [out, x])
    assert not found(kernel("other_array"), [x, out])


@pytest.mark.parametrize("offset", [0, 16, 63, 64])
def test_views_of_one_array(offset: int) -> None:
    """Their bytes count, not the array."""
    whole = np.zeros(128, np.int32)
    hazards = found(kernel("other_array"), [whole[:64], Pointer(whole, offset)])
    assert [(h.kind, h.locations) for h in hazards if h.kind == KIND] == (
        [(KIND, 64 - offset)] if offset < 64 else []
    )


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", ALIASES)
def test_two_restricted_pointers(name: str, build: str) -> None:
    x = np.ones(64, np.int32)
    (hazard,) = found(kernel(name, build), [x, x])
    assert (hazard.kind, hazard.severity, hazard.case) == (KIND, "error", "aliased")
    assert pointers(hazard) == ["x", "y"]
    assert (hazard.variable, hazard.element, hazard.locations) == ("x", 0, 64)
    assert "atomic" in roles(hazard) or "write" in roles(hazard)


@pytest.mark.parametrize("build", BUILDS)
def test_overlap_alone_is_legal(build: str) -> None:
    x, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
    assert not found(kernel("reads", build), [x, x, out])
    assert not found(kernel("alias", build), [x, out])
    assert not found(kernel("alias", build), [np.zeros(128, np.int32)[:64], out])
    whole = np.zeros(128, np.int32)
    assert not found(kernel("alias", build), [whole[:64], whole[64:]])
    some = found(kernel("alias", build), [whole[:64], Pointer(whole, 63)])
    (hazard,) = [hazard for hazard in some if hazard.kind == KIND]
    assert (hazard.case, hazard.element, hazard.locations) == ("aliased", 63, 1)


@pytest.mark.parametrize("build", BUILDS)
def test_a_pointer_that_may_be_either_of_two(build: str) -> None:
    """Which one it is, the array tells."""
    x, z = np.zeros(64, np.int32), np.zeros(64, np.int32)
    (hazard,) = found(kernel("either", build), [x, x, z])
    assert (hazard.case, hazard.element, hazard.locations) == ("aliased", 1, 32)
    assert pointers(hazard) == ["x", "y"]
    assert not found(kernel("either", "source"), [x, z, z])


def test_a_header_defines_the_word(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#define NO_ALIAS __restrict__\n")
    file = tmp_path / "own.cu"
    file.write_text("""#include "own.h"
        __global__ void k(const float* NO_ALIAS from, float *NO_ALIAS to, int PLAIN, int n)
        { to[threadIdx.x] = from[threadIdx.x] * PLAIN + n; }""")
    made = compiled(file, build="source")
    assert made.labels() == ["from", "to", "PLAIN", "n"]
    x = np.zeros(64, np.float32)
    (hazard,) = found(made, [x, x, 1, 2])
    assert pointers(hazard) == ["from", "to"]


def test_one_restricted_pointer_promises_nothing() -> None:
    """But the device build's load is read-only, which is an error by itself."""
    x = np.zeros(64, np.int32)
    assert not found(kernel("one", "source"), [x, x])
    (hazard,) = found(kernel("one"), [x, x])
    assert (hazard.kind, hazard.case) == (KIND, "cache")
    assert not found(kernel("of_pointers", "source"), [[x], x])


@pytest.mark.parametrize("build", BUILDS)
def test_members_of_a_structure(build: str) -> None:
    x, y = np.zeros(64, np.int32), np.zeros(64, np.int32)
    (hazard,) = found(kernel("members", build), [(x, x, 64)])
    assert hazard.case == "aliased"
    assert pointers(hazard) == ["s.from", "s.to"]
    assert not found(kernel("members", build), [(x, y, 64)])
    assert not found(kernel("one_member", build), [(x, x)])


def test_what_is_restricted() -> None:
    def names(name: str) -> list[str]:
        return [one.name for one in restricted(kernel(name))]

    for name in ("alias", "by_macro", "by_typedef"):
        assert names(name) == ["x", "y"]
    assert names("of_pointers") == ["y"]
    assert names("members") == ["s.from", "s.to"]
    assert names("one_member") == ["s.to"]
    assert restricted(Kernel.from_ptx(kernel("alias").ptx, "alias")) == ()


def test_template_and_overload() -> None:
    source = """
        template <class T> __global__ void k(const T* __restrict__ x, T* __restrict__ y)
        { y[threadIdx.x] = x[threadIdx.x] + 1; }
        __global__ void o(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
        __global__ void o(const int* __restrict__ x, int* __restrict__ y)
        { y[threadIdx.x] = x[threadIdx.x] + 1; }
    """
    for name, dtype in (("k<float>", np.float32), ("o(const int*, int*)", np.int32)):
        x = np.zeros(64, dtype)
        (hazard,) = found(compiled(source, name, "source"), [x, x])
        assert hazard.case == "aliased"
    x = np.zeros(64, np.float32)
    assert not found(compiled(source, "o(const float*, float*)", "source"), [x, x])


def test_ptx_alone() -> None:
    """It has no qualifier, but its read-only loads are what they are."""
    x = np.zeros(64, np.int32)
    (hazard,) = found(Kernel.from_ptx(kernel("alias").ptx, "alias"), [x, x])
    assert (hazard.kind, hazard.case) == (KIND, "cache")
    assert not found(Kernel.from_ptx(kernel("alias", "source").ptx, "alias"), [x, x])


@pytest.mark.parametrize(("start", "elements"), [(0, 32), (20, 12), (32, 0)])
def test_copy_in_bulk_of_what_is_read(start: int, elements: int) -> None:
    source = """__global__ void k(int* x, int* out, int start) {
        __shared__ __align__(16) int s[32];
        s[threadIdx.x] = threadIdx.x;
        asm volatile("fence.proxy.async;");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                :: "l"(x), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
            asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        out[threadIdx.x] = __ldg(x + start + threadIdx.x);
    }"""
    args = [np.zeros(64, np.int32), np.zeros(32, np.int32), start]
    hazards = found(compiled(source), args, block=32)
    assert [(h.kind, h.locations) for h in hazards] == [(KIND, elements)] * bool(elements)


def test_texture_of_what_is_written() -> None:
    source = """
        __global__ void k(cudaTextureObject_t t, float* x, float* out) {
            x[threadIdx.x] = 1;
            __syncthreads();
            out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
        }
    """
    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    made = compiled(source)
    (hazard,) = found(made, [Texture(x, linear=True), x, out])
    assert (hazard.kind, hazard.case, hazard.locations) == (KIND, "picture", 64)
    assert not found(made, [Texture(x, linear=True), out, np.zeros(64, np.float32)])


@pytest.mark.parametrize("name", ["behind_fence", "alias", "other_array"])
def test_observers_of_shares_merge(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from simulator.execute import batches

    monkeypatch.setattr(batches, "LANES", 1)
    source = SOURCE.replace("#define T threadIdx.x", "#define T (blockIdx.x * 64 + threadIdx.x)")
    made = compiled(source, name)

    def one(parts: int) -> Any:
        x, out = np.zeros(256, np.int32), np.zeros(256, np.int32)
        args = [x, x] if name == "alias" else [x, out]
        return in_parts(made, 4, 64, args, parts).to_dict() | {"seconds": 0}

    assert one(3) == one(1)
    assert bool(one(3)["hazards"]) == (name != "other_array")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["behind_fence", "alias", "other_array"])
def test_two_processes(name: str) -> None:
    source = SOURCE.replace("#define T threadIdx.x", "#define T (blockIdx.x * 64 + threadIdx.x)")
    told = []
    for workers in (1, 2):
        x, out = np.zeros(1 << 18, np.int32), np.zeros(1 << 18, np.int32)
        args = [x, x] if name == "alias" else [x, out]
        run = simulator.launch(compiled(source, name), 4096, 64, args, workers=workers)
        told.append(run.to_dict() | {"seconds": 0, "notes": []})
    assert told[0] == told[1]
    assert bool(told[0]["hazards"]) == (name != "other_array")


def test_how_far_a_verdict_reaches() -> None:
    """What is added may be zero in this run alone."""
    source = "__global__ void k(int* x, int* o) { o[32] = __ldg(x); atomicAdd(x, o[threadIdx.x]); }"
    run = simulator.launch(compiled(source), 1, 32, [np.zeros(1, np.int32), np.zeros(33, np.int32)])
    assert KIND not in {hazard.kind for hazard in run.hazards}
    assert not run.holds_for_all_data


def test_a_comment_leaves_it_out(tmp_path: Path) -> None:
    from tilescope.check.policy import ignored

    source = """__global__ void k(int* x, int* o) {
        x[threadIdx.x] = 1;
        __syncthreads();
        o[threadIdx.x] = __ldg(x + threadIdx.x);  // tilescope: ignore[read-only-path]
    }"""
    args = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    (hazard,) = found(compiled(source), args)
    assert ignored(hazard)
