"""Arrays of another dtype than the source says: a warning, on every path."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import simulator
from kernels import Kernel
from kernels.source.element_types import misfit
from kernels.source.mangling import demangle
from simulator import ArgumentWarning
from tilescope.cli.main import main

SOURCE = """
#include <cuda_fp16.h>
typedef float real;
struct Pair { float a, b; };
__global__ void plain(float* x, const int* n) { x[threadIdx.x] += n[0]; }
template <typename T> __global__ void made(const T* in, T* out) { out[0] = in[0]; }
template <typename T> __global__ void by_value(T in) { in[0] = 1; }
extern "C" __global__ void known(const real* r, const unsigned int* u, double* __restrict__ d) {}
extern "C" __global__ void c_linkage(const float* x, unsigned long long y[], int n) {}
struct Both { int a; unsigned b; };
__global__ void fields(Both p) {}
__global__ void loose(void* v, char* c, Pair* p, float4* q, __half* h, unsigned* u, bool* b) {}
"""


def told(entry: str, *args: Any, build: str = "device") -> list[str]:
    """What a launch warns of, by Python's means and in the run."""
    kernel = Kernel.from_cuda(SOURCE, entry, build=build)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = simulator.launch(kernel, 1, 1, args)
    assert [str(w.message) for w in caught] == list(run.warnings)
    assert all(w.category is ArgumentWarning for w in caught)
    assert all(w.filename == __file__ for w in caught)
    assert run.to_dict()["argument_warnings"] == list(run.warnings)
    return list(run.warnings)


def zeros(dtype: Any) -> Any:
    return np.zeros(32, dtype)


def test_big_endian_arrays_are_named() -> None:
    wrong = "x: the array is big-endian (>f4), a GPU is not; its bytes are taken as they are"
    assert told("plain", zeros(">f4"), zeros("<i4")) == [wrong]
    assert len(told("plain", zeros([("a", "u1"), ("b", ">i8")]), zeros("i4"))) == 1
    assert told("loose", *(zeros(kind) for kind in (">i4", "u1", "f4", "f4", "f2", "u4", "?"))) == [
        "v: the array is big-endian (>i4), a GPU is not; its bytes are taken as they are"
    ]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [("size_t", "unsigned long"), ("int64_t", "long long"), ("unsigned long long", "")],
)
def test_an_array_for_a_number_is_named(kind: str, shown: str) -> None:
    """Two arguments the wrong way round: the address would be a count. An address it may be."""
    source = f"""__global__ void k({kind} n, float* x) {{
    if (n == (unsigned long long)x) x[0] = 1;
}}"""
    x = zeros("f4")
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        run = simulator.launch(Kernel.from_cuda(source, "k"), 1, 1, [x, x])
    told = f"n: the kernel takes {shown}, no pointer; the array's address is taken"
    assert (list(run.warnings), x[0]) == ([told] * bool(shown), 1)


@pytest.mark.parametrize("build", ["device", "source"])
def test_the_wrong_dtype_is_named(build: str) -> None:
    assert told("plain", zeros("f4"), zeros("i4"), build=build) == []
    assert told("plain", zeros("f8"), zeros("i4"), build=build) == [
        "x: the kernel takes float*, the array is float64; its bytes are taken as they are"
    ]
    assert len(told("plain", zeros("i4"), zeros("f4"), build=build)) == 2
    assert told("plain", zeros("f4"), zeros("u4"), build=build) == []
    assert len(told("plain", zeros("f4"), zeros("i8"), build=build)) == 1


def test_templates() -> None:
    assert told("made<float>", zeros("f4"), zeros("f4")) == []
    assert len(told("made<float>", zeros("f8"), zeros("f8"))) == 2
    assert told("made<double>", zeros("f8"), zeros("f8")) == []
    [only] = told("made<unsigned char>", zeros("u1"), zeros("i4"))
    assert only.startswith("out: the kernel takes unsigned char*")
    assert len(told("by_value<float*>", zeros("f8"))) == 1


def test_c_linkage_is_read_in_the_source() -> None:
    assert told("c_linkage", zeros("f4"), zeros("u8"), 1) == []
    first, second = told("c_linkage", zeros("f8"), zeros("u4"), 1)
    assert (first[:2], second[:2]) == ("x:", "y:")
    assert told("known", zeros("f4"), zeros("u4"), zeros("f8")) == []
    assert len(told("known", zeros("f8"), zeros("f4"), zeros("f4"))) == 3  # real is a typedef


def test_numbers_that_a_signed_type_does_not_hold_are_named() -> None:
    """C++ converts them without a word, and so does a launch; a mask may well be meant."""
    assert told("c_linkage", zeros("f4"), zeros("u8"), 1 << 31) == [
        "n: the kernel takes int, for which 2147483648 is -2147483648"
    ]
    assert told("c_linkage", zeros("f4"), zeros("u8"), np.int64(-5)) == []
    assert told("fields", (1 << 31, 1 << 31)) == [
        "p.a: the kernel takes int, for which 2147483648 is -2147483648"
    ]
    kernel = Kernel.from_cuda(
        "__device__ int g; __device__ unsigned u; __global__ void k() {}", "k"
    )
    with pytest.warns(ArgumentWarning, match=r"'g'.* int, for which 2147483648 is -2") as caught:
        simulator.launch(kernel, 1, 1, [], symbols={"g": 1 << 31, "u": 1 << 31})
    assert len(caught) == 1


def test_bytes_structs_and_vectors_are_not_complained_of() -> None:
    good = ("f8", "f8", "f4", "f4", "f2", "i4", "u1")
    assert told("loose", *map(zeros, good)) == []
    pairs = np.zeros(4, [("a", "f4"), ("b", "f4")])
    assert told("loose", zeros("u1"), zeros("i4"), pairs, zeros("c8"), zeros("f2"),
                zeros("u4"), zeros("?")) == []  # fmt: skip
    assert len(told("loose", *map(zeros, ("f8", "f8", "f4", "f8", "f4", "f4", "i4")))) == 4


@pytest.mark.parametrize(
    ("element", "good", "bad"),
    [
        ("float", "f4 c8", "f8 i4 u4 f2 ?"), ("int", "i4 u4", "f4 i8 i2"),
        ("long long", "i8 u8", "f8 i4"), ("char", "f8 i4 u1", ""), ("void", "f8 i4", ""),
        ("double2", "f8 c16", "f4 i8"), ("uchar4", "u1 i1", "f4 i4"), ("__half2", "f2", "f4 u2"),
        ("__nv_bfloat16", "u2 i2 f2", "f4"), ("Thing", "f8 i4", ""), ("longlong2", "i8", "i4"),
    ],
)  # fmt: skip
def test_what_fits(element: str, good: str, bad: str) -> None:
    assert [d for d in good.split() if misfit(element, np.dtype(d))] == []
    assert [d for d in bad.split() if not misfit(element, np.dtype(d))] == []


@pytest.mark.parametrize(
    ("symbol", "name", "params"),
    [
        ("_Z2k1PKfPfPVKiP6float4PyS1_", "k1", "float* float* int* float4* y float*"),
        ("_ZN1a1b2k2IfEEvPT_PKS2_1VIS2_Li3EEPS7_", "a::b::k2",
         "float* float* V<float,3> V<float,3>*"),
        ("_Z3k11IPKiEvT_S2_S2_PKfS4_", "k11", "int* int* int* float* float*"),
        ("_ZN1a1b2k1EPNS0_1QEPKS1_1P", "a::b::k1", "a::b::Q* a::b::Q* P"),
        ("_Z2k5IdN1a1b1QELin3ELb1EEvPT_PT0_2OpIS3_EPKS3_PS8_", "k5",
         "double* a::b::Q* Op<double> double* Op<double>*"),
        ("_Z2k9PFfiEPA3_fPKPKfS4_", "k9", "function* float[]* float** float*"),
        ("_Z2goIZN1C1mEPfEUliE_EvT_i", "go", "C::m::{lambda} int"),
        ("_Z2goIZ4callIZ4userPfSt4pairIifEEUliE_EvT_iEUliE_EvS5_i", "go",
         "call::{lambda} int"),
        ("_Z4manyIZ4userPfSt4pairIifEEUliE_JS2_PFiiEEEvT_DpT0_", "many",
         "user::{lambda} std::pair<int,float>,function*"),
        ("_Z4manyIM1WIiEKFviEJEEvT_DpT0_", "many", "W<int>::*function"),
        ("_Z1kI3tagIPFivEXadL_Z4mainEELj1EEEvT_", "k", "tag<function*,&main,1>"),
    ],
)  # fmt: skip
def test_mangled_names_as_nvcc_writes_them(symbol: str, name: str, params: str) -> None:
    found = demangle(symbol)
    assert found is not None
    assert found.name == name
    expected = params.replace(" y ", " unsigned_long_long* ").split()
    assert [p.replace(", ", ",").replace(" ", "_") for p in found.params] == expected


def test_names_that_are_not_read() -> None:
    for symbol in ("k", "_Z", "_Z9k", "_Z1kT_", "_Z1kS9_", "_ZN", "_Z" + "P" * 500, "_Z1kIXT_EEv",
                   "_Z" + "Z" * 500):  # fmt: skip
        assert demangle(symbol) is None


# -- the commands -----------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.cu"
    path.write_text(SOURCE)
    return path


def tilescope(*words: Any) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


SHAPE = ("--grid", 1, "--block", 1)
WARNING = (
    "warning: x: the kernel takes float*, the array is float64; its bytes are taken as they are"
)


@pytest.mark.slow_cases("view")
@pytest.mark.parametrize("command", ["run", "check", "view"])
def test_commands_warn_once(command: str, file: Path, tmp_path: Path) -> None:
    more = ("-o", tmp_path / "page.html") if command == "view" else ()
    wrong = tilescope(command, file, "plain", *SHAPE, "f64[32]", "i32[1]", *more)
    assert wrong.exit_code == 0
    assert " ".join(wrong.output.split()).count(WARNING) == 1
    right = tilescope(command, file, "plain", *SHAPE, "f32[32]", "i32[1]", *more)
    assert "warning" not in right.output


def test_check_counts_it_among_the_warnings(file: Path, tmp_path: Path) -> None:
    words = ("check", file, "plain", *SHAPE, "f64[32]", "i32[1]")
    assert tilescope(*words, "--fail-on", "warning").exit_code == 1
    tilescope(*words, "--json", tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    assert f"warning: {content['argument_warnings'][0]}" == WARNING
