"""Padding is what the compiler's layout of a type says it is: unset members are reported."""

import itertools
import re

import numpy as np
import pytest

import simulator
from kernels import Kernel, Pointer
from kernels.debug.types import DebugInfo

TYPES = {
    # The kernel's pointer, a type, and its members: hex digits of the bits of each byte.
    "Plain*": ("struct Plain { int a, b; };", "ff" * 8),
    "Wide*": ("struct Wide { char k; double v; };", "ff" + "00" * 7 + "ff" * 8),
    "Tail*": ("struct Tail { double v; short k; };", "ff" * 10 + "00" * 6),
    "Nested*": ("struct Nested { char c; struct { int x; short y; } in[2]; };",
                "ff000000" + 2 * ("ff" * 6 + "0000")),
    "Rows*": ("struct Rows { char n; short v[2][2]; };", "ff00" + "ff" * 8),
    "Bits*": ("struct Bits { unsigned a : 3, b : 7; char c; };", "ff03ff00"),
    "Signed*": ("struct Signed { int c : 3; int i : 20; char d; };", "ffff7fff"),
    "Zero*": ("struct Zero { unsigned a : 3; unsigned : 0; bool b : 1, c : 1; };",
              "0700000003000000"),
    "Unnamed*": ("struct Unnamed { unsigned a : 3; unsigned : 9; unsigned b : 2; };", "07300000"),
    "Long*": ("struct Long { long long a : 40; unsigned long long b : 20; short c; };",
              "ff" * 7 + "0fffff" + "00" * 6),
    "Across*": ("struct __attribute__((packed)) Across { int a : 30, b : 30; long long c : 50; };",
                "ff" * 13 + "3f"),
    "Inside*": ("struct Inside { int x : 9; struct { int a : 3, b : 11; } in[2]; };",
                "ff010000" + 2 * "ff3f0000"),
    "Fields*": ("union Fields { unsigned : 5; unsigned a : 9; struct { int b : 3, c : 4; } s; };",
                "7f000000"),
    "Either*": ("union Either { char c; int i; double d; };", "ff" + "00" * 7),
    "Same*": ("union Same { float f; int i; unsigned char c[4]; };", "ffffffff"),
    "Tagged*": ("struct Tagged { int tag; union { short s; int i; }; };", "ffffffffffff0000"),
    "Far*": ("struct alignas(16) Far { int a; };", "ffffffff" + "00" * 12),
    "Moved*": ("struct Moved { char a; alignas(8) char b; };", 2 * ("ff" + "00" * 7)),
    "Point*": ("struct Point { float3 at; bool there; };", "ff" * 13 + "000000"),
    "Many<short, 3>*": ("template <class T, int N> struct Many { T v[N]; int n; };",
                        "ff" * 6 + "0000" + "ff" * 4),
    "Derived*": ("struct Base { double d; char c; }; struct Derived : Base { char e; };",
                 "ff" * 9 + "00" * 7 + "ff" + "00" * 7),
    "Grown*": ("class Ground { double d; char c; }; struct Grown : Ground { char e; };",
               "ff" * 10 + "00" * 6),
    "Virtual*": ("struct Virtual { char c; __device__ virtual void f() {} };",
                 "00" * 8 + "ff" + "00" * 7),
    "Empty*": ("struct None {}; struct Empty : None { short s; };", "ffff"),
    "Packed*": ("struct __attribute__((packed)) Packed { char c; int i; };", "ff" * 5),
    "Pressed*": ("#pragma pack(push, 2)\nstruct Pressed { char c; int i; };\n#pragma pack(pop)",
                 "ff00ffffffff"),
    "Named": ("typedef const struct { long long l; char c; }* Named;", "ff" * 9 + "00" * 7),
    "Shared*": ("struct Shared { static int all; char c; float* p; };",
                "ff" + "00" * 7 + "ff" * 8),
    "Kinds*": ("enum class E : short { A }; struct Kinds { int i; E e; };", "ff" * 6 + "0000"),
    "float4*": ("", "ff" * 16),
}  # fmt: skip


def test_layouts_are_the_compilers() -> None:
    definitions = "\n".join(text for text, _ in TYPES.values())
    params = ", ".join(f"{kind} p{i}" for i, kind in enumerate(TYPES))
    uses = "".join(f"n[{i}] = sizeof(*p{i});" for i in range(len(TYPES)))
    kernel = Kernel.from_cuda(
        f"{definitions}\n__global__ void k(int* n, {params}) {{ {uses} }}", "k", build="source"
    )
    info = DebugInfo(kernel.ptx)
    found = {}
    for name, kind in zip(TYPES, info.parameters(kernel.entry)[1:], strict=True):
        pointee = info.pointee(kind)
        bits = info.bits(pointee) if pointee else None
        found[name] = "" if bits is None else bits.tobytes().hex()
    assert found == {name: members for name, (_, members) in TYPES.items()}
    sizes = np.zeros(len(TYPES), np.int32)
    simulator.launch(kernel, 1, 1, [sizes, *[np.zeros(16, np.float32)] * len(TYPES)])
    assert sizes.tolist() == [len(members) // 2 for _, members in TYPES.values()]


def test_types_behind_pointers_in_structures() -> None:
    text = """
    struct In { char c; int i; };
    struct Inner { int n; In* to; };
    struct Args { Inner of[2]; In** table; };
    __device__ In whole[3];
    __global__ void k(Args a, In** b) { a.of[1].to->i = b[0]->i; whole[1].i = a.table[0]->i; }"""
    kernel = Kernel.from_cuda(text, "k", build="source")
    info = DebugInfo(kernel.ptx)
    args, table = info.parameters(kernel.entry)
    reached = [info.pointee(args, 8), info.pointee(args, 24), info.pointee(info.pointee(table))]
    reached.append(info.pointee(info.pointee(args, 32)))
    variable = info.variable("whole")
    assert variable
    members = [info.bits(kind) if kind else None for kind in [*reached, variable]]
    expected = [bytes.fromhex("ff000000ffffffff")] * 4 + [bytes.fromhex("ff000000ffffffff") * 3]
    assert [bits is not None and bits.tobytes() for bits in members] == expected
    assert info.pointee(args, 0) is None


@pytest.mark.parametrize("damage", ["", ".b8 255,255,255\n", ".b32 99999999\n", ".b8 x\n"])
def test_debug_information_that_is_none(damage: str) -> None:
    ptx = f".section .debug_abbrev {{\n{damage}}}\n.section .debug_info {{\n{damage}}}"
    assert DebugInfo(ptx).parameters("k") == []


KERNELS = {
    # Members set for good; the one that may be left out; how the structure is copied out.
    "plain": ("struct S { int a, b; };", "v.a = t;", "v.b = t;", "o[t] = v;"),
    "before": ("struct S { int a, b; };", "v.b = t;", "v.a = t;", "memcpy(o + t, &v, sizeof(S));"),
    "neighbours": (
        "struct S { int a, b, c; };", "v.b = t;", "v.a = t; v.c = t;",
        "__syncthreads(); o[t] = s[t ^ (blockDim.x > 1)];",
    ),
    "wide": ("struct S { char k; double v; };", "v.v = t;", "v.k = t;", "o[t] = v;"),
    "bits": (
        "struct S { unsigned a : 3, b : 7; char c; };", "v.a = t; v.c = t;", "v.b = 5;", "o[t] = v;"
    ),
    "signed": (
        "struct S { int c : 3; int i : 20; char d; };", "v.c = t & 3; v.d = 1;", "v.i = 7;",
        "o[t] = v;",
    ),
    "flags": (
        "struct S { bool a : 1, b : 1; int : 0; unsigned c : 7; };", "v.a = t; v.c = t;",
        "v.b = t > 3;", "o[t] = v;",
    ),
    "unnamed": (
        "struct S { unsigned a : 3; unsigned : 9; int b : 12; };", "v.b = t;", "v.a = t;",
        "o[t] = v;",
    ),
    "inside": (
        "struct S { int x : 9; struct { int a : 3, b : 11; } in[2]; };",
        "v.x = t; v.in[0].a = v.in[1].a = 1; v.in[0].b = t;", "v.in[1].b = t;", "o[t] = v;",
    ),
    "across": (
        "struct __attribute__((packed)) S { int a : 30, b : 30; char c : 3; };",
        "v.a = t; v.c = 1;", "v.b = t;", "memcpy(o + t, &v, sizeof(S));",
    ),
    "variant": (
        "struct S { int tag; union { char c; double d; }; };", "v.tag = 0;", "v.c = t;", "o[t] = v;"
    ),
}  # fmt: skip


def source(name: str, right: bool) -> str:
    types, always, sometimes, copy = KERNELS[name]
    return f"""{types}
    extern "C" __global__ void k(S* o) {{
        __shared__ S s[32];
        int t = threadIdx.x;
        S& v = s[t];
        {always} {sometimes if right else ""}
        {copy}
    }}"""


BUILDS = ("device", pytest.param("source", marks=pytest.mark.slow))


@pytest.mark.slow_cases("before", "neighbours", "wide")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", KERNELS)
def test_an_unset_member_is_reported_however_many_threads_there_are(name: str, build: str) -> None:
    for right, threads in itertools.product((True, False), (1, 32)):
        kernel = Kernel.from_cuda(source(name, right), "k", build=build)
        run = simulator.launch(kernel, 1, threads, [np.zeros(1024, np.uint8)])
        kinds = {(h.kind, h.severity) for h in run.hazards}
        assert kinds == (set() if right else {("uninitialised", "error")}), (right, threads)
        assert run.padding == ()


@pytest.mark.slow_cases("before", "neighbours", "plain", "variant")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", KERNELS)
def test_ptx_alone_has_no_types(name: str, build: str) -> None:
    """What no thread writes in any element is taken for padding, and the run says so."""
    for right, threads in itertools.product((True, False), (1, 32)):
        made = Kernel.from_cuda(source(name, right), "k", build=build)
        bare = re.sub(r"\.section\s+\.debug_\w+\s*\{[^}]*\}", "", made.ptx)
        run = simulator.launch(Kernel.from_ptx(bare), 1, threads, [np.zeros(1024, np.uint8)])
        assert run.hazards == []
        assert run.padding in ((), ("argument 0",))
        if not right:
            assert run.padding == ("argument 0",)
            assert run.to_dict()["padding_assumed"] == ["argument 0"]


@pytest.mark.parametrize(("text", "threads"), [
    ("o[t] = s[t];", 1),  # no element has anything else
    ("o[t] = s[t];", 32),
    ("s[t].b = t; if (t) s[t].a = t; o[t].a = s[t].a; o[t].b = s[t].b;", 32),  # some thread does
])  # fmt: skip
def test_without_a_type_a_member_is_one_if_some_thread_writes_it(text: str, threads: int) -> None:
    made = Kernel.from_cuda(
        'struct S { int a, b; }; extern "C" __global__ void k(S* o) {'
        f"__shared__ S s[32]; int t = threadIdx.x; {text} }}", "k"
    )  # fmt: skip
    run = simulator.launch(
        Kernel.from_ptx(made.ptx), 1, threads, [np.zeros(256, np.uint8)], checks={"uninitialised"}
    )
    assert [h.kind for h in run.hazards] == ["uninitialised"]


def test_reads_that_are_used_only_together() -> None:
    """Neither half of a structure is a result alone; a copy that nothing uses is none at all."""
    made = Kernel.from_cuda("""
        struct S { float a; unsigned char b, c; char d; };
        extern "C" __global__ void k(S* part, const int* in) {
            __shared__ S s[1], other[1];
            S unused[4], v = s[0];
            for (int n = 0; n < in[0]; n++) memcpy(&unused[1], &other[0], 1);
            part[0] = v;
        }""", "k", build="source")  # fmt: skip
    bare = re.sub(r"\.section\s+\.debug_\w+\s*\{[^}]*\}", "", made.ptx)
    args = [np.zeros(8, np.uint8), np.ones(1, np.int32)]
    run = simulator.launch(Kernel.from_ptx(bare), 1, 1, args, checks={"uninitialised"})
    assert {h.variable for h in run.hazards} == {"s"}


def test_without_a_type_what_another_read_copies_is_not_defined() -> None:
    made = Kernel.from_cuda(
        """struct S { int a, b; }; extern "C" __global__ void k(S* o) {
        __shared__ volatile S s[32], d[32];
        int t = threadIdx.x;
        if (t < 16) { o[t].a = t; o[t].b = s[t].b; __syncwarp(0xffff); }
        else {
          o[t].a = d[t].a;
          o[t].b = d[t].b; __syncwarp(0xffff0000);
        } }""", "k"
    )  # fmt: skip
    run = simulator.launch(
        Kernel.from_ptx(made.ptx), 1, 32, [np.zeros(256, np.uint8)], checks={"uninitialised"}
    )
    assert [h.involved[0].source.line for h in run.hazards] == [6]


def test_numbers_have_no_padding_where_no_type_is_known() -> None:
    made = Kernel.from_cuda(source("plain", False), "k")
    run = simulator.launch(Kernel.from_ptx(made.ptx), 1, 32, [np.zeros(64, np.int32)])
    assert [h.kind for h in run.hazards] == ["uninitialised"]


def test_an_array_inside_another_one() -> None:
    """A structure's members are counted from where the pointer points to."""
    for right in (True, False):
        kernel = Kernel.from_cuda(source("wide", right), "k")
        array = np.zeros(1024, np.uint8)
        run = simulator.launch(kernel, 1, 32, [Pointer(array, 24)])
        assert [h.kind for h in run.hazards] == ["uninitialised"] * (not right)


def test_variables_and_arrays_behind_structures() -> None:
    text = """struct S { char k; double v; }; struct Args { int n; S* to; };
    __device__ S kept[32];
    __global__ void k(Args a) {
        __shared__ S s[32]; int t = threadIdx.x;
        s[t].v = t; FIRST; if (t < a.n) a.to[t] = s[t]; SECOND kept[t] = s[t]; }"""
    for first, second, count in (
        ("s[t].k = 1", "", 0), ("", "s[t].k = 1;", 1), ("if (t < a.n) s[t].k = 1", "", 1)
    ):  # fmt: skip
        kernel = Kernel.from_cuda(text.replace("FIRST", first).replace("SECOND", second), "k")
        run = simulator.launch(kernel, 1, 32, [(9, np.zeros(512, np.uint8))])
        assert len(run.hazards) == count, (first, second)
