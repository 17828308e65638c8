"""Launches in the native engine: results, counters and hazards are those of the NumPy engine."""

import os
import re
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kernels
import simulator
from kernels import Kernel, library
from kernels.errors import LaunchError
from simulator import Run
from simulator.launch import listen
from simulator.native import block_ranges, compiled_kernel, engine, jit, row_calls, selection
from simulator.observe.checks.array_footprint import ArrayFootprint
from tests.support.engines import both, copied, outcome
from tilescope.cli.main import main

pytestmark = pytest.mark.skipif(bool(jit.why_unavailable()), reason=jit.why_unavailable())

SOURCES = {
    "loop": """float x = a[i]; int k = i;
        for (int r = 0; r < n; r++) { x = x * 0.99f + (float)(k & 7); k = k * 3 + (int)x;
            if (k & 1) x -= 1.0f; a[i] = x; }
        a[i] = x + k;""",
    "early exits": """float x = a[i];
        for (int r = 0; r < n; r++) {
            if (r == (i & 7)) break;
            if ((i + r) % 3 == 0) { x += 2.0f; if (i % 5 == 0) continue; x *= 1.5f; }
            if (i % 11 == 4 && r > 5) return;
            x += r; }
        a[i] = x;""",
    "switch of branches": """float x = a[i];
        for (int r = 0; r < n; r++) {
            if (i & 1) { if (i & 2) x += 1; else { x *= 2; if (x > 100) goto out; } }
            else { while (x > 3) { x -= 3; if (i & 4) break; } x += 7; } }
        out: a[i] = x;""",
    "shared": """__shared__ float s[256]; s[threadIdx.x] = a[i]; __syncthreads();
        for (int h = blockDim.x / 2; h; h /= 2) {
            if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h]; __syncthreads(); }
        a[i] = s[0];""",
    "local": """int p[8]; for (int r = 0; r < 8; r++) p[(r * 3 + i) & 7] = r * i;
        int t = 0; for (int r = 0; r < n; r++) t += p[(r + i) & 7] ^ r; a[i] = t;""",
    "warp": """float x = a[i]; for (int o = 16; o; o /= 2) x += __shfl_xor_sync(~0u, x, o);
        unsigned v = __ballot_sync(~0u, x > i); a[i] = x + __popc(v) + __any_sync(~0u, i == 3);""",
    "atomics": """atomicAdd((int*)&a[i % 3], 5); __shared__ unsigned s[4];
        for (int j = threadIdx.x; j < 4; j += blockDim.x) s[j] = 7; __syncthreads();
        atomicMax(&s[i & 3], i * 77u); __syncthreads(); atomicMin((int*)&s[2], -i);
        __syncthreads();
        if (threadIdx.x < 4) atomicXor((unsigned*)&a[8 + threadIdx.x], s[threadIdx.x]);""",
    "double": """double x = a[i]; for (int r = 1; r < n; r++) { x = x / r + sqrt(x * x + r); }
        a[i] = (float)x;""",
    "integers": """unsigned long long k = i * 0x123456789abcdefULL + 1; int m = i - 9;
        for (int r = 1; r < n; r++) { k ^= k << 13; k ^= k >> 7; k ^= k << 17;
            m = m / r + (int)(k % 97); m ^= __clz(m) + __popcll(k);
            m = __byte_perm(m, (int)k, 0x5140 + (r & 3)); }
        a[i] = m;""",
    "vectors": """float4 v = ((float4*)a)[i]; v.x += v.y; v.z *= v.w; ((float4*)a)[i] = v;""",
    "bytes": """unsigned char* p = (unsigned char*)a; p[i] = p[i] + 1;
        ((short*)a)[600 + i] = -i;""",
    "volatile": """volatile float* p = a; float x = p[i];
        for (int r = 0; r < n; r++) { x += p[i] * 0.5f; p[i] = x + 1; }
        a[i] = x;""",
    "volatile in a block": """__shared__ volatile int found, at; int t = threadIdx.x;
        if (!t) found = 0; __syncthreads();
        while (true) { if (!t) { at = found; found = found + 3; } __syncthreads();
            if (at > n) break; a[i] += at; __syncthreads(); }""",
    "asserted": "assert(n < 1000); a[i] += n; if (n == 77) __trap();",
    "switch": """int k = (int)a[i] & 7; for (int r = 0; r < n; r++) switch ((k + r + i) % 9) {
        case 0: k += 3; break; case 1: k ^= i; case 2: k *= 5; break; case 4: a[i] += 1; break;
        case 5: k -= r; break; case 6: k = ~k; break; case 7: k >>= 1; break; default: k += 9; }
        a[i] += k;""",
    "strides": """float x = 0; for (int r = 0; r < n; r++) x += a[(i * 7 + r * r) & 511];
        a[512 + i] = x;""",
}  # fmt: skip


def kernel(body: str) -> Kernel:
    """A kernel of an array and a number."""
    head = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    return Kernel.from_cuda(
        f'extern "C" __global__ void k(float* a, int n) {{ {head} {body} }}', "k"
    )


ROWS = """for (int r = 0; r < n; r++) { float x = a[i];
    x = expf(-x * x) + __sinf(x) + rsqrtf(fabsf(x) + 1.0f) + __fadd_rz(x, 1e-9f);
    if (i & 1) x = fmodf(x, 3.0f) + __logf(fabsf(x) + 2.0f);
    a[i] = copysignf(__saturatef(x), x) + __dp4a(i, r, 7) + (__finitef(x) ? 1 : 2); }"""


@pytest.mark.parametrize("threads", [1, 32, 100])
def test_rows_are_called_for_what_has_no_native_form(threads: int) -> None:
    start = np.random.default_rng(5).standard_normal(4096).astype(np.float32)
    differ, run = both(kernel(ROWS), 2, threads, lambda: [start.copy(), 9])
    assert (differ, run.engine) == ([], "native")


def test_what_a_row_raises_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(row_calls.RowCalls, "_compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulator.launch(
            kernel(ROWS + "/**/"), 1, 32, [np.ones(64, np.float32), 1], engine="native"
        )


@pytest.mark.parametrize("threads", [1, 31, 32, 100, 256])
@pytest.mark.parametrize("name", SOURCES)
def test_engines_agree(name: str, threads: int) -> None:
    start = np.random.default_rng(5).standard_normal(4096).astype(np.float32)
    differ, run = both(kernel(SOURCES[name]), 2, threads, lambda: [start.copy(), 20])
    assert differ == []
    missing_lanes = name == "warp" and threads % 32
    whole = run.engine == "native" or bool(run.hazards) or missing_lanes
    assert whole, run.engine_note


def test_whether_other_orders_were_tried_is_the_same() -> None:
    """The launch is too long for NumPy to run it in other orders."""
    made = kernel(SOURCES["volatile in a block"])
    differ, run = both(made, 700, 100, lambda: [np.ones(80_000, np.float32), 7])
    assert (differ, run.engine, bool(run.one_order)) == ([], "native", True)


ATOMICS = """__shared__ unsigned s[40]; unsigned* u = (unsigned*)a; unsigned t = threadIdx.x;
    if (t < 8) s[t] = t; if (t < 8) s[t + 32] = 9 - t; __syncthreads();
    unsigned x = atomicCAS(&s[t % 3], t % 5, t); x += atomicExch(&u[t & 7], t) & 15;
    x += atomicInc(&s[(t & 1) * 33], 5u) + atomicDec(&s[(t & 3) + 32], 7u);
    x ^= atomicAdd(&u[64], x) & 1; x += atomicMin((int*)u + 65, (int)x - 9);
    x += (unsigned)atomicMax((unsigned long long*)a + 40, (unsigned long long)x << 20);
    x |= atomicAnd(&u[70 + (t & 1)], x) | atomicOr(&u[72], 1u << t);
    if (t & 1) x += atomicCAS(&u[73], 0u, t); u[128 + t] = x;"""


@pytest.mark.parametrize("threads", [1, 7, 32])
def test_atomics_of_one_warp(threads: int) -> None:
    start = np.random.default_rng(5).integers(0, 99, 256).astype(np.uint32).view(np.float32)
    differ, run = both(kernel(ATOMICS), 1, threads, lambda: [start.copy(), 1], checks="memory")
    assert (differ, run.engine) == ([], "native")


@pytest.mark.parametrize("how", [
    {"counters": "none"}, {"checks": "none"}, {"counters": "none", "checks": "none"},
    {"checks": {"races"}}, {"checks": {"uninitialised", "memory"}},
])  # fmt: skip
@pytest.mark.parametrize("name", ["loop", "shared", "local", "atomics"])
def test_what_is_not_asked_for(name: str, how: dict[str, object]) -> None:
    start = np.random.default_rng(5).standard_normal(4096).astype(np.float32)
    differ, run = both(kernel(SOURCES[name]), 2, 64, lambda: [start.copy(), 20], **how)
    assert (differ, run.engine) == ([], "native")


CALLED = """
__device__ __noinline__ float twice(float* p, int n) {
    float t[4]; for (int j = 0; j < 4; j++) t[j] = p[j & 1] * n; return t[n & 3] + 1.0f; }
__device__ __noinline__ float either(float x, int i) {
    float v[2] = {x, 2.0f}; if (i & 1) return twice(v, i); v[1] = 3.0f;
    return i & 2 ? twice(v, 2) : v[i & 1]; }
extern "C" __global__ void k(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; float x = a[i];
    for (int r = 0; r < n; r++) { x = either(x, i + r); if (x > 50.0f) { x = either(1.0f, r); } }
    a[i] = x; }"""


@pytest.mark.parametrize("build", ["device", "source"])
def test_calls(build: str) -> None:
    called = Kernel.from_cuda(CALLED, "k", build=build)
    assert "call" in called.ptx
    start = np.random.default_rng(5).standard_normal(256).astype(np.float32)
    differ, run = both(called, 2, 100, lambda: [start.copy(), 12])
    assert (differ, run.engine) == ([], "native")


@pytest.mark.parametrize("shape", [(8, 8), (5, 3, 4), (33, 2)])
def test_coordinates(shape: tuple[int, ...]) -> None:
    text = """extern "C" __global__ void k(int* a, int n) {
        int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        int i = b * blockDim.x * blockDim.y * blockDim.z + t;
        a[i] = threadIdx.x + 100 * threadIdx.y + 10000 * threadIdx.z + 1000000 * blockIdx.y; }"""
    differ, run = both(
        Kernel.from_cuda(text, "k"), (3, 2, 2), shape, lambda: [np.zeros(9999, np.int32), 0]
    )
    assert (differ, run.engine) == ([], "native")


@pytest.mark.parametrize("name", ["histogram_shared", "faulty_missing_in_reduction", "spmv_thread"])
def test_library_kernels_agree(name: str) -> None:
    found = library.get(name)
    launch = found.launch()
    how = {"shared_bytes": launch.shared_bytes}
    differ, _ = both(found.kernel(), launch.grid, launch.block, lambda: copied(launch.args), **how)
    assert differ == []


def test_faults_are_reported_by_numpy() -> None:
    faulty = kernel("a[i * 64] = n;")
    differ, run = both(faulty, 1, 256, lambda: [np.zeros(64, np.float32), 1])
    assert differ == []
    assert run.engine == "numpy"
    assert "out of bounds" in run.engine_note
    assert [h.kind for h in run.hazards] == ["out-of-bounds"]


def test_the_step_limit_stops_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = kernel("for (int r = 0; r < n; r++) { a[i] += r; if (a[i] < 0) return; }")
    monkeypatch.setattr(block_ranges, "FUEL", 100)
    differ, run = both(endless, 1, 32, lambda: [np.ones(64, np.float32), 5000], step_limit=300)
    assert differ == []
    assert run.engine_note == "more basic blocks than the step limit"
    monkeypatch.setattr(block_ranges, "OF_A_WARP", 200)
    warps, run = both(endless, 4, 64, lambda: [np.ones(256, np.float32), 100], step_limit=300)
    assert (warps, run.engine) == ([], "native")
    paused, run = both(endless, 1, 64, lambda: [np.ones(64, np.float32), 5000])
    assert (paused, run.engine) == ([], "native")


def test_ctrl_c_stops_native_code() -> None:
    endless = kernel("for (int r = 0; r < n; r++) a[i] = a[i] * 0.5f + r; /* stopped */")
    args = [np.ones(64, np.float32), 2_000_000_000]
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        simulator.launch(endless, 1, 32, args, engine="native", step_limit=10**12)
    timer.join()


def test_native_without_llvmlite_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    why = f"llvmlite is not installed: {jit.INSTALL}"
    monkeypatch.setattr(jit, "why_unavailable", lambda: why)
    args = [np.zeros(64, np.float32), 1]
    with pytest.raises(LaunchError, match="pip install llvmlite"):
        simulator.launch(kernel("a[i] = n;"), 1, 32, args, engine="native")
    run = simulator.launch(kernel("a[i] = n;"), 1, 32, args)
    assert (run.engine, run.engine_note) == ("numpy", why)


def test_what_native_code_would_save_is_noted_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "why_unavailable", lambda: "no compiler")
    monkeypatch.setattr(selection, "_WORTH", 0.01)
    monkeypatch.setattr(selection, "PATIENCE", 0.01)
    loop = kernel("for (int r = 0; r < n; r++) a[i] = a[i] * 0.5f + r;")

    def note(engine: str, rounds: int) -> str:
        with selection.preferred(engine) as missed:
            simulator.launch(loop, 1, 32, [np.zeros(64, np.float32), rounds])
        return missed.note

    text = r"no compiler; \d+ s in NumPy would be (about|less than) 0\.\d s in native code"
    assert re.fullmatch(text, note("auto", 1500))
    assert (note("auto", 1), note("numpy", 1500)) == ("", "")
    text = "__global__ void k(float* a, int n) { while (n--) a[threadIdx.x] += n; }"
    (tmp_path / "k.cu").write_text(text)
    words = ["run", str(tmp_path / "k.cu"), "--grid", "1", "--block", "32", "f32[32]", "9000"]
    assert "note: no compiler; " in CliRunner().invoke(main, words).stderr
    assert "no compiler" not in CliRunner().invoke(main, [*words, "-q"]).stderr


def test_short_launches_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_LONG_SUM", 0.0)
    monkeypatch.setattr(selection, "_COMPILATION", 0.0)
    loop = kernel("for (int r = 0; r < n; r++) a[i] = a[i] * 0.5f + r; /* added up */")

    def engines(engine: str, grid: int) -> list[str]:
        args = [np.zeros(64 * 32, np.float32), 20]
        return [simulator.launch(loop, grid, 32, args, engine=engine).engine for _ in range(3)]

    assert engines("numpy", 1) == ["numpy"] * 3
    assert engines("auto", 1) == ["numpy", "native", "native"]
    assert engines("auto", 60) == ["numpy", "native", "native"]  # of another size
    monkeypatch.setattr(selection, "MARGIN", 0.0)
    assert engines("auto", 6) == ["numpy"] * 3


def test_an_unknown_engine_is_an_error() -> None:
    with pytest.raises(LaunchError, match="engine is"):
        simulator.launch(kernel("a[i] = n;"), 1, 1, [np.zeros(4, np.float32), 1], engine="fast")


def test_machine_code_is_remembered_in_a_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILESCOPE_CACHE", str(tmp_path))
    text = "define i64 @f(i64 %a) {\n  %b = add i64 %a, 1\n  ret i64 %b\n}\n"
    first, second = jit.load(text, 1), jit.load(text, 1)
    assert (first.cached, second.cached) == (False, True)
    assert jit.function(second.address("f"), 1)(41) == 42
    folder = tmp_path / "native"
    assert folder.stat().st_mode & 0o777 == 0o700
    (stored,) = folder.iterdir()
    stored.write_bytes(stored.read_bytes()[:-1] + b"x")  # torn
    assert not jit.load(text, 1).cached
    folder.chmod(0o755)
    assert jit.cache_folder() is None
    assert not jit.load(text, 1).cached


LONG = """for (int r = 0; r < n; r++) { a[i] += 1.0f; a[i] *= 0.5f; if (i & 1) a[i] -= 2.0f; }"""


def test_auto_begins_in_numpy_and_changes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "PATIENCE", 0.0)
    looped = kernel(LONG + "/* changes over */")
    runs = []
    for engine_name in ("numpy", "auto", "auto"):
        args = [np.ones(64, np.float32), 400]
        run = simulator.launch(looped, 2, 32, args, engine=engine_name)
        runs.append((outcome(run, args), run.engine))
    assert [name for _, name in runs] == ["numpy", "native", "native"]
    assert runs[0][0] == runs[1][0] == runs[2][0]


def test_auto_tries_once_what_native_code_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "PATIENCE", 0.0)
    racy = kernel(LONG + "a[0] = i; /* gives up */")
    tried = []
    monkeypatch.setattr(selection, "run", lambda *given: tried.append(1) or engine.run(*given))
    for _ in range(2):
        run = simulator.launch(racy, 2, 32, [np.ones(64, np.float32), 400])
        assert run.engine == "numpy"
        assert run.engine_note.startswith("a race cannot be ruled out")
        assert run.hazards
    assert tried == [1]


def test_short_launches_and_many_lanes_stay_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulator.launch(kernel(LONG + "/* short */"), 1, 32, [np.ones(64, np.float32), 9])
    assert (run.engine, run.engine_note) == ("numpy", "")
    monkeypatch.setattr(selection, "PATIENCE", 0.02)
    product = library.get("matmul_tiled")
    many = product.launch((256, 256, 256), 16)
    for name in ("numpy", "auto"):  # the first compiles for NumPy
        args, shared = copied(many.args), many.shared_bytes
        run = simulator.launch(product.kernel(16), many.grid, many.block, args, shared, engine=name)
    assert (run.engine, run.engine_note) == ("numpy", "")


def test_caches_of_a_gpu_are_simulated_beside_either_engine() -> None:
    body = "for (int r = 0; r < n; r++) a[i] = a[i] * 0.5f + r; /* caches */"
    make = lambda: [np.ones(256, np.float32), 3]  # noqa: E731
    differ, run = both(kernel(body), 4, 64, make, gpu="H200")
    assert (differ, run.engine) == ([], "native")
    assert run.counters.dram is not None


def test_the_command_line_names_an_engine() -> None:
    with selection.preferred("native"):
        run = simulator.launch(kernel("a[i] = n;"), 1, 32, [np.ones(64, np.float32), 9])
    assert run.engine == "native"
    assert "--engine" in CliRunner().invoke(main, ["run", "--help"]).output


def test_what_a_launch_touches_is_followed() -> None:
    body = "if (i < 40) a[i + 3] = a[2 * i + 100]; atomicAdd((int*)a + 300, 1);"
    found = []
    for name in ("numpy", "native"):
        touched: list[tuple[object, ...]] = []
        arrays = [np.ones(512, np.float32), 1]
        begin = arrays[0].ctypes.data

        def tell(_: Kernel, run: Run, prints: Sequence[ArrayFootprint]) -> None:
            assert run.engine == name  # noqa: B023
            for p in prints:
                touched.append((p.how, (p.starts - begin).tolist(), (p.stops - begin).tolist()))  # noqa: B023

        with listen(tell):
            simulator.launch(kernel(body), 2, 32, arrays, engine=name)
        found.append(sorted(touched))
    assert found[0] == found[1]
    assert len(found[0]) == 3


BARRIERS = {
    "ways of a branch": "if (i / 32) { a[i] = 1; __syncthreads(); } else { __syncthreads(); }",
    "rounds": """for (int r = 0; r < 2; r++) for (int j = 0; j < ((i / 32) ^ r) + 1; j++)
        __syncthreads();""",
    "lanes' rounds": "int r = 0; do { if (r >= (i & 1)) { __syncthreads(); } r++; } while (r < 3);",
    "places in a loop": """for (int r = 0; r < 4; r++) if ((r + i / 32) & 1) { a[i] += 1;
        __syncthreads(); }""",
}  # fmt: skip


@pytest.mark.parametrize("name", BARRIERS)
def test_barriers_that_threads_come_to_by_other_ways(name: str) -> None:
    differ, run = both(kernel(BARRIERS[name]), 2, 64, lambda: [np.zeros(256, np.float32), 1])
    assert differ == []
    assert run.hazards
    assert run.engine == "numpy"


def test_loops_about_barriers_are_native() -> None:
    body = """__shared__ float s[256]; int t = threadIdx.x; s[t] = a[i]; __syncthreads();
        for (int r = 0; r < n; r++) { for (int h = 1; h < 4; h++) {
            float v = s[(t + h) % blockDim.x]; __syncthreads(); s[t] = v + r; __syncthreads(); }
            if (r & 1) { s[t] += 1; __syncthreads(); } } a[i] = s[t];"""
    differ, run = both(kernel(body), 2, 96, lambda: [np.ones(256, np.float32), 5])
    assert (differ, run.engine) == ([], "native")


def test_a_launch_that_begins_again_in_numpy_reads_unset_bytes_as_before() -> None:
    """Native code has written where the other warp reads: it must not have marked the host's."""

    def make() -> list[object]:
        return [kernels.unset((64,), np.float32), 1]

    later = kernel("float v = i > 31 ? a[i - 32] : 0; a[i] = v + 1;")
    differ, run = both(later, 1, 64, make)
    assert (differ, run.engine) == ([], "numpy")
    assert {hazard.kind for hazard in run.hazards} == {"uninitialised", "war-race"}


@pytest.mark.parametrize("checks", ["all", "memory"])
def test_arrays_that_nothing_has_filled(checks: str) -> None:
    def make() -> list[object]:
        return [kernels.unset((512,), np.float32), 1]

    fills = kernel("a[i] = 1.0f; a[i] += 2.0f; if (i < 9) a[i + 300] = a[i];")
    differ, run = both(fills, 2, 64, make, checks=checks)
    assert (differ, run.engine) == ([], "native")
    differ, run = both(kernel("a[i] = a[i + 64];"), 1, 64, make, checks=checks)
    assert differ == []
    assert run.engine == ("numpy" if checks == "all" else "native")
    unset = []
    for name in ("numpy", "native"):
        args = make()
        simulator.launch(fills, 2, 64, args, engine=name, checks=checks)
        unset.append(int(args[0].missing.view(np.uint8).astype(bool).sum()))
    assert unset[0] == unset[1]
    assert unset[0] == (4 * (512 - 137) if checks == "all" else 0)


def test_optimised_code_takes_over_where_a_warp_has_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESCOPE_CACHE", "off")
    monkeypatch.setattr(block_ranges, "FUEL", 50)
    monkeypatch.setattr(compiled_kernel, "_LINE_SECONDS", 1e-9)
    levels = []
    load = jit.load

    def loaded(text: str, level: int) -> jit.LoadedObject:
        levels.extend([level] if "@kernel" in text else [])
        return load(text, level)

    monkeypatch.setattr(jit, "load", loaded)
    slow = kernel(SOURCES["early exits"] + "/* optimised */")
    differ, run = both(slow, 3, 64, lambda: [np.ones(4096, np.float32), 60])
    assert (differ, run.engine, levels) == ([], "native", [0, 2])


@pytest.mark.parametrize(("place", "engine_name"), [("i", "native"), ("(i + 1) % 64", "numpy")])
def test_an_array_that_is_written_after_reads_that_were_not_entered(
    place: str, engine_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""extern "C" __global__ void k(const float* a, float* b) {{
        int i = blockIdx.x * 32 + threadIdx.x; float x = a[i];
        for (int r = 0; r < 9; r++) x += a[i];
        b[{place}] = x; }}"""
    begun = []
    state = engine.NativeState
    monkeypatch.setattr(engine, "NativeState", lambda *a: begun.append(set(a[4])) or state(*a))

    def make() -> list[object]:
        array = np.ones(64, np.float32)
        return [array, array]

    differ, run = both(Kernel.from_cuda(text, "k"), 2, 32, make)
    assert (differ, run.engine, begun) == ([], engine_name, [set(), {0}])
    assert bool(run.hazards) == (engine_name == "numpy")


LAST_LANE = {
    "out-of-bounds": "a[i + n] = 1;",
    "shared out of bounds": """__shared__ float s[32]; s[threadIdx.x + 8 * n] = i;
        __syncthreads(); a[i] = s[(threadIdx.x + 3) % 32 + 8];""",
    "shared unset": """__shared__ float s[64]; if (threadIdx.x != 31) s[threadIdx.x] = i;
        a[i] = s[threadIdx.x];""",
    "local unset": """float p[8]; for (int r = 0; r < 8 - (i == 31); r++) p[r ^ (i & 7)] = r;
        for (int r = 0; r < 8; r++) a[i] += p[(r + i) & 7];""",
    "shared race": """__shared__ float s[64]; s[threadIdx.x < 31 ? threadIdx.x : 30] = i;
        __syncthreads(); a[i] = s[30];""",
    "global race": "a[threadIdx.x < 31 ? threadIdx.x : 30] = i;",
    "global race of blocks": "a[threadIdx.x < 31 ? i : 31] = i;",
}


@pytest.mark.parametrize("name", LAST_LANE)
def test_one_lane_of_a_whole_warp_is_at_fault(name: str) -> None:
    differ, run = both(kernel(LAST_LANE[name]), 2, 32, lambda: [np.zeros(64, np.float32), 1])
    assert (differ, run.engine, bool(run.hazards)) == ([], "numpy", True), run.engine_note
