"""Which kernel a launch of the host's is of, and that what is listed can be launched."""

import shlex
from pathlib import Path

import pytest

from kernels.host.host_launches import host_launches
from tests.support.command_line import tilescope

KERNELS = """
template <class T, int W> __global__ void k(const T *a, T s) {}
template <typename T> __global__ void offset(T *a, int s) {
    int i = blockDim.x * blockIdx.x + threadIdx.x + s;
    a[i] = a[i] + 1;
}
template <bool B> __global__ void flag(int *a) {}
__global__ void one(float *a) { a[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
__global__ void two(float *a) { a[blockIdx.x * blockDim.x + threadIdx.x] += 2; }
"""
START = "float *f; double *d; cudaMalloc(&f, 256); cudaMalloc(&d, 256);"


def listed(source: str) -> list[str]:
    return [" ".join(one.words("")[1:]) for one in host_launches(KERNELS + source)]


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("offset<<<2, 32>>>(f, 0);", "offset<float> --grid 2 --block 32 f32[64] 0"),
        ("k<<<2, 32>>>(d, 2.0);", "k<double, ?> --grid 2 --block 32 f64[32] 2.0"),
        ("k<<<2, 32>>>(d, 2.f);", "k<?, ?> --grid 2 --block 32 f64[32] 2.0"),
        ("const int H = 8; k<float, H * 2><<<1, H>>>(f, 1);",
         "k<float, 16> --grid 1 --block 8 f32[64] 1"),
        ("using real = float; k<real, 4><<<1, 1>>>(f, 1);",
         "k<float, 4> --grid 1 --block 1 f32[64] 1"),
        ("int n = argc; k<float, n><<<1, 1>>>(f, 1);", "k<float, ?> --grid 1 --block 1 f32[64] 1"),
        ("auto made = k<float, 8>; made<<<1, 1>>>(f, 1);",
         "k<float, 8> --grid 1 --block 1 f32[64] 1"),
        ("void (*p)(float *) = &two; p<<<1, 1>>>(f);", "two --grid 1 --block 1 f32[64]"),
        ("auto p = argc > 1 ? one : two; p<<<1, 1>>>(f);", "? --grid 1 --block 1 f32[64]"),
        ("void (*all[])(float *) = {one, two}; all[i]<<<1, 1>>>(f);",
         "? --grid 1 --block 1 f32[64]"),
        ("elsewhere<<<1, 1>>>(f);", "elsewhere --grid 1 --block 1 f32[64]"),
        # as formatters write it, and behind macros
        ("one << < 4, 64 >> > (f);", "one --grid 4 --block 64 f32[64]"),
        ("k<float, sizeof(A<B<int>>)> << <dim3(4), 64 >> >\n(f, 1);",
         "k<float, sizeof(A<B<int>>)> --grid 4 --block 64 f32[64] 1"),
        ("k<float, 1><<<A<B<int> >(4), 64>>>(f, 1);",
         "k<float, 1> --grid ? --block 64 f32[64] 1"),
        ("TIME\none<<<4, 64>>>(f);\nSTOP(1)", "one --grid 4 --block 64 f32[64]"),
        ("TIME one<<<4, 64>>>(f); STOP(1)", "one --grid 4 --block 64 f32[64]"),
        ("UNKNOWN(1) k<float, 2><<<4, 64>>>(f, 1);", "k<float, 2> --grid 4 --block 64 f32[64] 1"),
        ("UNKNOWN // starts\n    one<<<4, 64>>>(f);", "one --grid 4 --block 64 f32[64]"),
        ("DISPATCH(3, { const int N = 2; k<float, N><<<4, 64>>>(f, 1); });",
         "k<float, 2> --grid 4 --block 64 f32[64] 1"),
        ("DISPATCH(3, [&] { one<<<4, 64>>>(f); })\nint n;", "one --grid 4 --block 64 f32[64]"),
        # behind what leads the grammar astray
        ("for (int i = 0; i < 4; i++) BEGIN k<float, 4> <<<4, 64>>>(f, 1);",
         "k<float, 4> --grid 4 --block 64 f32[64] 1"),
        ("if (argc < 4) BEGIN k<T, 4><<<4, 64>>>(f, 1);", "k<?> --grid 4 --block 64 f32[64] 1"),
        ("assert(argc < 4)\none<<<4, 64>>>(f); two<<<2, 64>>>(f);",
         "one --grid 4 --block 64 f32[64]"),
        ("assert(argc < 4)\nelsewhere<<<4, 64>>>(f);", "elsewhere --grid 4 --block 64 f32[64]"),
        ("if (argc < 4) BEGIN elsewhere<<<4, 64>>>(f);", "elsewhere --grid 4 --block 64 f32[64]"),
        # as macros have it
        ("SECOND<<<4, 64>>>(f);", "two --grid 4 --block 64 f32[64]"),
        ("NOWHERE<<<4, 64>>>(f);", "? --grid 4 --block 64 f32[64]"),
        # by calls
        ("int n = 3; float s = 2; void *args[] = {&d, (void *)&s};"
         " cudaLaunchCooperativeKernel((void *)k<double, 2>, dim3(4), 256, args, 16, 0);",
         "k<double, 2> --grid 4 --block 256 --shared 16 --cooperative f64[32] 2"),
        ("cudaLaunchKernel(reinterpret_cast<const void *>(&one), 4, 64, given, 0, 0);",
         "one --grid 4 --block 64 ?"),
    ],
)  # fmt: skip
def test_the_kernel_is_named_as_outside_of_the_function(code: str, command: str) -> None:
    macros = "#define TIME\n#define STOP(x) stop(x);\n#define DISPATCH(n, ...) { __VA_ARGS__ }\n"
    macros += "#define SECOND two\n#define NOWHERE not_here\n"
    assert listed(f"{macros}int main(int argc, char **) {{ {START} {code} }}")[:1] == [command]


@pytest.mark.parametrize(
    ("calls", "kernels"),
    [
        ("go<16>(f, 3); go<4, double>(d, 3);", ["k<float, 8>", "k<double, 2>"]),
        ("outer(f); outer<int>(0);", ["k<float, 32>", "k<int, 32>"]),
        ("go<16>(f, 3); go<16>(f, 4);", ["k<float, 8>"]),
        ("", ["k<?, ?>"]),
        ("go<N>(f, 3);", ["k<?, ?>"]),
        ("} template void go<6, char>(char *, int); void after() {", ["k<char, 3>"]),
    ],
)
def test_calls_say_what_a_function_template_launches(calls: str, kernels: list[str]) -> None:
    source = """
    template <int N, typename T> void go(T *p, int n) {
        const int H = N / 2;
        k<T, H><<<N, H>>>(p, n);
    }
    template <class U> void outer(U *p) { go<64>(p, 1); }
    int main(int argc, char **) { int N = argc; START CALLS }
    """
    found = listed(source.replace("START", START).replace("CALLS", calls))
    assert [command.split(" --grid")[0] for command in found] == kernels


def test_calls_in_a_circle_and_without_end() -> None:
    source = """
    template <int N> void down(float *p) { flag<N><<<1, N>>>(p); down<N + 1>(p); up<N>(p); }
    template <int N> void up(float *p) { down<N>(p); up<N + 1>(p); }
    int main() { down<1>(0); }
    """
    assert 1 <= len(listed(source)) <= 16
    source = "template <int N> void g0(float *p) { flag<N><<<1, N>>>(p); }" + "".join(
        f"template <int N> void g{n}(float *p) {{ g{n - 1}<N>(p); g{n - 1}<N + {n}>(p); }}"
        for n in range(1, 400)
    )
    assert 1 <= len(listed(source)) <= 16
    many = "".join(f"go<{n}>(0);" for n in range(1000))
    source = f"template <int N> void go(float *p) {{ flag<N><<<1, N>>>(p); }} void all() {{{many}}}"
    assert len(listed(source)) == 16


def test_what_is_listed_can_be_launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text(
        KERNELS
        + """\
template <class T> void go() { T *p; cudaMalloc(&p, 64 * sizeof(T));
  offset<<<2, 32>>>(p, 0);
  offset<T><<<2, 32>>>(p, 0); }
int main() { go<float>(); go<double>(); }"""
    )
    told = tilescope("run", "a.cu").stderr
    commands = [line.split() for line in told.splitlines() if "tilescope run" in line]
    assert [words[3] for words in commands] == ["'offset<float>'", "'offset<double>'"] * 2
    for number, words in enumerate(commands, 1):
        done = tilescope("run", "a.cu", "--launch", number)
        assert (done.exit_code, done.stderr) == (0, "")
        kind = "float" if number % 2 else "double"
        assert done.stdout.startswith(f"offset<{kind}>\n")
        assert tilescope(*shlex.split(" ".join(words[1:]))).exit_code == 0


def test_an_array_of_structures_has_their_bytes(tmp_path: Path) -> None:
    source = """struct Cell { int key; double weight; };
        __global__ void k(Cell* cells) { cells[threadIdx.x].key = 1; }
        int main() { Cell* c; cudaMalloc(&c, 32 * sizeof(Cell)); k<<<1, 32>>>(c); }"""
    (tmp_path / "a.cu").write_text(source)
    assert tilescope("run", tmp_path / "a.cu").exit_code == 0
    for unknown, answer in (("n * sizeof(Cell)", "u8[512]"), (None, "u8[256,16]=arange")):
        text = source.replace("32 * sizeof(Cell)", unknown or "")
        (tmp_path / "a.cu").write_text(text if unknown else source.split("int main")[0])
        assert answer in tilescope("run", tmp_path / "a.cu").stderr


def test_a_kernel_behind_a_pointer_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text(
        """\
__global__ void one(float *a) { a[threadIdx.x] += 1; }
__global__ void two(float *a) { a[threadIdx.x] += 2; }
int main(int argc, char **) { float *a; cudaMalloc(&a, 128);
  void (*any)(float *) = argc > 1 ? one : two;
  any<<<1, 32>>>(a); }
"""
    )
    told = tilescope("check", "a.cu").stderr
    assert "kernels: one, two\n" in told
    assert "the host code does not say its kernel" in told
    assert "tilescope check a.cu --launch 1 one\n" in told
    for command in ("run", "ptx"):
        refused = tilescope(command, "a.cu", "--launch", 1)
        assert refused.exit_code == 2
        assert "  kernel  called through a pointer, any, as in one\n" in refused.stderr
        assert f"tilescope {command} a.cu --launch 1 one\n" in refused.stderr
        assert tilescope(command, "a.cu", "--launch", 1, "two").exit_code == 0


def test_types_of_words_give_template_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text(KERNELS)
    shape = ("--grid", 1, "--block", 32)
    done = tilescope("run", "a.cu", "offset", *shape, "f64[32]", 0)
    assert (done.exit_code, done.stdout[:15]) == (0, "offset<double>\n")
    for words, example in (
        (("offset", "u8[32]", 0), "offset<float>"),
        (("k", "f32[4]", 1), "k<float, 32>"),
    ):
        done = tilescope("run", "a.cu", words[0], *shape, *words[1:])
        assert done.exit_code == 2
        assert f"write template arguments, as in '{example}'" in done.stderr


def test_launches_of_what_is_included(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("parts").mkdir()
    Path("parts/k.cu").write_text(
        "__global__ void twice(float *a, int n) { if (threadIdx.x < n) a[threadIdx.x] *= 2; }\n"
        "\nvoid go() { float *a; cudaMalloc(&a, 256); twice<<<1, 64>>>(a, 64); }\n"
    )
    Path("plain.cu").write_text("__global__ void twice(float *a) { a[threadIdx.x] *= 2; }\n")
    Path("a.cu").write_text('#include <stdio.h>\n#include "parts/k.cu"\nint main() { go(); }\n')
    Path("b.cu").write_text('#include "plain.cu"\n')
    told = " ".join(tilescope("run", "a.cu").stderr.split())
    assert "launch 1, parts/k.cu line 3, as the host code says" in told
    assert "a.cu twice --grid 1 --block 64 'f32[64]' 64" in told
    assert tilescope("run", "a.cu", "--launch", 1).exit_code == 0
    assert tilescope("run", "b.cu", "--grid", 1, "--block", 32, "f32[32]").exit_code == 0


def test_refusals_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    params = ", ".join(f"const float *__restrict__ a_long_name_{n}" for n in range(9))
    Path("a.cu").write_text(
        "struct Own { int n; };\n"
        f"template <typename T> __global__ void update({params}, T s, int2 v, Own o, void *p)"
        " { }\n"
        "void go(float **a, int n) { update<float><<<n, 256>>>("
        + "".join(f"a[{n}], " for n in range(9))
        + "n, v, o, p); }\n"
    )
    for words in (("a.cu",), ("a.cu", "--launch", 1)):
        done = tilescope("check", *words)
        assert done.exit_code == 2
        assert max(map(len, done.stderr.splitlines())) <= 80
        assert "tilescope check a.cu" in done.stderr
    assert "a_long_name_3  const float *__restrict__, as in 'f32[1024]'" in done.stderr
    assert "  s              float, as in 1.5\n" in done.stderr
    given = shlex.split(done.stderr.split("as in\n")[1].replace("\\\n", " "))
    assert given[:6] == ["tilescope", "check", "a.cu", "--launch", "1", "--grid"]


def test_block_is_asked_for_by_its_name(file: str) -> None:
    done = tilescope("run", file, "flag", "--grid", 1)
    assert "--block is missing: say how many blocks and threads, as in --block 16,16" in done.stderr


def test_what_a_program_says_does_not_reach_the_terminal_as_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text(
        "template <int N> __global__ void k(float *\x1b[2J);\n"
        'void go(int n) { all["\x1b[2J"]<<<1, n>>>(n); k<sizeof("\x1b[2J")><<<1, n>>>(n); }\n'
    )
    for words in ((), ("--launch", 1), ("--launch", 2)):
        done = tilescope("run", "a.cu", *words)
        assert done.exit_code == 2
        assert "\x1b" not in done.stderr
