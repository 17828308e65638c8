"""Whole programs as tutorials and samples write them: their kernels run, as they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from kernels.errors import CompileError
from tests.support.paths import DEFECTS, TESTS

FOLDER = TESTS / "programs"
I32, F32, F64, U8 = np.int32, np.float32, np.float64, np.uint8


@dataclass(frozen=True)
class Row:
    """A launch of one kernel of a program, and whether the result is right."""

    file: str
    entry: str
    grid: int | Sequence[int]
    block: int | Sequence[int]
    args: Callable[[], list[Any]]
    right: Callable[[list[Any]], Any]
    shared: int = 0
    options: tuple[str, ...] = ()
    builds: tuple[str, ...] = ("device", "source")


def ramp(n: int, dtype: Any = F32) -> Any:
    return np.arange(n).astype(dtype)


def matrix() -> Any:
    made = np.zeros((), np.dtype([("rows", "i4"), ("cols", "i4"), ("data", "u8")]))
    return made[()]


SIZE = np.zeros((), np.dtype([("width", "i4"), ("height", "i4")]))[()]
SIZE["width"], SIZE["height"] = 16, 4

ROWS = [
    Row("saxpy.cu", "saxpy", 2, 32, lambda: [50, 2.0, ramp(50), ramp(50)],
        lambda a: a[3] == ramp(50) * 3),
    Row("check_macro.cu", "transpose", (2, 2), (8, 8), lambda: [ramp(144), ramp(144) * 0, 12],
        lambda a: a[1].reshape(12, 12) == ramp(144).reshape(12, 12).T),
    Row("thrust_host.cu", "apply<square_op>", 2, 32, lambda: [ramp(100), 100, np.uint8(0)],
        lambda a: a[0] == ramp(100) ** 2),
    Row("constant_filter.cu", "blur", 4, 16, lambda: [ramp(64, U8) * 0 + 9, ramp(64, U8), SIZE],
        lambda a: a[1] == 9, shared=64),
    Row("constant_filter.cu", "blur", 4, 16, lambda: [ramp(64, U8) * 0 + 9, ramp(64, U8), SIZE],
        lambda a: a[1] == 18, shared=64, options=("-DSCALE=2.0f",)),
    Row("class_kernel.cu", "linear::add<2>", 1, 32, lambda: [ramp(50) * 0, ramp(50), ramp(50), 50],
        lambda a: a[0] == ramp(50) * 2),
    Row("class_kernel.cu", "linear::fill", 1, 1, lambda: [matrix(), 1.0], lambda a: True),
    Row("cooperative.cu", "total", 2, 64, lambda: [ramp(1, I32), ramp(1000, I32) * 0 + 1, 1000],
        lambda a: a[0] == 1000),
    Row("modern.cu", "reduce<Mode::largest, float>", 1, 32, lambda: [ramp(90), ramp(1), 90],
        lambda a: a[1] == 89, options=("-std=c++20",)),
    Row("modern.cu", "reduce<Mode::sum, int>", 1, 32, lambda: [ramp(90, I32), ramp(1, I32), 90],
        lambda a: a[1] == 89 * 45, options=("-std=c++20",)),
    Row("several.cu", "first", 1, 64, lambda: [ramp(64)], lambda a: a[0] == ramp(64) + 1),
    Row("several.cu", "second", 1, 64, lambda: [ramp(64)], lambda a: a[0] == ramp(64) * 2 + 1),
    Row("several.cu", "third", 1, 1, lambda: [ramp(1), 1], lambda a: a[0] == F32(2**0.5 + 7)),
    Row("uses_header.cu", "shift", 1, 32, lambda: [ramp(30) * 0, ramp(10), 10],
        lambda a: a[1] == F32(14) ** F32(0.5)),
    Row("block_reduce.cu", "block_sum<64>", 2, 64, lambda: [ramp(128, I32), ramp(2, I32)],
        lambda a: a[1] == [63 * 32, 63 * 32 + 64 * 64]),
    Row("standard_names.cu", "clamp_all", 1, 32, lambda: [ramp(32), 32, 3.0],
        lambda a: a[0] == np.minimum(np.sqrt(ramp(32)), 3)),
    Row("norm.cu", "norm", 1, 1, lambda: [ramp(3, F64) + 2, ramp(1, F64), 3],
        lambda a: a[1] == 29**0.5),
    Row("windows.cu", "add", 1, 32, lambda: [ramp(32, I32), 20],
        lambda a: a[0] == ramp(32, I32) + (ramp(32) < 20)),
    Row("reduce_ptr.cu", "reduceNeighbored", 2, 64, lambda: [ramp(128, I32), ramp(2, I32), 128],
        lambda a: a[1] == [63 * 32, 63 * 32 + 64 * 64]),
    Row("lambda.cu", "for_each<Scale>", 1, 32, lambda: [0, np.zeros(16, U8).tobytes()],
        lambda a: True),
]  # fmt: skip


# With cub, cooperative groups, the standard library: a second to compile, as their device builds.
DEAR = {
    (file, "source"): pytest.mark.slow
    for file in ("block_reduce.cu", "cooperative.cu", "modern.cu", "standard_names.cu")
}
CASES = [
    pytest.param(r, b, id=f"{r.file}-{r.entry}-{b}", marks=DEAR.get((r.file, b), ()))
    for r in ROWS for b in r.builds
]  # fmt: skip


@pytest.mark.slow_cases(
    "...block_sum<64>-device", "constant_filter.cu-blur-source0", "cooperative.cu-total-device",
    "modern.cu-reduce<Mode...", "standard_names.cu-clamp_all-device",
)  # fmt: skip
@pytest.mark.parametrize(("row", "build"), CASES)
def test_a_kernel_of_a_program(row: Row, build: str) -> None:
    kernel = Kernel.from_cuda(FOLDER / row.file, row.entry, options=row.options, build=build)
    args = row.args()
    run = simulator.launch(kernel, row.grid, row.block, args, shared_bytes=row.shared)
    assert np.all(row.right(args))
    assert [h for h in run.hazards if h.severity == "error"] == []


def test_every_program_is_run() -> None:
    assert {row.file for row in ROWS} == {path.name for path in FOLDER.glob("*.cu")}


STYLES = [
    pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem == "graph" else ())
    for path in sorted((FOLDER / "styles").glob("*.cu"))
]


@pytest.mark.slow_cases("curand", "wmma")
@pytest.mark.parametrize("build", ["device", pytest.param("source", marks=pytest.mark.slow)])
@pytest.mark.parametrize("file", STYLES)
def test_other_styles_compile_in_both_builds(file: Path, build: str) -> None:
    """Each fails as it stands: with host code, or headers that are not there."""
    entry = "k<float,32>" if file.stem == "templ" else "k"
    assert Kernel.from_cuda(file, entry, build=build).params


COMPILE = DEFECTS / "compile"


@pytest.mark.slow_but(
    "clock.cu-32", "cut_loses_endif.cu-32", "host_decl.cu-32", "tex_file.cu-32", "uint.cu-32"
)
@pytest.mark.parametrize(
    ("file", "size"),
    [
        ("cut_loses_endif.cu", 32), ("cut_loses_includes.cu", 32), ("uint.cu", 32),
        ("cut_loses_namespace_alias.cu", 32), ("host_decl.cu", 32), ("cubreduce.cu", 128),
        ("cubscan.cu", 128), ("clock.cu", 32), ("tex_file.cu", 32),
    ],
)  # fmt: skip
def test_what_was_refused_or_cut_to_pieces(file: str, size: int) -> None:
    """Programs of the defects: what nvcc takes is taken, and cub's algorithms compute."""
    entry = "plain" if file == "tex_file.cu" else "k"
    kernel = Kernel.from_cuda(COMPILE / file, entry)
    whole = file.startswith("cub")
    x = np.ones(size, I32 if whole else np.int64 if file == "clock.cu" else F32)
    simulator.launch(kernel, 1, size, [x], checks="none")
    expected: dict[str, Any] = {
        "cut_loses_endif.cu": x * 0 + 2, "cut_loses_includes.cu": x * 0 + 2,
        "uint.cu": np.arange(size), "cubreduce.cu": [128, *[1] * 127],
        "cubscan.cu": np.arange(size), "clock.cu": x,
    }  # fmt: skip
    assert x.tolist() == list(expected.get(file, np.ones(size)))


@pytest.mark.slow
def test_a_kernel_may_have_any_name_that_cpp_gives_it() -> None:
    names = [
        "norm", "max", "min", "exp", "printf", "log", "pow", "abs", "floor", "round", "sin", "cos",
        "fabs", "sqrt", "malloc", "free", "memcpy", "memset", "clock", "y0", "rsqrt", "fma", "div",
        "index", "time", "exit", "hypot", "erf", "swap",
    ]  # fmt: skip
    for name in names:
        source = f"__global__ void {name}(float* x, int n) {{ x[threadIdx.x] = n; }}"
        x = np.zeros(32, F32)
        simulator.launch(Kernel.from_cuda(source, name), 1, 32, [x, 7], checks="none")
        assert (x == 7).all(), name


def test_overloaded_kernels_are_told_apart() -> None:
    source = (
        "__global__ void k(float* x) { *x = 1; } __global__ void k(double* x) { *x = 2; }"
        "namespace deep { __global__ void k(int* x) { *x = 3; } }"
    )
    with pytest.raises(CompileError, match=r"_Z1kPf \(float\*\); _Z1kPd \(double\*\)"):
        Kernel.from_cuda(source, "k")
    x = np.zeros(1)
    simulator.launch(Kernel.from_cuda(source, "_Z1kPd"), 1, 1, [x])
    assert x[0] == 2
    y = np.zeros(1, I32)
    simulator.launch(Kernel.from_cuda(source, "deep::k"), 1, 1, [y])
    assert y[0] == 3


@pytest.mark.slow_cases("...return a + z", "...z[r * cols")
@pytest.mark.parametrize(
    ("file", "entry", "right", "wrong"),
    [
        ("saxpy.cu", "saxpy", "a*x[i]", "a*z[i]"),
        ("check_macro.cu", "transpose", "tile[threadIdx.y][threadIdx.x] =", "z ="),
        ("thrust_host.cu", "apply<square_op>", "return x * x", "return x * z"),
        ("constant_filter.cu", "blur", "row[x] = in", "row[z] = in"),
        ("class_kernel.cu", "linear::fill", "return data[r * cols", "return z[r * cols"),
        ("modern.cu", "reduce<Mode::sum, float>", "return a + b", "return a + z"),
        ("several.cu", "third", "v < lo ? lo", "v < z ? lo"),
        ("windows.cu", "add", "ADD(x[i], 1)", "ADD(z[i], 1)"),
    ],
)
def test_the_compilers_error_about_device_code(
    tmp_path: Path, file: str, entry: str, right: str, wrong: str
) -> None:
    """Not about host code that is still there, and with the line that it has in the file."""
    text = (FOLDER / file).read_bytes().decode("utf-8-sig")
    line = text[: text.index(right)].count("\n") + 1
    path = tmp_path / file
    path.write_bytes(text.replace(right, wrong, 1).encode())
    options = ("-std=c++20",) if file == "modern.cu" else ()
    with pytest.raises(CompileError) as caught:
        Kernel.from_cuda(path, entry, options=options)
    first = str(caught.value).splitlines()[0]
    assert first == f'{path}({line}): error: identifier "z" is undefined'
    errors = [text for text in str(caught.value).splitlines() if "): error:" in text]
    assert all(f"{file}({line})" in text for text in errors)


def test_an_error_in_a_header_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.cuh").write_text(
        "#include <vector>\ninline std::vector<int> host() { return {}; }\n"
        "__device__ int twice(int x) { return 2 * y; }\n"
    )
    (tmp_path / "main.cu").write_text(
        '#include "part.cuh"\n__global__ void k(int* x) { *x = twice(*x); }\n'
        "int main() { k<<<1, 1>>>(nullptr); }\n"
    )
    with pytest.raises(CompileError) as caught:
        Kernel.from_cuda(tmp_path / "main.cu", "k", options=(f"-I{tmp_path / 'parts'}",))
    assert 'part.cuh(3): error: identifier "y" is undefined' in str(caught.value)
    assert "std::vector" not in str(caught.value)


def test_a_hazard_in_a_header_of_the_users_is_told_with_its_line() -> None:
    kernel = Kernel.from_cuda(FOLDER / "uses_header.cu", "shift")
    run = simulator.launch(kernel, 1, 32, [ramp(27), ramp(10), 10])
    assert {h.kind for h in run.hazards} == {"out-of-bounds"}
    places = {(Path(s.file).name, s.line) for h in run.hazards for s in h.sources}
    assert ("vec.cuh", 10) in places
    assert all("vec3" in s.code or "points" in s.code for h in run.hazards for s in h.sources)
    lines = {(Path(line.file).name, line.code) for line in run.by_line()}
    assert any(name == "vec.cuh" and "dot" in code for name, code in lines)


def test_a_header_that_is_not_there_is_told_where_it_matters() -> None:
    source = '#include "lost.h"\n__global__ void k(Lost* x) { x->y = 1; }\n'
    with pytest.raises(CompileError) as caught:
        Kernel.from_cuda(source, "k")
    assert 'identifier "Lost" is undefined' in str(caught.value)
    assert str(caught.value).endswith("(not found: lost.h; -I FOLDER says where to look)")


def test_device_code_that_calls_the_hosts_is_told_why() -> None:
    source = """\
float unmarked(float x) { return x; }
__global__ void k(float* x) { x[0] = unmarked(2.f); }
int main() { k<<<1, 1>>>(0); }
"""
    with pytest.raises(CompileError) as caught:
        Kernel.from_cuda(source, "k")
    first, *_, last = str(caught.value).splitlines()
    assert first == 'kernel.cu(2): error: identifier "unmarked" is undefined'
    assert last == "(unmarked is the host's: it is not marked __device__)"
