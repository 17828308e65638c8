"""``--launch N`` and what is typed beside it: nothing of that is put aside silently."""

from pathlib import Path

import pytest

from tests.support.command_line import tilescope

SOURCE = """
#include <cstdlib>
namespace lib {
template <int T> __global__ void set(float *a, int n, float s) {
    extern __shared__ float tile[];
    int i = blockIdx.x * T + threadIdx.x;
    if (i < n) a[i] = s;
}
}
__global__ void over(float *a) { a[threadIdx.x] = 1; }
__global__ void over(int *a) { a[threadIdx.x] = 2; }
__global__ void over(int *a, int n) { a[threadIdx.x] = n; }
int main(int argc, char **argv) {
    float *a, *b;
    int *c;
    int n = atoi(argv[1]);
    cudaMalloc(&a, 64 * sizeof(float));
    cudaMalloc(&b, n * sizeof(float));
    cudaMalloc(&c, 32 * sizeof(int));
    lib::set<32><<<2, 32>>>(a, 64, 1.5f);
    lib::set<32><<<n, 32>>>(a, n, 1.5f);
    lib::set<32><<<2, 32, n>>>(b, 64, 2);
    over<<<1, 64>>>(a);
    over<<<1, 32>>>(c);
    over<<<1, 32>>>(c, 7);
    over<<<n, 32>>>(b);
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text(SOURCE)
    return "a.cu"


@pytest.mark.parametrize(
    ("number", "words", "grid", "expect"),
    [
        (1, [], "grid 2, block 32", "a=1.5"),
        (1, ["--grid", 4], "grid 4, block 32", "a=1.5"),
        (1, ["--block", "16,2"], "grid 2, block 16x2", ""),
        (1, ["lib::set<32>"], "grid 2, block 32", "a=1.5"),
        (1, ["lib::set<64>", "--block", 64, "--grid", 1], "grid 1, block 64", "a=1.5"),
        (1, ["f32[64]", 64, 7], "grid 2, block 32", "a=7"),
        (1, ["lib::set<32>", "f32[64]", 64, 7], "grid 2, block 32", "a=7"),
        (2, ["--grid", 2, 64], "grid 2, block 32", "a=1.5"),
        (3, ["--shared", 128, "f32[64]"], "grid 2, block 32", "a=2"),
        (3, ["--shared", 0, "f32[64]"], "grid 2, block 32", "a=2"),
    ],
)
def test_what_is_typed_goes_first_and_fills_what_is_unknown(
    number: int, words: list[object], grid: str, expect: str, file: str
) -> None:
    wanted = ("--expect", expect) if expect else ()
    done = tilescope("run", file, "--launch", number, *words, *wanted)
    assert done.exit_code == 0, done.stderr + done.stdout
    assert grid in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((1, "over"), "--launch 1 is of lib::set<32>, not of over"),
        ((4, "set<32>"), "--launch 4 is of over(float *), not of set<32>"),
        ((1, "f32[64]", 64), "--launch 1 takes none, or 3, as arguments, not 2"),
        ((2, 1, 2), "--launch 2 takes 3, or the 1 that are unknown, as arguments, not 2"),
        ((7, 2, "f32[64]"), "--launch 7 takes 1, as arguments, not 2; give --grid apart"),
        ((9,), "--launch 9: a.cu has 7 launches in its host code"),
    ],
)
def test_what_does_not_go_with_it_is_refused(
    words: tuple[object, ...], told: str, file: str
) -> None:
    done = tilescope("run", file, "--launch", *words)
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((2,), "  --grid  blocks, x first, as in 4\n  n       int, as in 64\nas in\n"
         "  tilescope run a.cu --launch 2 --grid 4 64\n"),
        ((2, 64), "give\n  --grid  blocks, x first, as in 4\nas in\n"
         "  tilescope run a.cu --launch 2 64 --grid 4\n"),
        ((3, "f32[64]"), "  --shared  bytes of dynamic shared memory, as in 4096\nas in\n"),
        ((3,), "  a         float *, as in 'f32[64]'\n"),
        ((7,), "  a       float *, as in 'f32[128]'\n"),  # of --grid 4, the example
    ],
)  # fmt: skip
def test_each_part_that_is_unknown_is_named(
    words: tuple[object, ...], told: str, file: str
) -> None:
    done = tilescope("run", file, "--launch", *words)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: launch {words[0]}, line ")
    assert told in done.stderr
    assert "tilescope check a.cu" in tilescope("check", file, "--launch", *words).stderr


def test_overloads_are_told_apart(file: str) -> None:
    for number, kinds, value in ((4, "float *", 1), (5, "int *", 2), (6, "int *, int", 7)):
        done = tilescope("run", file, "--launch", number, "--expect", f"a={value}")
        assert done.exit_code == 0, done.stderr
        assert f"over({kinds})" in tilescope("run", file).stderr


def test_ptx_shows_the_kernel_of_the_launch(file: str) -> None:
    for words, told in (
        (["--launch", "6"], ".entry _Z4overPii("),
        (["--launch", "2"], ".entry _ZN3lib3setILi32"),
        (["nope", "--launch", "4"], "is of over(float *), not of nope"),
    ):
        assert told in tilescope("ptx", file, *words).output


def test_targets_without_launches(file: str, tmp_path: Path) -> None:
    Path("b.cu").write_text("__global__ void k(float *a) { *a = 1; }")
    for target, told in (
        ("nofile.cu", "no file 'nofile.cu'"),
        ("b.cu", "--launch 1: b.cu has no launches in its host code"),
        ("matmul_naive", "matmul_naive sets its own launch shape; choose --size and --tile"),
    ):
        done = tilescope("run", target, "--launch", 1)
        assert (done.exit_code, done.stderr) == (2, f"error: {told}\n")


def test_another_kernel_beside_a_launch(file: str) -> None:
    done = tilescope("run", file, "--launch", 2, 64, "--grid", 2, "--compare", "lib::set<64>")
    assert done.exit_code == 0, done.stderr


def test_the_only_launch_says_what_its_text_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No shape is asked for that the text has, and no ``?`` is explained where there is none."""
    monkeypatch.chdir(tmp_path)
    kernel = "__global__ void k(float *a, int n) { a[threadIdx.x] = n; }\n"
    Path("one.cu").write_text(kernel + "void f(float *d) { k<<<2, 64>>>(d, 3); }\n")
    done = tilescope("check", "one.cu")
    assert done.exit_code == 2
    assert done.stderr == (
        "error: launch 1, line 2: the host code does not say 1 argument; give\n"
        "  a  float *, as in 'f32[128]'\nas in\n"
        "  tilescope check one.cu --launch 1 'f32[128]'\n"
    )
    typed = done.stderr.splitlines()[-1].split()[1:]
    assert tilescope(*[word.strip("'") for word in typed]).exit_code == 0
    launches = "k<<<1, 64>>>(d, 1); k<<<2, 64>>>(d, 2);"
    for known in (True, False):
        made = "float *d; cudaMalloc(&d, 4096);" if known else ""
        Path("two.cu").write_text(f"{kernel}void f(float *d) {{ {{ {made} {launches} }} }}\n")
        listed = tilescope("run", "two.cu").stderr
        assert ("stands as ?" in listed) == (not known)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ovr", "no kernel 'ovr' in a.cu; did you mean over?"),
        ("lib::st<3>", "no kernel 'lib::st<3>' in a.cu; did you mean set?"),
        ("kn", "no kernel 'kn' in a.cu; there are: lib::set<...>, over"),
        ("over", "which launch of a.cu?"),
    ],
)
def test_a_name_of_no_kernel_precedes_the_choice_of_a_launch(
    name: str, said: str, file: str
) -> None:
    done = tilescope("check", file, name)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {said}")


def test_a_kernel_that_a_macro_declares_is_not_denied(file: str) -> None:
    macro = "#define MAKE(name) __global__ void name(float *a) { a[0] = 1; }\nMAKE(made)\n"
    Path(file).write_text(macro + SOURCE)
    assert "no kernel" not in tilescope("check", file, "made").stderr


def test_arrays_of_vectors_are_proposed_with_an_element_for_each_thread(file: str) -> None:
    kernel = "__global__ void k(float4 *a, int2 *b) { a[threadIdx.x].w = b[threadIdx.x].y; }\n"
    sized = "int2 *b; cudaMalloc(&b, 200 * sizeof(int2));"
    for code, elements in (("int2 *b = made();", 128), (sized, 200)):
        host = f"void f(float4 *a) {{ {code} k<<<2, 64>>>(a, b); }}\n"
        Path(file).write_text(kernel + host)
        assert f"as in 'f32[{4 * elements}]'" in tilescope("check", file).stderr
