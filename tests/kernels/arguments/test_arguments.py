"""Arguments as people have them: structures with pointers, tables, views, addresses inside."""

import ctypes
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import simulator
from kernels import Kernel, Pointer, library
from kernels.arguments.argument_copies import arrays_of, copies
from kernels.source.structures import TypeLayout, layout_of

SOURCE = """
#include <cuda_fp8.h>  // and cuda_bf16.h, cuda_fp16.h
#define CHANNELS 2
struct Filter { const float *x; float *__restrict__ y; int n; float3 c; };
template <typename T, int N> struct View { T *data; int shape[N]; T scale;
    __device__ T &at(int i) const { return data[i]; } };
typedef struct { double rate; short steps[CHANNELS]; } Plain;
struct __align__(16) Wide { char tag; __half h; };
struct Nested { View<float, 2> in[CHANNELS]; Plain p; bool on; static int none; };
struct Bits { unsigned a : 3; };
struct Derived : Plain { int more; };

extern "C" __global__ void filter(Filter f) {
    int i = threadIdx.x;
    if (i < f.n) f.y[i] = f.x[i] * f.c.y + f.c.z;
}
__global__ void nested(Nested a, float *out) {
    int i = threadIdx.x;
    out[i] = a.in[0].at(i) * a.in[1].scale + a.in[1].at(i) + a.p.rate + a.p.steps[1] + a.on;
}
__global__ void rows(float **table, float *out) { out[threadIdx.x] = table[threadIdx.x & 1][3]; }
__global__ void views(float *v, const float *w) { v[threadIdx.x] += w[threadIdx.x]; }
__global__ void few(int n, float *out) { *out = n; }
__global__ void halves(__half h, float *out) { *out = __half2float(h); }
__global__ void brains(__nv_bfloat16 h, float *out) { *out = __bfloat162float(h); }
__global__ void eights(__nv_fp8_e4m3 h, float *out) { *out = float(h); }
"""
FIELD = {"Filter": (32, 8), "View<float, 2>": (24, 8), "Plain": (16, 8), "Wide": (16, 16),
         "Nested": (72, 8), "float3": (12, 4), "double2": (16, 16), "uchar4": (4, 4),
         "const float *": (8, 8)}  # fmt: skip


def ramp(n: int, first: float = 0) -> Any:
    return np.arange(n, dtype=np.float32) + np.float32(first)


def kernel(name: str, build: str = "device") -> Kernel:
    return Kernel.from_cuda(SOURCE, name, build=build)


@pytest.mark.slow_cases("Filter", "Plain", "View<float, 2>")
@pytest.mark.parametrize("kind", FIELD)
def test_layouts_are_those_of_the_compiler(kind: str) -> None:
    """NVRTC's own ``sizeof`` and ``alignof`` say the same."""
    layout = layout_of(kind, {"a.cu": SOURCE})
    assert layout is not None
    assert (layout.nbytes, layout.align) == FIELD[kind]
    size = f"__global__ void size(int *o) {{ o[0] = sizeof({kind}); o[1] = alignof({kind}); }}"
    out = np.zeros(2, np.int32)
    simulator.launch(Kernel.from_cuda(SOURCE + size, "size"), 1, 1, [out])
    assert tuple(out) == FIELD[kind]


@pytest.mark.parametrize("kind", ["Bits", "Derived", "Unknown", "View<float>"])
def test_what_is_not_plain_has_no_layout(kind: str) -> None:
    assert layout_of(kind, {"a.cu": SOURCE}) is None


class Named(NamedTuple):
    x: Any
    n: int


class Filter(NamedTuple):
    x: Any
    y: Any
    n: int
    c: tuple[float, ...]


def filters(x: Any, y: Any) -> list[Any]:
    dtype = np.dtype([("x", object), ("y", object), ("n", "i4"), ("c", "f4", 3)])
    return [
        (x, y, 16, (1, 2, 0.5)),
        {"x": x, "y": Pointer(y), "n": np.int32(16), "c": np.array([1, 2, 0.5])},
        np.array((x, y, 16, (1, 2, 0.5)), dtype)[()],
        Filter(x, y, 16, (1, 2, 0.5)),
    ]


@pytest.mark.slow_cases("source")
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize("form", range(4))
def test_a_structure_with_pointers(form: int, build: str) -> None:
    x, y = ramp(16), np.zeros(16, np.float32)
    run = simulator.launch(kernel("filter", build), 1, 32, [filters(x, y)[form]])
    assert run.hazards == []
    np.testing.assert_array_equal(y, x * 2 + np.float32(0.5))


def test_bounds_hold_behind_a_structures_pointer() -> None:
    run = simulator.launch(kernel("filter"), 1, 32, [(ramp(16), ramp(8), 16, (1, 2, 3))])
    assert [(h.kind, h.severity) for h in run.hazards] == [("out-of-bounds", "error")]


def test_structures_in_structures_and_arrays_in_them() -> None:
    a, b, out = ramp(8), ramp(8, 100), np.zeros(8, np.float32)
    args = [([(a, (8, 1), 0), (b, (8, 1), 2.0)], (0.25, (7, 8)), True), out]
    simulator.launch(kernel("nested"), 1, 8, args)
    np.testing.assert_array_equal(out, a * 2 + b + np.float32(9.25))


@pytest.mark.parametrize("linkage", ["", 'extern "C" '])
def test_what_headers_declare(tmp_path: Path, linkage: str) -> None:
    (tmp_path / "near").mkdir()
    (tmp_path / "far").mkdir()
    (tmp_path / "near" / "kernel.cuh").write_text(
        '#include "types.h"\n__constant__ Window window;\n' + linkage + "__global__ void "
        "filtered(Shape shape, const real* in) { int i = threadIdx.x;\n"
        "  shape.out[i] = i < shape.n ? in[i] * window.w[i & 1] : in[i]; }\n"
    )
    (tmp_path / "far" / "types.h").write_text(
        "typedef float real;\nstruct Shape { char n; real* out; };\nstruct Window { real w[2]; };\n"
    )
    (tmp_path / "main.cu").write_text('#include "near/kernel.cuh"\n')
    kernel = Kernel.from_cuda(tmp_path / "main.cu", "filtered", options=[f"-I{tmp_path / 'far'}"])
    out = np.zeros(8, np.float32)
    given = [(4, out), np.ones(8, np.float32)]
    window = {"window": np.array([2, 3], np.float32)}
    assert not simulator.launch(kernel, 1, 8, given, symbols=window).hazards
    np.testing.assert_array_equal(out, [2, 3, 2, 3, 1, 1, 1, 1])
    assert kernel.labels() == ["shape", "in"]
    with pytest.warns(UserWarning, match=r"in: the kernel takes float\*, the array is int32"):
        simulator.launch(kernel, 1, 8, [(4, out), np.ones(8, np.int32)], symbols=window)


def test_without_a_source_a_tuple_says_its_own_types() -> None:
    x, y = ramp(16), np.zeros(16, np.float32)
    plain = Kernel.from_ptx(kernel("filter").ptx, "filter")
    simulator.launch(plain, 1, 16, [(x, y, np.int32(16), *np.float32([1, 2, 0]))])
    np.testing.assert_array_equal(y, x * 2)
    with pytest.raises(TypeError, match="no source says what fields"):
        simulator.launch(plain, 1, 16, [(x, y, 16, 1, 2, 0)])


def test_a_ctypes_structure() -> None:
    class Bytes(ctypes.Structure):
        _fields_ = [("x", ctypes.c_void_p), ("y", ctypes.c_void_p), ("n", ctypes.c_int),
                    ("c", ctypes.c_float * 3)]  # fmt: skip

    run = simulator.launch(kernel("filter"), 1, 16, [Bytes(n=0)])
    assert run.hazards == []
    run = simulator.launch(kernel("filter"), 1, 16, [Bytes(n=1)])
    assert {h.kind for h in run.hazards} == {"out-of-bounds"}  # a null pointer


@pytest.mark.parametrize("schedule", ["lockstep", 3])
def test_a_table_of_addresses(schedule: str | int) -> None:
    a, b, out = ramp(8), ramp(16, 50), np.zeros(4, np.float32)
    run = simulator.launch(kernel("rows"), 1, 4, [[a, Pointer(b, 8)], out], schedule=schedule)
    assert run.hazards == []
    np.testing.assert_array_equal(out, [3, 61, 3, 61])
    run = simulator.launch(kernel("rows"), 1, 4, [[a], out])  # the second address is not there
    assert any(h.kind == "out-of-bounds" for h in run.hazards)


def test_overlapping_views_are_one_allocation() -> None:
    v = ramp(64)
    run = simulator.launch(kernel("views"), 1, 32, [v, v[32:]])
    assert run.hazards == []
    np.testing.assert_array_equal(v[:32], ramp(32) * 2 + 32)
    v = ramp(64)
    run = simulator.launch(kernel("views"), 1, 32, [v[8:40], v])
    assert {h.kind for h in run.hazards} == {"war-race"}
    with pytest.raises(ValueError, match="no contiguous views of one"):
        simulator.launch(kernel("views"), 1, 16, [v[::2], v])


def test_views_that_do_not_overlap_keep_their_own_bounds() -> None:
    v = ramp(64)
    run = simulator.launch(kernel("views"), 1, 33, [v[:32], v[32:]])
    assert {h.kind for h in run.hazards} == {"out-of-bounds"}


def test_a_read_only_view_of_a_writable_array() -> None:
    v = ramp(64)
    fixed = v[32:]
    fixed.flags.writeable = False
    simulator.launch(kernel("views"), 1, 32, [v, fixed])
    np.testing.assert_array_equal(v[:32], ramp(32) * 2 + 32)


@pytest.mark.parametrize("entry", ["halves", "brains"])
def test_a_number_of_16_bits_by_value(entry: str) -> None:
    bits = np.uint16(0x3C00 if entry == "halves" else 0x3F80)
    numbers = (1.0, np.float16(1), np.float32(1), 1, True, np.int16(1), np.int32(1))
    for given in (*numbers, bits, bits.view("V2")):
        out = np.zeros(1, np.float32)
        simulator.launch(kernel(entry), 1, 1, [given, out])
        assert out[0] == 1.0, repr(given)


X = np.zeros(16, np.float32)
BAD: list[tuple[str, list[Any], type[Exception], str]] = [
    ("filter", [(X, X, 16)], ValueError, r"f takes 4 values \(x, y, n, c\), not 3"),
    ("filter", [(X, X, 16, (1, 2))], ValueError, "f.c takes 3 values"),
    ("filter", [(X, X, 1.5, (1, 2, 3))], TypeError, "f.n is int; cannot convert float"),
    ("filter", [(X, 1.5, 1, (1, 2, 3))], TypeError, "f.y is a pointer"),
    ("filter", [{"x": X}], ValueError, "f has the fields x, y, n, c, not x"),
    ("filter", [3], TypeError, "f is a struct of 32 bytes"),
    ("filter", [bytes(31)], ValueError, "f is a struct of 32 bytes, not 31"),
    ("filter", [(X, X, 1, (1, 2, 10**400))], ValueError, r"f.c.* is float; 1000.* out of its"),
    ("rows", [[1], X], TypeError, "element 0 is int"),
    ("views", [X, 1.5], TypeError, r"w is a pointer \(float\*\); cannot convert float 1.5"),
    ("views", ["x", X], TypeError, r"v is a pointer \(float\*\); cannot convert str 'x'"),
    ("few", [1.5, X], TypeError, "n is int; cannot convert float 1.5"),
    ("few", [1 << 33, X], ValueError, "n is int; 8589934592 does not fit in 32 bits"),
    ("eights", [1, X], TypeError, "h is __nv_fp8_e4m3; give its bits"),
    ("brains", [10**400, X], ValueError, "h is bf16; 1000.* is out of its range"),
    ("few", [X, X], TypeError, "n is int by value; it cannot be an array"),
]


@pytest.mark.parametrize(("name", "args", "error", "words"), BAD)
def test_bad_arguments_are_named(
    name: str, args: list[Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        simulator.launch(kernel(name), 1, 1, args)


UNNAMED = "struct S { int n; }; __global__ void k(float*, S, const float* in) { }\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((X, 0, X), "parameter 2 is a struct of 4 bytes"),
        ((1.5, (1,), X), "parameter 1 "),
        ((X, (1.5,), X), "parameter 2.n "),
        ((X, (1,), 1.5), "in "),
        ((X, (1,)), r"not 2: float\*, S, float\* in"),
    ],
)
def test_parameters_without_a_name_are_told_by_their_place(args: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"(^| ){said}"):
        simulator.launch(Kernel.from_cuda(UNNAMED, "k"), 1, 1, args)


def test_warnings_and_hazards_tell_their_place_too() -> None:
    with pytest.warns(UserWarning, match="^parameter 1: the kernel takes float"):
        simulator.launch(Kernel.from_cuda(UNNAMED, "k"), 1, 1, (X.astype(int), (1,), X))
    source = """__global__ void k(float*) {
        asm volatile("{.reg .b64 p; ld.param.u64 p, [_Z1kPf_param_0]; st.global.u32 [p+4096], 0;}");
    }"""
    run = simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [np.zeros(16, np.float32)])
    assert [h.message.split(" (")[0] for h in run.hazards] == [
        "write out of bounds: parameter 1[1024]"
    ]


@pytest.mark.parametrize("offset", [-1, 17, 1.5])
def test_a_pointer_stays_in_its_array(offset: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"of an array of 16 elements|not 1\.5"):
        Pointer(X, offset)


def test_copies_keep_what_belongs_together() -> None:
    v = ramp(64)
    given = [v, v[32:], (Pointer(v, 4), {"a": v}), [v[:8], None], 3, Named(v, 1)]
    made = copies(given)
    assert made[0] is not v
    assert made[0] is made[2][1]["a"] is made[2][0].array is made[5].x
    assert isinstance(made[5], Named)
    assert made[1].base is made[0]
    made[0][:] = -1
    assert {float(a.max()) for a in arrays_of(made)} == {-1.0}
    assert v[1] == 1


def test_a_layouts_fields_have_places() -> None:
    layout = layout_of("Nested", {"a.cu": SOURCE})
    assert isinstance(layout, TypeLayout)
    assert [(name, at) for name, at, _ in layout.fields] == [("in", 0), ("p", 48), ("on", 64)]


def test_a_run_is_a_line_at_the_prompt() -> None:
    """Whatever it holds: ``run`` in a notebook or a debugger shows what it is."""
    kernel = library.get("matmul_missing_first_barrier")
    launch = kernel.launch((16, 16, 16), 16, np.random.default_rng(0))
    for checks, said in (("all", r"[1-9] hazards?"), ("none", "not checked")):
        run = simulator.launch(kernel.kernel(16), launch.grid, launch.block, launch.args,
                               checks=checks)  # fmt: skip
        assert re.fullmatch(f"<Run {kernel.kernel(16).name}, .*: {said}>", repr(run))


def test_a_mangled_name_that_the_parameters_contradict_is_not_believed() -> None:
    head = ".version 9.0\n.target sm_90\n.address_size 64\n"
    kernel = Kernel.from_ptx(head + ".entry _Z1kPii(.param .u32 a, .param .u32 b) {}", "_Z1kPii")
    assert kernel.parameter_types == ("", "int")
    assert simulator.launch(kernel, 1, 1, [8, 3]).hazards == []
