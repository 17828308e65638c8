"""Words for structures, views and symbols; what a kernel of one's own should give."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.command_line import error_of, tilescope
from tilescope.cli.argument_spec import parse_arguments
from tilescope.cli.errors import UserError

SOURCE = """
struct Filter { const float *x; float *y; int n; };
__constant__ float coeff[3];
__global__ void blur(Filter f, float *tail) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < f.n - 1)
        f.y[i] = coeff[0] * f.x[i - 1] + coeff[1] * f.x[i] + coeff[2] * f.x[i + 1];
    if (i < 8) tail[i] = i;
}
__global__ void plus(float *A, const float *b, float *C) {
    C[threadIdx.x] = A[threadIdx.x] + b[threadIdx.x];
}
struct Window { const float *from; float scale; int2 shift; };
__constant__ Window window;
__constant__ cudaTextureObject_t wave;
__global__ void seen(const float *x, float *y) {
    y[threadIdx.x] = window.from[0] * window.scale + window.shift.y
                     + tex1Dfetch<float>(wave, threadIdx.x) + 0.5f + x[0];
}
"""
MODULE = """
import numpy as np
def right(A, b, C): C[:] = A[:32] + b
def by_name(A, b, C): return {"C": A[:32] + b}
def wrong(A, b, C): C[:] = A[:32] + b + 1
def nothing(A, b, C): pass
def bare(A, b, C): return A
def shape(A, b, C): return {"C": A}
"""
PLUS = ("plus", "--grid", 1, "--block", 32, "f32[64]=arange", "A[32:]", "f32[32]")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "own.cu"
    path.write_text(SOURCE)
    (tmp_path / "models_of_mine.py").write_text(MODULE)
    np.save(tmp_path / "right.npy", np.arange(32, dtype=np.float32) * 2 + 32)
    monkeypatch.chdir(tmp_path)
    return path


def test_structures_and_symbols_as_words(file: Path) -> None:
    words = ("struct(f32[64]=arange, f32[64], 64)", "f32[8]", "sym:coeff=f32[3]=ones")
    done = tilescope("run", file, "blur", "--grid", 2, "--block", 32, *words)
    assert done.exit_code == 0
    assert "hazards: none found" in done.stdout
    assert "coeff" not in done.stderr
    words = ("f32[64]=arange", "f32[8]", "sym:window=struct(x[32:],f32:0.5,struct(1,2))",
             "sym:wave=texture:fetch:f32[8]=ones")  # fmt: skip
    done = tilescope("run", file, "seen", "--grid", 1, "--block", 8, *words, "--expect",
                     "y=f32[8]=19.5")  # fmt: skip
    assert done.exit_code == 0, done.stdout


def test_words() -> None:
    rng = np.random.default_rng(0)
    a, (b, c, d), e = parse_arguments(
        ["i32[4,2]=arange", "struct(A[1:3], struct(u8:3, 2), 1.5)", "A[-1:]"], rng, ["A", "s", "t"]
    )
    assert np.shares_memory(a, b)
    assert (b.shape, c, d, e.tolist()) == ((2, 2), (3, 2), 1.5, [[6, 7]])
    for words, message in (
        (["X[1:]"], "no array 'X'"),
        (["i8[2]", "A[2:]"], "nothing of A is left"),
        (["struct(1, x)"], "'x' is neither"),
    ):
        with pytest.raises(UserError, match=message):
            parse_arguments(words, rng, ["A", "B"])


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--expect", "C=@right.npy"), 0),
        (("--expect", "C=f32[32]=@right.npy"), 0),
        (("--reference", "models_of_mine:right"), 0),
        (("--reference", "models_of_mine:by_name"), 0),
        (("--reference", "models_of_mine:wrong"), 1),
        (("--reference", "models_of_mine:wrong", "--close", "0,1"), 0),
        (("--expect", "C=3"), 1),
    ],
)
def test_a_wrong_result_fails(command: str, options: Any, code: int, file: Path) -> None:
    done = tilescope(command, file, *PLUS, *options)
    assert done.exit_code == code
    assert ("C is WRONG in" in done.stdout) == bool(code)
    assert ("C is within its error bound" in done.stdout) != bool(code)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--expect", "D=3"), "no array 'D' among the arguments; there are: A, b, C"),
        (("--expect", "C=@none.npy"), "No such file"),
        (("--expect", "C=1", "--expect", "C=2"), "--expect C=2: C has another --expect already"),
        (("--close", "1", "--expect", "C=1"), "give rtol,atol"),
        (("--close", "-1,0", "--expect", "C=1"), "neither may be negative"),
        (("--close", "1,0"), "give --expect or --reference, too"),
        (("--reference", "models_of_mine"), "give module:function"),
        (("--reference", "models_of_mine:none"), "no attribute 'none'"),
        (("--reference", "no_such_module:f"), "No module named"),
        (("--reference", "models_of_mine:nothing"), "changed none of its arguments"),
        (("--reference", "models_of_mine:bare"), "returned ndarray"),
        (("--reference", "models_of_mine:shape"), r"has shape (64,), not (32,)"),
    ],
)
def test_bad_references(options: Any, message: str, file: Path) -> None:
    done = tilescope("run", file, *PLUS, *options)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("command", ["predict", "barriers", "ptx", "time", "counters"])
@pytest.mark.parametrize("option", ["--expect", "--reference", "--close"])
def test_what_compares_nothing_takes_no_reference(command: str, option: str, file: Path) -> None:
    said = error_of(command, file, *PLUS, option, "C=1")
    assert said.startswith(f"no such option {option}; ")


def test_a_library_kernel_has_its_own() -> None:
    done = tilescope("run", "matmul_tiled", "--size", 16, "--expect", "C=1")
    assert done.exit_code == 2
    assert "has a reference and a bound of its own" in done.stderr


def test_parameters_without_a_name(file: Path) -> None:
    """No word can name them; what is told of them has their places."""
    writes = 'asm("{.reg .b64 p; ld.param.u64 p, [j_param_1]; st.global.u32 [p], 1;}");'
    head = 'extern "C" __global__ void {}(float*, float*, float* a) {{ *a = 2; '
    file.write_text(f"{head.format('k')} }}\n{head.format('j')} {writes} }}\n")
    launch = ("--grid", 1, "--block", 32, "f32[32]", "f32[32]")
    assert "among the parameters (none)" in tilescope("run", file, "k", *launch, "b[1:]").output
    for words, said in (
        (("--expect", "arg1=ones"), "arg1 is WRONG in 32 of 32"),
        (("--expect", "c=zeros"), "there are: arg0, arg1, a"),
        (("--compare", "j"), "parameter 2: 1 of 32 elements differ"),
    ):
        assert said in tilescope("run", file, "k", *launch, "f32[32]", *words).output


WHOLE = """
typedef unsigned long long ull;
__global__ void wide(ull *a, ull v) { a[threadIdx.x] = v; }
__global__ void narrow(int *a, int v) { a[threadIdx.x] = v; }
__global__ void flags(bool *a, bool v) { a[threadIdx.x] = v; }
"""


@pytest.mark.parametrize(
    ("kernel", "array", "value", "expect", "code"),
    [
        ("wide", "u64[4]", 2**64 - 1, 2**64 - 1, 0),
        ("wide", "u64[4]", 2**64 - 1, 2**64 - 2, 1),
        ("wide", "u64[4]", 2**53 + 1, 2**53, 1),
        ("narrow", "i32[4]", 1_000_000, 1_000_001, 1),
        ("narrow", "i32[4]", -7, -7, 0),
        ("narrow", "i32[4]", 1_000_000, "f64[4]=1000000.25", 1),
        ("narrow", "i32[4]", 1_000_000, "i64[4]=1000000", 0),
        ("flags", "u8[4]", 1, 0, 1),
    ],
)
def test_whole_numbers_are_exact_unless_a_tolerance_is_given(
    kernel: str, array: str, value: int, expect: object, code: int, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    file = Path("whole.cu")
    file.write_text(WHOLE)
    words = ("run", file, kernel, "--grid", 1, "--block", 4, array, value, "--expect")
    done = tilescope(*words, f"a={expect}")
    assert done.exit_code == code, done.stderr
    assert bool(code) == ("is WRONG in 4 of 4 elements; largest error" in done.stdout)
    assert bool(code) != ("largest error 0" in done.stdout)
    assert tilescope(*words, f"a={expect}", "--close", "1e-5,1").exit_code == 0
    pipeline = Path("some.toml")
    pipeline.write_text(
        f'[arrays]\na = "{array}"\n[[launch]]\nfile = "whole.cu"\nkernel = "{kernel}"\ngrid = 1\n'
        f'block = 4\nargs = ["a", "{value}"]\n[expect]\na = "{expect}"\n'
    )
    assert tilescope("run", pipeline).exit_code == code
    pipeline.write_text('close = "1e-5,1"\n' + pipeline.read_text())
    assert tilescope("run", pipeline).exit_code == 0


def test_an_expectation_is_told_as_it_was_typed(file: Path) -> None:
    np.save("wide.npy", np.zeros(32))
    said = tilescope("run", file, *PLUS, "--expect", "C=@wide.npy").stderr
    assert said == "error: --expect C=@wide.npy: the file holds float64 [32]\n"
    said = tilescope("run", file, *PLUS, "--expect", "C=seven").stderr
    assert said.startswith("error: --expect C=seven: 'seven' is neither a number")


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("true", "1"),
        ("False", "0"),
        ("nullptr", "0, a null pointer"),
        ("NULL", "0, a null pointer"),
    ],
)
def test_words_of_cpp_are_told_as_numbers(word: str, instead: str, file: Path) -> None:
    said = tilescope("run", file, *PLUS[:-3], "f32[64]", word, "f32[32]").stderr
    assert said == f"error: argument {word!r}: write {instead}\n"
