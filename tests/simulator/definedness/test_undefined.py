"""Undefined bits: copying them is no fault; steering by them, or handing them out, is one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulator
from kernels import Kernel, unset
from kernels.ptx.module import Instruction
from simulator.execute import batches
from simulator.isa import DTYPES
from simulator.isa.definedness import propagate_v_bits
from simulator.isa.scalar.bits import find_bit, leading_zeros, population_count

SOURCE = """\
struct Pair { int first, second; };
__device__ __noinline__ Pair passed_on(Pair p) { return p; }
__device__ __noinline__ int one_of(int i, int n) {
    int a[4]; for (int j = 0; j < n; j++) a[j] = i + j; return a[i & 3]; }
struct Bits { unsigned low : 4, high : 28; };
struct Flagged { float x; bool ok; };
__device__ __noinline__ Flagged flagged(float x) { Flagged r; r.x = x; r.ok = x > 1; return r; }
struct KV { char k; double v; };
union Word { int whole; char bytes[4]; };
struct Some { bool there; int value; };
struct Key { int key; short value; };
__device__ Key less(Key a, Key b) { return a.value < b.value ? a : b; }
"""
BODIES = {
    # What is right or wrong with it; the lines that a report names, marked; builds that keep it.
    "a member": ("""
        Pair p; p.first = in[t];
        Pair q = passed_on(p);  // the second member travels, and nobody looks at it
        out[t] = q.first WRONG(+ q.second);  //!""", "source"),
    "bits": ("""
        __shared__ Bits s[32]; s[t].low = in[t]; RIGHT(s[t].high = t); __syncthreads();
        Bits z = s[t ^ 1]; __syncthreads();
        s[t] = z; __syncthreads();
        out[t] = s[t].low + s[t].high;  //!""", ""),
    "padding of a result": ("""
        Flagged r = flagged(in[t]);
        out[t] = r.ok ? r.x : 0;
        WRONG(__shared__ int w[32]; out[t] += w[t];)  //!""", ""),
    "padding in an array": ("""
        KV a[8];
        for (int i = 0; i < 8; i++) { a[i].k = in[t] + i; if (i != 2 RIGHT(|| true)) a[i].v = i; }
        KV z = a[in[t] & 3];  //!
        a[(in[t] + 5) & 7] = z;
        out[t] = a[(in[t] + 5) & 7].v + a[in[t] & 7].k;""", ""),
    "padding in shared memory": ("""
        __shared__ KV s[32], d[32];
        s[t].k = in[t]; if (t != 3 RIGHT(|| true)) s[t].v = t; __syncthreads();
        d[t] = s[t ^ 1]; __syncthreads();  //!
        out[t] = d[t].v + d[t].k;  //!""", ""),
    "pairs that are reduced": ("""
        __shared__ Key s[32];
        s[t].key = t; if (t != 7 RIGHT(|| true)) s[t].value = in[t]; __syncthreads();
        for (int o = 16; o; o /= 2) {
            if (t < o) s[t] = less(s[t], s[t + o]);  //!
            __syncthreads();
        }
        out[t] = s[0].key;""", ""),
    "pairs that are shuffled": ("""
        Key p; p.value = in[t]; if (t != 4 RIGHT(|| true)) p.key = t;
        long long w = __shfl_xor_sync(~0u, *(long long*)&p, 1);
        Key q = *(Key*)&w;
        out[t] = q.key + q.value;""", "source"),
    "a union": ("""
        Word a[4]; for (int i = 0; i < 4; i++) a[i].bytes[0] = in[t] + i;
        Word z = a[in[t] & 3];
        a[(in[t] + 1) & 3] = z;
        out[t] = a[(in[t] + 1) & 3].bytes[0];
        WRONG(out[t] = a[(in[t] + 1) & 3].whole);  //!""", ""),
    "a buffer in part": ("""
        __shared__ char s[64], d[64]; if (t < 30) s[t] = in[t]; __syncthreads();
        if (t == 0) memcpy(d, s, 64);  //!
        __syncthreads();
        if (t < 30 WRONG(+ 1)) out[t] = d[t];  //!""", ""),
    "three of four": ("""
        __shared__ float4 s[32]; s[t].x = in[t]; s[t].y = 1; s[t].z = 2; __syncthreads();
        float4 v = s[t ^ 1];
        out[t] = v.x + v.y + v.z WRONG(+ v.w);""", ""),
    "a value that may be there": ("""
        __shared__ Some s[32];
        s[t].there = in[t] & 1; if (s[t].there) s[t].value = t; __syncthreads();
        bool there = s[t ^ 2].there;
        out[t] = RIGHT(there &&) s[t ^ 2].value > 4;  //!""", ""),
    "an atomic": ("""
        __shared__ int s[4]; if (t < 3) s[t] = 0; __syncthreads();
        atomicAdd(&s[t & 3], 1); __syncthreads();  //!
        if (t < 3 WRONG(+ 1)) out[t] = s[t];  //!""", ""),
    "bits that atomics set": ("""
        __shared__ unsigned s[2];
        atomicOr(&s[t & 1], 0xffu);  //!
        atomicAnd(&s[t & 1], ~0xff00u); __syncthreads();
        out[t] = s[t & 1] & (0xffff WRONG(| 1u << 31));  //!""", ""),
    "a comparison": ("""
        __shared__ int s[64], d[32]; if (t < 31) s[t] = in[t]; __syncthreads();
        d[t] = s[t]; __syncthreads();  //!
        if (t < 31 WRONG(+ 1)) if (d[t] == 1234567) out[t] = 1;  //!""", ""),
    "an address": ("""
        __shared__ int s[32]; if (t < 31) s[t] = in[t]; __syncthreads();
        int i = s[t];  //!
        if (t < 31 WRONG(+ 1)) out[i & 31] = t;""", ""),
    "a text": ("""
        __shared__ int s[32]; if (t < 31) s[t] = in[t]; __syncthreads();
        int i = s[t];  //!
        if (t < 31 WRONG(+ 1)) printf("%s %f %d", "x", 1.5, i);""", ""),
    "a function that is called again": ("""
        out[t] = one_of(in[t] + 3, 4) + one_of(in[t] RIGHT(+ 3), RIGHT(4) WRONG(2));""", ""),
    "a structure that is passed again": ("""
        Pair p, q; p.first = t; p.second = in[t]; RIGHT(q.first = t;) q.second = t;
        out[t] = passed_on(p).first;
        out[t] += passed_on(q).first;""", ""),
    "a copy to a result": ("""
        __shared__ float s[32]; if (t < 16 RIGHT(+ 16)) s[t] = t; __syncthreads();
        out[t] = s[t];  //!""", ""),
}  # fmt: skip
MACROS = "#define {}(...) __VA_ARGS__\n#define {}(...)\n"
BUILDS = ("device", pytest.param("source", marks=pytest.mark.slow))


def launch(name: str, right: bool, build: str, schedule: str | int) -> list[simulator.Hazard]:
    macros = MACROS.format(*("RIGHT", "WRONG")[:: 1 if right else -1])
    text = f"{macros}{SOURCE}__global__ void k(const int* in, int* out) {{ int t = threadIdx.x;"
    kernel = Kernel.from_cuda(f"{text}{BODIES[name][0]}\n}}", "k", build=build)
    args = [np.arange(32, dtype=np.int32), np.zeros(32, np.int32)]
    return simulator.launch(kernel, 1, 32, args, schedule=schedule).hazards


@pytest.mark.slow_cases(
    "a buffer in part", "a comparison", "a text", "an address", "bits", "padding in an array",
    "padding in shared memory", "pairs that are reduced", "three of four",
)  # fmt: skip
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", BODIES)
def test_right_and_wrong(name: str, build: str) -> None:
    text, kept = BODIES[name]
    marked = {
        number
        for number, line in enumerate(text.split("\n"), 3 + SOURCE.count("\n"))
        if line.endswith("//!")
    }
    for schedule in ("lockstep", "warps", "reverse", 1):
        assert launch(name, True, build, schedule) == []
        found = [h for h in launch(name, False, build, schedule) if h.kind == "uninitialised"]
        assert bool(found) == (kept in ("", build))
        if found:
            assert {h.severity for h in found} == {"error"}
            assert marked <= {line for h in found for line in h.lines}


STRUCTURES = """
struct KV { char k; double v; };
__global__ void fill(KV* a, int n) { int t = threadIdx.x; a[t].k = t; if (t < n) a[t].v = 2 * t; }
__global__ void copy(const KV* a, KV* b) {
    __shared__ KV s[32]; int t = threadIdx.x;
    s[t] = a[t]; __syncthreads();
    b[t] = s[t ^ 1];
}
__global__ void sum(const KV* a, double* out) { int t = threadIdx.x; out[t] = a[t].k + a[t].v; }
"""
KV = np.dtype([("k", "i1"), ("v", "f8")], align=True)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("dtype", [KV, np.uint8])
@pytest.mark.parametrize("count", [32, 31])
def test_padding_between_launches(count: int, dtype: object, build: str) -> None:
    """Of structures, as bytes or by their fields: unset padding goes from array to array."""
    size = 32 * 16 // np.dtype(dtype).itemsize
    a, b, out = unset(size, dtype), unset(size, dtype), np.zeros(32)
    found = []
    for entry, args in (("fill", [a, count]), ("copy", [a, b]), ("sum", [b, out])):
        run = simulator.launch(Kernel.from_cuda(STRUCTURES, entry, build=build), 1, 32, args)
        found += [(entry, h.kind, h.space) for h in run.hazards]
    assert found == ([] if count == 32 else [("copy", "uninitialised", "global")])
    assert out[:30].tolist() == [3.0 * (i ^ 1) for i in range(30)]


def test_fields_that_the_host_sets() -> None:
    a, out = unset(32, KV), np.zeros(32)
    kernel = Kernel.from_cuda(STRUCTURES, "sum")
    a["k"] = 1
    assert [h.count for h in simulator.launch(kernel, 1, 32, [a, out]).hazards] == [32]
    a["v"][:30] = 2
    assert [h.count for h in simulator.launch(kernel, 1, 32, [a, out]).hazards] == [2]
    a[30:] = np.zeros(2, KV)
    assert simulator.launch(kernel, 1, 32, [a, out]).hazards == []


def test_what_another_block_waits_for_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With other content in local memory a block of the next batch waits for ever."""
    monkeypatch.setattr(batches, "LANES", 1)
    source = """
        extern "C" __global__ void k(volatile unsigned* flag, int n) {
            unsigned u[4];
            if (n > 100) u[n % 4] = 1;
            if (blockIdx.x == 0) *flag = u[n % 3];
            else while (*flag > 0x01000000u) ;
        }"""
    args = [np.zeros(1, np.uint32), 3]
    run = simulator.launch(Kernel.from_cuda(source, "k"), 2, 1, args)
    assert [h.kind for h in run.hazards] == ["uninitialised"]


@pytest.mark.parametrize(
    ("half", "expression", "told"),
    [
        (0, "d > 1e200", True), (0, "d < -1e200", True), (0, "fabs(d) >= 1e300", True),
        (0, "fmax(d, 1e300) != 1e300", True), (0, "d == 0.1", False), (0, "d == 4.0", True),
        (1, "d > 1e200", False), (1, "d > 2.0", False), (1, "d == 1.0", True), (1, "d - 1", True),
        (1, "((int*)&d)[0] > 2000000000", True), (1, "((unsigned*)&d)[0] >= 0xfffffff0u", True),
        (0, "((int*)&d)[1] < -2000000000", True), (1, "((int*)&d)[1] > 2000000000", False),
    ],
)  # fmt: skip
def test_half_a_double_is_set(half: int, expression: str, told: bool) -> None:
    """What the other half may hold changes the outcome, or the set one decides (1.0, or 0)."""
    source = (
        "__global__ void k(double* out, int n, int v) { __align__(8) int w[16];"
        f"w[2 * n + {half}] = v; double d = *(double*)(w + 2 * n); if ({expression}) out[0] = 7; }}"
    )
    args = [np.zeros(1), 3, 0x3FF00000 if half else 0]
    run = simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, args)
    assert [hazard.kind for hazard in run.hazards] == ["uninitialised"] * told


@pytest.mark.parametrize("used", [{0}, {11}, {0, 5, 6}, {*range(0, 12, 2)}, {*range(12)}])
def test_which_of_many_reads(used: set[int]) -> None:
    """A short launch runs as often as it takes to tell them apart."""
    to = ["global.u32 [%o" if i in used else "shared.u32 [w+48" for i in range(12)]
    reads = "\n".join(
        f"ld.shared.u32 %v, [w+{4 * i}]; st.{place}+{4 * i}], %v;" for i, place in enumerate(to)
    )
    kernel = Kernel.from_ptx(f""".version 9.0
        .target sm_90
        .visible .entry k(.param .u64 out) {{ .reg .b64 %o; .reg .b32 %v; .shared .b32 w[24];
        ld.param.u64 %o, [out];
        {reads}
        ret; }}""")
    run = simulator.launch(kernel, 1, 1, [np.zeros(12, np.int32)])
    assert {h.involved[0].ptx_line - 5 for h in run.hazards} == used


@pytest.mark.slow_but("popc.b32")
@pytest.mark.parametrize("operation", ["popc.b32", "clz.b32", "bfind.u32", "bfind.shiftamt.s32"])
@settings(max_examples=40, deadline=None)
@given(value=st.integers(0, 2**32 - 1), places=st.sets(st.integers(0, 31), min_size=1, max_size=6))
def test_what_counts_or_finds_bits(operation: str, value: int, places: set[int]) -> None:
    """Its result's undefined bits are those in which any two of what it may be differ."""
    opcode, *modifiers = operation.split(".")
    build = {"popc": population_count, "clz": leading_zeros, "bfind": find_bit}[opcode]
    op = build(Instruction(opcode, tuple(modifiers), (), None, 1, None))
    dtype = np.dtype(DTYPES[op.inputs[0]])
    free = [0]
    for place in places:
        free += [bits | 1 << place for bits in free]
    shadow = np.uint32(sum(1 << place for place in places))
    values = (np.array(free, np.uint32) | np.uint32(value) & ~shadow).view(dtype)
    results = op.fn(values).view(np.uint32)
    (found,) = propagate_v_bits(op)(values[:1], np.array([shadow], np.uint32))
    assert found.view(np.uint32) == np.bitwise_or.reduce(results ^ results[0])
