"""``printf`` and ``assert`` of a kernel: what they print is the run's output."""

from ctypes import CDLL, c_char_p, c_double, c_longlong, create_string_buffer

import numpy as np
import pytest
from click.testing import CliRunner

import simulator
from kernels import Kernel
from simulator.observe.checks import printed_output
from tests.support.paths import DEFECTS
from tilescope.cli.main import main

BUILDS = ("device", "source")
SCHEDULES = ("lockstep", "warps", "reverse", 7)
WORDS = r"""
struct Pair { char c; double d; };
__device__ __noinline__ void say(const char* what, int i) { printf("%s %d\n", what, i); }
extern "C" __global__ void k(int* got, int n)
{
    __shared__ char text[4];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) { text[0] = 'h'; text[1] = 'i'; text[2] = 0; }
    __syncthreads();
    if (i % 3 == 0)
        got[i] = printf("%d|%5.2f|%c|%llx|%s|%-4u|%%\n", i, i / 4.0, 'a' + i, -1LL, text, i);
    else say("other", i);
    for (int round = 0; round < i % 2; ++round) printf("again %d\n", i);
}
"""


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_thread_prints_in_its_order_under_any_schedule(
    build: str, schedule: str | int
) -> None:
    k = Kernel.from_cuda(WORDS, "k", build=build)
    got = np.zeros(40, np.int32)
    run = simulator.launch(k, 2, 20, [got, 40], schedule=schedule)
    lines: list[str] = []
    for i in range(40):
        text = f"{i}|{i / 4:5.2f}|{chr(97 + i)}|{(1 << 64) - 1:x}|hi|{i:<4}|%"
        lines.append(f"other {i}" if i % 3 else text)
        lines += [f"again {i}"] * (i % 2)
    assert run.output == "".join(f"{line}\n" for line in lines)
    assert run.to_dict()["output"] == run.output
    assert [hazard.kind for hazard in run.hazards] == []
    np.testing.assert_array_equal(got, np.where(np.arange(40) % 3 == 0, 6, 0))


@pytest.mark.slow_cases("20llu|")
@pytest.mark.parametrize(
    "form",
    ["%d", "5d|", "-5d|", "05d", "+d", " d", ".4d", "7.3d|", "07.3d|", "u", "x", "#X", "#o",
     "hd", "hu", "i", "+u", "lld", "20llu|", "ld", "#.6llx"],
)  # fmt: skip
def test_integers_are_as_c_prints_them(form: str) -> None:
    form = f"%{form.removeprefix('%')}"
    wide = form.rstrip("|")[-2] in "lz" or "ll" in form
    kind = "long long" if wide else "int"
    text = f'extern "C" __global__ void k({kind} v) {{ printf("<{form}>", v); }}'
    for value in (0, 1, -1, 65, 300, -40_000, 2**31 - 1):
        run = simulator.launch(Kernel.from_cuda(text, "k"), 1, 1, [value])
        assert run.output == as_c(f"<{form}>", c_longlong(value))


@pytest.mark.slow_cases("%G")
@pytest.mark.parametrize(
    "form", ["%f", "%.0f", "%10.3f|", "%-10.1f|", "%010.2f", "%e", "%.2E", "%g", "%#g", "%G",
     "%+.1f", "%a", "%.3a", "%A"]
)  # fmt: skip
def test_floats_are_as_c_prints_them(form: str) -> None:
    text = f'extern "C" __global__ void k(double v) {{ printf("<{form}>", v); }}'
    for value in (0.0, -0.5, 1.0, 1e300, 1e-7, 2.5, np.inf, -np.inf, np.nan):
        run = simulator.launch(Kernel.from_cuda(text, "k"), 1, 1, [value])
        assert run.output == as_c(f"<{form}>", c_double(value))


def as_c(form: str, value: c_double | c_longlong) -> str:
    into = create_string_buffer(1000)
    CDLL(None).snprintf(into, 1000, c_char_p(form.encode()), value)
    return into.value.decode()


def test_widths_strings_and_null() -> None:
    text = r"""
    extern "C" __global__ void k(int* got, const char* none) {
        got[0] = printf("[%*d] [%-*s] [%.2f] [%.3s] [%5s] [%s]\n",
                        5, 42, 6, "ab", 1.0, "abcdef", "x", none);
        got[1] = printf("plain %%\n");
        got[2] = printf("%n%y%zx%", 1);
        printf("%1000000000d", 1);
    }"""
    got = np.zeros(3, np.int32)
    run = simulator.launch(Kernel.from_cuda(text, "k"), 1, 1, [got, 0])
    first, second, rest = run.output.split("\n")
    assert first == "[   42] [ab    ] [1.00] [abc] [    x] [(null)]"
    assert second == "plain %"
    assert rest.startswith("%n%y%zx%")
    assert len(rest) < 100_000
    assert got.tolist() == [8, 0, 0]


def test_what_is_beyond_the_buffer_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed_output, "MAX_OUTPUT", 10)
    text = 'extern "C" __global__ void k() { printf("%d\\n", threadIdx.x); }'
    run = simulator.launch(Kernel.from_cuda(text, "k"), 1, 64, [])
    assert run.output == "0\n1\n2\n3\n4\n"
    assert run.notes == ("59 more calls of printf, beyond 10 characters, are not shown",)


def test_the_command_line_shows_the_first_lines() -> None:
    file = str(DEFECTS / "run" / "printf.cu")
    said = CliRunner().invoke(
        main, ["run", file, "k", "--grid", "1", "--block", "32", "i32[32]=ones"]
    )
    assert said.exit_code == 0
    assert "\nprinted\n  thread 0 says 1\n  thread 1 says 1\n" in said.output
    assert "  ... and 12 more lines: --json has them all\n" in said.output


@pytest.mark.parametrize("build", BUILDS)
def test_an_assertion_says_its_condition(build: str) -> None:
    text = """#include <cassert>
    #define SMALL(x) assert((x) < 3 && "too \\x1b big")
    extern "C" __global__ void k(int* a) { SMALL(a[threadIdx.x]); a[threadIdx.x] = 7; }
    """
    a = np.arange(5, dtype=np.int32)
    run = simulator.launch(Kernel.from_cuda(text, "k", build=build), 1, 5, [a])
    (hazard,) = run.hazards
    assert (hazard.kind, hazard.count) == ("assert", 2)
    assert a.tolist() == [7, 7, 7, 3, 4]
    (note,) = hazard.notes
    assert note.startswith("the condition is (a[threadIdx.x]) < 3 && ")
    assert "\x1b" not in note


HEAP = """
struct Number { int v; __device__ Number(int i) : v(i) {} };
__global__ void whole(int* x) {
    int t = threadIdx.x, *p = (int*)malloc(4 * (t + 1));
    for (int i = 0; i <= t; i++) p[i] = i;
    Number* n = new Number(t);
    x[t] = p[t] + n->v + (long long)p % 16;
    delete n;
    free(p);
}
__global__ void full(int* x) {
    if (threadIdx.x) return;
    void *p = malloc(5 << 20), *q = malloc(4 << 20);
    x[threadIdx.x] = (p != 0) + 2 * (q != 0);
    free(p);
    free(q);
    x[threadIdx.x] += 4 * (malloc(-1) != 0) + 8 * (malloc(8 << 20) != 0);
}
__global__ void unset(int* x) {
    int* p = (int*)malloc(8);
    p[0] = 1;
    x[threadIdx.x] = p[0] + p[1];
}
__global__ void after(int* x) {
    int* volatile p = (int*)malloc(8);
    for (int i = 0; i < 2; i++) {
        p[1] = i;
        if (i == 0) free(p);
    }
}
__global__ void over(int* x) { ((int*)malloc(12))[3] = 1; }
__global__ void twice(int* x) {
    int* p = (int*)malloc(8);
    free(p);
    if (threadIdx.x % 2) free(p);
    x[threadIdx.x] = 1;
}
__global__ void inside(int* x) { free((int*)malloc(8) + 1); }
__global__ void other(int* x) { free(x); }
__device__ int* one;
__global__ void shared(int* x) {
    if (threadIdx.x == 0) one = (int*)malloc(4);
    __syncthreads();
    *one = threadIdx.x;
}
"""


@pytest.mark.parametrize("schedule", ["lockstep", "reverse"])
@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "left", "kind", "words"),
    [
        ("whole", [0, 2, 4, 6], "", ""),
        ("full", [9, 0, 0, 0], "", ""),
        ("unset", None, "uninitialised", "read of global heap"),
        ("after", [0] * 4, "out-of-bounds", "freed memory[1] (freed memory has 0 elements)"),
        ("over", [0] * 4, "out-of-bounds", "write out of bounds: heap[3] (heap has 3 elements)"),
        ("twice", [1, 0, 1, 0], "trap", "or that is free"),
        ("inside", [0] * 4, "trap", "free() of a pointer that malloc() did not return"),
        ("other", [0] * 4, "trap", "free() of a pointer that malloc() did not return"),
        ("shared", [0] * 4, "waw-race", "global heap"),
    ],
)
def test_what_a_kernel_allocates(
    entry: str, left: list[int] | None, kind: str, words: str, build: str, schedule: str
) -> None:
    x = np.zeros(4, np.int32)
    k = Kernel.from_cuda(HEAP, entry, build=build)
    run = simulator.launch(k, 1, 4, [x], schedule=schedule)
    assert {hazard.kind for hazard in run.hazards} == ({kind} if kind else set())
    assert all(words in hazard.message for hazard in run.hazards)
    assert left in (None, x.tolist())
