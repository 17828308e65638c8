"""Calls through pointers and under guards: each lane calls what its own pointer holds."""

from collections.abc import Callable

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.errors import PtxError

SCHEDULES = ("lockstep", "warps", "reverse", 5)
POINTERS = """
struct S { double a; int b; float c[3]; char d; };
struct Base {
    __device__ virtual int f(int x) { return x; }
    __device__ virtual S g(S s, char c) { s.b += c; return s; }
};
struct Other : Base {
    __device__ int f(int x) override { return 10 * x; }
    __device__ S g(S s, char c) override { s.a *= 2; s.c[2] = c; s.d = c; return s; }
};
typedef int (*F)(int, int*);
__device__ __noinline__ int add(int x, int* into) { atomicAdd(into, x); return x; }
__device__ __noinline__ int sub(int x, int* into) { atomicSub(into, x); return -x; }
__device__ __noinline__ int both(int x, int* into);
__device__ F table[3] = {add, sub, both};
__device__ __noinline__ int both(int x, int* into) { return x & 8 ? add(x, into) : sub(x, into); }
extern "C" __global__ void virtuals(int* out) {
    int t = threadIdx.x;
    Base base; Other other;
    Base* p = t % 3 ? &base : &other;
    S s = {double(t), 5, {0, 0, 1}, 2};
    s = p->g(s, 3);
    out[t] = p->f(t) + 1000 * s.b + 100000 * int(s.a) + 10000000 * int(s.c[2]) + s.d;
}
extern "C" __global__ void pointers(int* out, int* sum) {
    int t = threadIdx.x;
    out[t] = 0;
    for (int i = 0; i < t % 4; ++i) out[t] += table[(t + i) % 3](t, sum);
}
extern "C" __global__ void anything(int* out, F f) { if (threadIdx.x == 9) f(1, out); }
"""


def launch(
    entry: str, build: str, *args: object, schedule: str | int = "lockstep"
) -> simulator.Run:
    kernel = Kernel.from_cuda(POINTERS, entry, build=build)
    return simulator.launch(kernel, 1, 40, args, schedule=schedule)


@pytest.mark.slow_but("5", "reverse-device", "warps-device")
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_lane_calls_its_own_function(build: str, schedule: str | int) -> None:
    t = np.arange(40)
    out, total = np.zeros(40, np.int32), np.zeros(1, np.int32)
    assert not launch("virtuals", build, out, schedule=schedule).hazards
    other = t % 3 == 0
    expected = np.where(other, 10 * t, t) + 1000 * np.where(other, 5, 8) + np.where(other, 3, 2)
    expected += 100000 * t * np.where(other, 2, 1) + 10000000 * np.where(other, 3, 1)
    np.testing.assert_array_equal(out, expected)

    assert not launch("pointers", build, out, total, schedule=schedule).hazards
    calls = np.array([t, -t, np.where(t & 8, t, -t)])
    rounds = [np.where(i < t % 4, calls[(t + i) % 3, t], 0) for i in range(4)]
    np.testing.assert_array_equal(out, sum(rounds))
    assert total[0] == sum(rounds).sum()


@pytest.mark.parametrize("build", ["device", "source"])
def test_a_pointer_that_holds_no_function_stops_the_kernel(build: str) -> None:
    (hazard,) = launch("anything", build, np.zeros(40, np.int32), 4242).hazards
    assert (hazard.kind, hazard.severity) == ("trap", "error")
    assert hazard.message == "a call through a pointer that holds no function of this program"
    assert hazard.involved[0].thread == (9, 0, 0)


def test_a_guarded_call_is_made_by_the_lanes_that_it_lets() -> None:
    text = """
    .version 9.0
    .target sm_90
    .address_size 64
    .func (.param .b32 r) twice(.param .b32 x)
    {
        .reg .b32 %v;
        ld.param.b32 %v, [x];
        add.s32 %v, %v, %v;
        st.param.b32 [r], %v;
        ret;
    }
    .visible .entry k(.param .u64 out)
    {
        .reg .pred %p;
        .reg .b32 %t, %v;
        .reg .b64 %o, %a;
        mov.u32 %t, %tid.x;
        setp.gt.u32 %p, %t, 5;
        mov.u32 %v, 1;
        .param .b32 x;
        .param .b32 r;
        st.param.b32 [x], %t;
        @!%p call (r), twice, (x);
        ld.param.b32 %v, [r];
        ld.param.u64 %o, [out];
        mad.wide.u32 %a, %t, 4, %o;
        @!%p st.global.b32 [%a], %v;
        ret;
    }
    """
    out = np.full(8, -1, np.int32)
    simulator.launch(Kernel.from_ptx(text, "k"), 1, 8, [out])
    assert out.tolist() == [0, 2, 4, 6, 8, 10, -1, -1]


RECURSION = """
__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__global__ void mutual(int* x) { x[threadIdx.x] = even(threadIdx.x) + 2 * odd(threadIdx.x); }
__device__ __noinline__ int ack(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1));
}
__global__ void twice(int* x) { x[threadIdx.x] = ack(threadIdx.x % 3, threadIdx.x % 2); }
__device__ __noinline__ int down(int n, int* up) {
    int own[3];
    own[0] = own[n % 3] = n * n;
    int below = n ? down(n - 1, own) + own[n % 3] : own[0];
    *up += own[0] + 1;
    return below;
}
__global__ void local(int* x) {
    int sum = 5, found = down(threadIdx.x % 5, &sum);
    x[threadIdx.x] = 1000 * found + sum;
}
__device__ __noinline__ int ever(int n) { return n == 12345 ? 0 : 2 * ever(n + 1) + n % 3; }
__global__ void endless(int* x) { x[threadIdx.x] = threadIdx.x % 2 ? 7 : ever(threadIdx.x); }
__device__ __noinline__ int meet(int n) { __syncthreads(); return n ? meet(n - 1) + n * n : 0; }
__device__ __noinline__ void wait() { __syncthreads(); }
__device__ __noinline__ int rest(int n) { wait(); return n ? rest(n - 1) + n * n : 0; }
__global__ void helper(int* x) { x[threadIdx.x] = rest(3) * rest(4); }
__global__ void barrier(int* x) { x[threadIdx.x] = meet(3) * meet(4); }
struct Two { int a, b; };
__device__ __noinline__ Two both(Two t) { return t.a ? both({t.a - 1, t.b + t.a * t.a}) : t; }
__global__ void structure(int* x) { x[threadIdx.x] = both({x[0], 0}).b; }
"""


def _ack(m: int, n: int) -> int:
    return n + 1 if m == 0 else _ack(m - 1, 1) if n == 0 else _ack(m - 1, _ack(m, n - 1))


def _down(n: int, up: list[int]) -> int:
    own = [0, 0, 0]
    own[0] = own[n % 3] = n * n
    below = own[0] if n == 0 else _down(n - 1, own)
    found = below if n == 0 else below + own[n % 3]
    up[0] += own[0] + 1
    return found


def _local(n: int) -> int:
    total = [5]
    return 1000 * _down(n % 5, total) + total[0]


@pytest.mark.parametrize("schedule", ["lockstep", "reverse", 5])
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "model"),
    [
        ("mutual", lambda i: 1 if i % 2 == 0 else 2),
        ("twice", lambda i: _ack(i % 3, i % 2)),
        ("local", _local),
    ],
)
def test_functions_that_call_themselves(
    entry: str, model: Callable[[int], int], build: str, schedule: str | int
) -> None:
    """Each open call has registers and local variables of its own, whatever others do."""
    x = np.zeros(12, np.int32)
    run = simulator.launch(
        Kernel.from_cuda(RECURSION, entry, build=build), 1, 12, [x], schedule=schedule
    )
    assert run.hazards == []
    assert x.tolist() == [model(i) for i in range(12)]


@pytest.mark.parametrize("build", ["device", "source"])
def test_calls_that_fill_the_stack(build: str) -> None:
    x = np.zeros(4, np.int32)
    run = simulator.launch(Kernel.from_cuda(RECURSION, "endless", build=build), 1, 4, [x])
    [hazard] = run.hazards
    assert (hazard.kind, hazard.severity) == ("trap", "error")
    assert "calls nest too deeply" in hazard.message
    assert x.tolist() == [0, 7, 0, 7]


def test_a_larger_stack_holds_more_calls() -> None:
    k = Kernel.from_cuda(RECURSION, "mutual", build="source")
    x = np.zeros(64, np.int32)
    assert [h.kind for h in simulator.launch(k, 1, 64, [x], stack_bytes=256).hazards] == ["trap"]
    assert simulator.launch(k, 1, 64, [x], stack_bytes=8192).hazards == []
    assert x.tolist() == [1, 2] * 32


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("barrier", "a block barrier in recursion"),
        ("helper", "a block barrier in recursion"),
        ("structure", "a structure passed in recursion"),
    ],
)
def test_what_a_function_that_calls_itself_may_not(entry: str, words: str) -> None:
    k = Kernel.from_cuda(RECURSION, entry, build="source")
    with pytest.raises(PtxError, match=words):
        simulator.launch(k, 1, 4, [np.zeros(4, np.int32)])
