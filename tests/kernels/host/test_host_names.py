"""What names only the host's code: it goes with that, and what names code that stays does not."""

import numpy as np
import pytest

import simulator
from kernels import CompileError, Kernel

SOURCE = """
#include <vector>
namespace app {
__device__ int next(int x) { return x + 1; }
__global__ void k(float *o);
void run(float *o) { std::vector<int> v; k<<<1, 32>>>(o); }
int count() { return std::vector<int>(3).size(); }
template <class T> void many(T *o) { std::vector<T> v; }
struct Runner { void go() { std::vector<int> v; } static int size() { return 3; } int a; };
}
DECLARED
namespace app { __global__ void k(float *o) { o[threadIdx.x] = app::next(threadIdx.x) + (USED); } }
int main() { float *p; cudaMalloc(&p, 128); app::run(p); }
"""
S = "struct S { int a; DECLARED }; "
GOES = [
    ("using app::run;", "0"),
    ("namespace other { using app::run; }", "0"),
    ("void host() { std::vector<int> v; } namespace other { using ::host; }", "0"),
    ("using app::many;", "0"),
    ("namespace short_ = app; using short_::run;", "0"),
    ("using app::run, app::next;", "next(0) - 1"),
    ("using app::next, app::run;", "next(0) - 1"),
    ("using app::run, app::next, app::count;", "next(0) - 1"),
    ("using app::run, app::count;", "[](int count) { return count; }(0)"),
    ("namespace d { __device__ int run() { return 0; } } using app::run;", "d::run()"),
    ("using std::vector; using std::cout;", "std::min(0, 1)"),
    ("using F = decltype(&app::run); typedef decltype(&app::run) G;", "0"),
    ("constexpr auto start = &app::run; constexpr auto again = start;", "0"),
    ("namespace app { static constexpr auto start = &run; }", "0"),
    ("template <class T> constexpr auto start = &app::many<T>; auto one = start<float>;", "0"),
    ("constexpr auto start = &app::Runner::go; const int s = app::Runner::size();", "0"),
    ("constexpr int of(int a) { return a ? app::count() : 3; }", "0"),
    ("static constexpr void (*table[])(float *) = {app::run, &app::many<float>};", "0"),
    ("const auto f = [] { app::run(nullptr); }; static int n = app::count();", "0"),
    ("extern const int m; const int m = app::count(); extern void later(float *);", "0"),
    ("extern template void app::many<float>(float *); template void app::many<int>(int *);", "0"),
    ("template <void (*F)(float *)> struct X {}; template struct X<&app::run>;", "0"),
    ("static_assert(sizeof(&app::run) == 8, \"pointers\");", "0"),
    (S.replace("DECLARED", "friend void app::run(float *); friend class X;"), "S{0}.a"),
    (S.replace("DECLARED", "friend void app::Runner::go();"), "S{0}.a"),
    (S.replace("DECLARED", "template <class T> friend void app::many(T *);"), "S{0}.a"),
    (S.replace("DECLARED", "friend void app::many<float>(float *);"), "S{0}.a"),
    (S.replace("DECLARED", "friend std::ostream &operator<<(std::ostream &o, S s) { return o; }"),
     "S{0}.a"),
    (S.replace("DECLARED", "static inline int n = app::count();"), "S{0}.a"),
]  # fmt: skip


def program(declared: str, used: str = "0") -> str:
    return SOURCE.replace("DECLARED", declared).replace("USED", used)


@pytest.mark.slow_cases(
    "...go(); }; -S{0}.a", "...min(0, 1)", "...return count; }(0)", "constexpr auto start..."
)
@pytest.mark.parametrize(("declared", "used"), GOES)
def test_what_names_only_the_host_s_code_goes_with_it(declared: str, used: str) -> None:
    for build in ("device", "source"):
        kernel = Kernel.from_cuda(program(declared, used), "app::k", build=build, cache=False)
        o = np.zeros(32, np.float32)
        assert simulator.launch(kernel, 1, 32, [o]).hazards == []
        assert o.tolist() == list(range(1, 33))


def test_what_names_code_that_stays_stays() -> None:
    declared = """
    using app::run; using app::next;
    namespace lib { __device__ int two() { return 2; } using Int = int; }
    using lib::two, lib::Int;
    constexpr int three() { return 3; } constexpr int four = three() + 1;
    struct S { int a; static constexpr int five = 5; friend void app::run(float *);
        friend __device__ int six(S s) { return s.a; }
        friend S operator+(S x, S y) { return {x.a + y.a}; } };
    """
    used = "next(0) + two() + Int(four) + S::five + six(S{1} + S{5}) - 18"
    o = np.zeros(32, np.float32)
    simulator.launch(Kernel.from_cuda(program(declared, used), "app::k"), 1, 32, [o])
    assert o.tolist() == list(range(1, 33))


@pytest.mark.parametrize(
    ("declared", "used", "said"),
    [
        ("using app::count;", "count()", r"\(count is the host's: it is not marked __device__\)"),
        ("using app::nxet;", "nxet(0)", 'namespace "app" has no member "nxet"'),
        ("constexpr int n = app::count();", "n", 'namespace "app" has no member "count"'),
        ("constexpr int f() { return cuont(); }", "f()", 'identifier "cuont" is undefined'),
        (S.replace("DECLARED", "static constexpr int n = tow;"), "S::n", 'identifier "tow"'),
        (S.replace("DECLARED", "static inline int n = app::count();"), "S::n", 'no member "count"'),
        ("using F = decltype(&app::run);", "sizeof(F)", 'namespace "app" has no member "run"'),
    ],
)
def test_what_the_kernel_uses_of_it_is_told(declared: str, used: str, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        Kernel.from_cuda(program(declared, used), "app::k", cache=False)
