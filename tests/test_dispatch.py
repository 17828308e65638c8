"""Calls through pointers and under guards: each lane calls what its own pointer holds."""

from collections.abc import Callable

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.errors import PtxError
from tests.fuzz import ptxas

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


ADD = ".func (.reg .u32 r) f (.reg .u32 a, .reg .u32 b) { add.u32 r, a, b; ret; }"
ADD_PARAMS = """.func (.param .u32 r) f (.param .u32 a, .param .u32 b) { .reg .u32 x, y;
  ld.param.u32 x, [a]; ld.param.u32 y, [b]; add.u32 x, x, y; st.param.u32 [r], x; ret; }"""
FACTORIAL = """.func (.reg .u32 r) f (.reg .u32 a) { .reg .pred p; .reg .u32 b, c;
  setp.le.u32 p, a, 1; mov.u32 r, 1; @p ret; sub.u32 b, a, 1; call (c), f, (b);
  mul.lo.u32 r, c, a; ret; }"""
LOOP = """.func (.reg .u32 r) f (.reg .u32 a) { .reg .pred p;
L: add.u32 a, a, 3; setp.lt.u32 p, a, 9; @p bra L; mov.u32 r, a; }"""
HALF = ".func (.reg .u32 r) f (.reg .f32 a) { cvt.rzi.u32.f32 r, a; ret; }"
WIDE = ".func (.reg .u32 r) f (.reg .s64 a) { cvt.u32.s64 r, a; ret; }"
BYTES = """.func (.param .b32 r) f (.param .b8 a, .param .align 4 .b8 q[8]) { .reg .b32 x, y;
  .reg .b16 h; ld.param.u8 h, [a]; cvt.u32.u16 x, h; ld.param.b32 y, [q+4]; add.u32 x, x, y;
  st.param.b32 [r], x; ret; }"""
SYSTEM = ".extern .func (.param .b64 r) malloc (.param .b64 a);"
T = np.arange(8)
PASSED: list[tuple[str, str, object]] = [
    (ADD, "call (%r2), f, (%r1, %r1);", 2 * T),
    (ADD, "call.uni (%r2), f, (0x10, -3);", 13),
    (ADD_PARAMS, "call (%r2), f, (%r1, 7);", T + 7),
    (ADD_PARAMS, "{ .param .b32 x; st.param.b32 [x], 5; call (%r2), f, (x, %r1); }", T + 5),
    (ADD_PARAMS, "{ .param .u32 z; call (z), f, (%r1, 1); ld.param.u32 %r2, [z]; }", T + 1),
    (ADD_PARAMS, "call (%r2), f, (%r1, 1); call (%r2), f, (%r2, %r2);", 2 * T + 2),
    (ADD_PARAMS, "mov.u32 %r2, 9; call (_), f, (%r1, 7);", 9),
    (ADD, "mov.u32 %r2, 9; @%p1 call (%r2), f, (%r1, WARP_SZ);", np.where(T < 5, T + 32, 9)),
    (FACTORIAL, "call (%r2), f, (%r1);", [1, 1, 2, 6, 24, 120, 720, 5040]),
    (LOOP, "call (%r2), f, (%r1);", [9, 10, 11, 9, 10, 11, 9, 10]),
    (HALF, "call (%r2), f, (8.5);", 8),
    (HALF, "call (%r2), f, (0d4020000000000000);", 8),
    (WIDE, "call (%r2), f, (0xfffffffffffffff0);", (1 << 32) - 16),
    (BYTES, "{ .param .align 4 .b8 q[8]; st.param.b32 [q+4], 6; call (%r2), f, (300, q); }", 50),
    (SYSTEM, "call (%rd2), malloc, (16); shr.u64 %rd2, %rd2, 63; cvt.u32.u64 %r2, %rd2;", 0),
    # What ptxas refuses.
    (ADD, "call (%r2), f, (5);", "'f' has 2 parameters, not 1"),
    (ADD, "call f, (5, 6);", "'f' has 1 results, not 0"),
    (ADD, "call (%r2), f, (%rd1, 5);", r"a .b64 is passed where the function has a \(.u32\)"),
    (ADD, "call (%r2), f, (%f1, 5);", r"a .f32 is passed where the function has a \(.u32\)"),
    (ADD, "call (%rd2), f, (1, 5);", r"a .b64 is passed where the function has r \(.u32\)"),
    (HALF, "call (%r2), f, (8);", r"a whole number is passed where the function has a \(.f32\)"),
    (BYTES, "call (%r2), f, (3, %rd1);", r"a .b64 is passed where .* q \(.b8\[8\]\)"),
    (ADD, "call (%r2), f, (%tid.x, 1);", "a call passes .param variables, registers and const"),
    (ADD, "call (%r2), f, (_, 1);", "a call passes .param variables, registers and constants"),
    (ADD, "call (%r2), f, (1 2);", "expected ','"),
    ("", "call nothing;", "the function 'nothing' is called, and not declared before"),
    ("", "call (%rd2), malloc, (%rd1);", "'malloc' is called, and not declared before"),
    ("", "call (%r2), later, (%r1);", "'later' is called, and not declared before"),
    ("", "call k, (%rd1);", "'k' is a kernel"),
]
MODULE = """.version 9.0
.target sm_90
.address_size 64
FUNCTIONS
.visible .entry k(.param .u64 out) { .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .f32 %f<5>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5;
  CALL
  mad.wide.u32 %rd3, %r1, 4, %rd1; st.global.u32 [%rd3], %r2; ret; }
.func (.reg .u32 r) later (.reg .u32 a) { mov.u32 r, a; ret; }
"""


@pytest.mark.parametrize(("functions", "call", "expected"), PASSED)
def test_what_a_call_passes(functions: str, call: str, expected: object) -> None:
    """Registers and constants on either side; ptxas is the judge."""
    text = MODULE.replace("FUNCTIONS", functions).replace("CALL", call)
    if ptxas.path():
        assert ptxas.accepts(text, "sm_90") != isinstance(expected, str)
    for schedule in SCHEDULES:
        out = np.zeros(8, np.uint32)
        if isinstance(expected, str):
            with pytest.raises(PtxError, match=expected):
                simulator.launch(Kernel.from_ptx(text, "k"), 1, 8, [out])
            return
        run = simulator.launch(Kernel.from_ptx(text, "k"), 1, 8, [out], schedule=schedule)
        assert not run.hazards
        np.testing.assert_array_equal(out, np.broadcast_to(np.asarray(expected), 8))
