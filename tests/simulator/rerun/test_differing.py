"""Results of the two builds, held against each other; and what is said of one build alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from kernels import Kernel, unset
from simulator.build_results import (
    DifferingElements,
    ResultArray,
    builds_differ,
    perturbed,
    unequal,
)
from tests.support.command_line import check, flat
from tilescope.check.build_comparison import CLOCKS
from tilescope.check.builds import SOURCE_ONLY
from tilescope.check.checker import Checker, Verdict
from tilescope.check.launcher import Launcher
from tilescope.cli.target import Target

KIND = "builds-differ"
BUILDS = ("device", "source")
STEP = """
    __global__ void k(const int* in, int* out) {
        __shared__ int v[64];
        int i = threadIdx.x;
        v[i] = in[i];
        __syncthreads();
        if (i < 32) {
            v[i] += v[i + 32];
            v[i] += v[i + 16];
        }
        out[i] = v[i];
    }
"""
OVERFLOWS = """
    __device__ int last[32];
    __global__ void k(const int* in, int* out) {
        int x = in[threadIdx.x];
        out[threadIdx.x] = x + 1 > x;
        last[threadIdx.x] = x + 1 > x;
    }
"""


def verdict(source: str, args: list[Any], grid: int = 1, block: int = 64, **how: Any) -> Verdict:
    options = how.pop("options", ())
    kernel = Kernel.from_cuda(source, "k", options=options)
    schedule = how.pop("schedule", "lockstep")
    target = Target("k", kernel, (grid,), (block,), args, **how)
    return Checker(Launcher(target, schedule, quiet=True)).check(BUILDS, fixes=False)


def kinds(found: Verdict) -> list[str]:
    return [hazard.kind for hazard in found.hazards]


def written(folder: Path, source: str) -> str:
    file = folder / "my.cu"
    file.write_text(source)
    return str(file)


def test_a_warp_that_is_taken_to_go_in_step(tmp_path: Path) -> None:
    """The races are warnings, and the results an error, with no reference."""
    words = (written(tmp_path, STEP), "--grid", 1, "--block", 64, "i32[64]=arange", "i32[64]")
    result = check(*words, "--no-fix-search")
    assert result.exit_code == 1
    assert result.stdout.startswith("1 error, 2 warnings in k")
    said = flat(result)
    assert "results: out[0] is 48 in the device build and 96 in the source build" in said
    assert "16 of 64 elements of out" in said
    assert "may follow from the warnings below: " in said
    first = json.loads(check(*words, "--no-fix-search", "--json", "-").stdout)["hazards"][0]
    assert (first["kind"], first["severity"], first["variable"]) == (KIND, "error", "out")
    assert (first["element"], first["count"], first["builds"]) == (0, 16, list(BUILDS))


@pytest.mark.parametrize("right", BUILDS)
def test_a_reference_says_which_build_is_right(right: str, tmp_path: Path) -> None:
    made = verdict(STEP, [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)])
    assert kinds(made)[0] == KIND
    out = np.arange(64, dtype=np.int32)
    old = out.copy()
    out[:32] += old[32:]
    out[:32] += out[16:48] if right == "source" else old[16:48]
    np.save(tmp_path / "right.npy", out)
    words = (written(tmp_path, STEP), "--grid", 1, "--block", 64, "i32[64]=arange", "i32[64]")
    said = check(*words, "--no-fix-search", "--expect", f"out=@{tmp_path / 'right.npy'}")
    assert f"by the reference the {right} build is right" in flat(said)
    assert "give --expect" not in flat(said)


def test_restrict_explains_it(tmp_path: Path) -> None:
    source = """__global__ void k(const float* __restrict__ a, float* __restrict__ b) {
        b[threadIdx.x] = a[threadIdx.x] * 2;
        b[threadIdx.x] += a[threadIdx.x];
    }"""
    words = (written(tmp_path, source), "--grid", 1, "--block", 32, "f32[32]=ones", "a[0:]")
    result = check(*words)
    assert result.exit_code == 1
    assert result.stdout.startswith("1 error in k")
    said = flat(result)
    assert "Drop __restrict__: `a` (line 2) and `b` (line 3) reach the same bytes" in said
    assert "follows from the above: error: the two builds leave different results: a[0] is" in said
    (hazard,) = json.loads(check(*words, "--json", "-").stdout)["hazards"]
    assert [h["kind"] for h in hazard["follows"]] == [KIND]
    assert check(words[0], *words[1:-1], "f32[32]").exit_code == 0


def test_undefined_behaviour_alone() -> None:
    """No hazard explains it; module variables are results, too."""
    args = [np.full(32, 2**31 - 1, np.int32), np.zeros(32, np.int32)]
    (hazard,) = verdict(OVERFLOWS, args, block=32).hazards
    assert (hazard.kind, hazard.variable, hazard.also) == (KIND, "out", ())
    symbols = {"last": np.zeros(32, np.int32)}
    made = verdict(OVERFLOWS, args, block=32, symbols=symbols)
    (hazard,) = made.hazards
    assert (hazard.also, hazard.count) == (("last",), 64)
    assert not symbols["last"].any()
    assert made.errors == 1
    assert made.fails("error")
    assert not verdict(OVERFLOWS, [np.zeros(32, np.int32)] * 2, block=32).hazards


@pytest.mark.parametrize("way", ["comment", "baseline", "build"])
def test_what_is_known_is_not_told_again(way: str, tmp_path: Path) -> None:
    top = f"i32[32]={2**31 - 1}"
    source = STEP if way == "comment" else OVERFLOWS
    if way == "comment":
        source = "\n".join(f"{line}  // tilescope: ignore" for line in source.splitlines())
    file = written(tmp_path, source)
    words: Sequence[Any] = (file, "--grid", 1, "--block", 32, top, "i32[32]", "--no-fix-search")
    if way == "comment":
        words = (file, "--grid", 1, "--block", 64, "i32[64]=arange", "i32[64]", "--no-fix-search")
    elif way == "baseline":
        known = str(tmp_path / "known.json")
        assert check(*words, "--write-baseline", known).exit_code == 1
        words = (*words, "--baseline", known)
    else:
        words = (*words, "--build", "device")
    result: Result = check(*words)
    assert result.exit_code == 0
    assert "different results" not in result.stdout


CLEAN = {
    "contraction": "out[t] = x * y + z;",
    "a count that contraction changes": """
        float a = x * 1e-3f, c = 0; int n = 0;
        for (int i = 0; i < 300; ++i) { c = c * c * 1.7f + a; n += c * c > 0.3f * a + 0.01f; }
        out[t] = n;
    """,
    "the order of sums": "atomicAdd(&out[0], x * 1.37f);",
    "numbers that are drawn": "int at = atomicAdd(count, 1); out[at] = t; out[256 + t] = at;",
    "numbers that a warp draws": """
        if (t % 3 == 0) out[atomicAdd(count, 1)] = x + t;
        else out[atomicAdd(count, 1)] = t * 2 - 1;
    """,
    "what a warp draws in one of two branches": "out[t] = atomicAdd(count, t & 1 ? 2 : 3);",
    "a branch that what a warp draws decides on": """
        int at = t & 1 ? atomicAdd(count, 2) : atomicAdd(count, 3);
        if (at > 30) out[t] = 1;
    """,
    "sums of a warp in another order": "atomicAdd(out, t & 1 ? x * 1.37f : y); "
    "if (t & 2) atomicAdd(out + 1, x * .1f); else atomicAdd(out + 1, y * .3f);",
    "a function of a constant": "out[t] = sinf(1.0f) * x + powf(2.f, 0.3f);",
    "a function of what is constant once a loop is unrolled": """
        float sum = x;
        #pragma unroll
        for (int i = 1; i < 4; ++i) sum += cosf(i * .1f) * logf(i + .5f);
        out[t] = sum;
    """,
    "no number": "out[t] = x < 2 ? sqrtf(-1.f - x) : -(x - x);",
    "what is unset stays so": "if (t & 1) out[t] = x;",
}


@pytest.mark.parametrize("options", [(), ("--use_fast_math",)], ids=["", "fast"])
@pytest.mark.parametrize("name", CLEAN)
def test_what_order_contraction_and_constants_explain(name: str, options: Sequence[str]) -> None:
    source = f"""__global__ void k(const float* in, float* out, int* count) {{
        int t = blockIdx.x * blockDim.x + threadIdx.x;
        float x = in[t], y = in[t ^ 1], z = in[t ^ 2];
        {CLEAN[name]}
    }}"""
    rng = np.random.default_rng(3)
    out = unset((512,), np.float32) if "unset" in name else np.zeros(512, np.float32)
    args = [rng.normal(size=256).astype(np.float32) + 3, out, np.zeros(1, np.int32)]
    shape = (1, 32) if "warp" in name else (4, 64)
    assert kinds(verdict(source, args, *shape, options=options)) == []


def test_a_difference_among_contracted_elements() -> None:
    """Those that contraction explains do not hide the others."""
    source = """__global__ void k(const float* in, const int* i, float* out, int* o) {
        int t = threadIdx.x;
        out[t] = in[t] * in[t ^ 1] + in[t ^ 2];
        o[t] = i[t] + 1 > i[t];
    }"""
    rng = np.random.default_rng(3)
    args = [rng.normal(size=64).astype(np.float32), np.full(64, 2**31 - 1, np.int32),
            np.zeros(64, np.float32), np.zeros(64, np.int32)]  # fmt: skip
    (hazard,) = verdict(source, args).hazards
    assert (hazard.variable, hazard.also, hazard.count) == ("o", (), 64)


@pytest.mark.parametrize(
    "fields",
    ["char c; int i;", "double i; char c : 2;", "short c; long long i;"],
)
@pytest.mark.parametrize("bytes", [False, True])
def test_padding_has_no_value(fields: str, bytes: bool) -> None:
    """Of structures as the compiler lays them out, bit-fields among them."""
    source = f"""
    struct P {{ {fields} }};
    __global__ void k(P* out, int* o, const int* in) {{
        P p; p.c = threadIdx.x; p.i = threadIdx.x;
        out[threadIdx.x] = p;
        o[threadIdx.x] = in[threadIdx.x] + 1 > in[threadIdx.x];
    }}"""
    out = np.full(16 * 32, 7, np.uint8)
    args = [out if bytes else out.view(np.int32), np.zeros(32, np.int32),
            np.full(32, 2**31 - 1, np.int32)]  # fmt: skip
    (hazard,) = verdict(source, args, block=32).hazards
    assert (hazard.variable, hazard.also) == ("o", ())


def test_a_clock_differs() -> None:
    source = "__global__ void k(long long* out) { out[threadIdx.x] = clock64(); }"
    made = verdict(source, [np.zeros(32, np.int64)], block=32)
    assert made.hazards == []
    assert CLOCKS in made.notes
    beside = (
        source.replace("void k", "void timed") + "__global__ void k(long long* out) { *out = 1; }"
    )
    assert CLOCKS not in verdict(beside, [np.zeros(1, np.int64)], block=1).notes


def test_a_clean_check_runs_each_build_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    observe = Launcher.observe

    def counted(self: Launcher, *args: Any, **how: Any) -> Any:
        runs.append(args[0].build)
        return observe(self, *args, **how)

    monkeypatch.setattr(Launcher, "observe", counted)
    source = "__global__ void k(float* x) { x[threadIdx.x] *= 2; }"
    assert verdict(source, [np.ones(64, np.float32)]).hazards == []
    assert runs == ["device", "source"]


def test_unequal() -> None:
    def where(a: Any, b: Any, members: Any = None) -> list[int]:
        found = unequal(ResultArray("a", np.asarray(a)), ResultArray("a", np.asarray(b)), members)
        return [] if found is None else np.flatnonzero(found).tolist()

    nan = np.array([0x7FFFFFFF, 0x7FC00000, 0, 5], np.uint32).view(np.float32)
    other = np.array([0x7FC00000, 0xFFFFFFFF, 0x80000000, 6], np.uint32).view(np.float32)
    assert where(nan, other) == [3]
    assert where([1, 2, 3], [1, 5, 3]) == [1]
    assert where([1 + 2j, np.nan * 1j], [1 - 2j, np.nan * 1j]) == [0]
    kind = np.dtype([("a", "u1"), ("b", "f4", (2,))], align=True)
    a, b = np.zeros(3, kind), np.zeros(3, kind)
    b.view(np.uint8).reshape(3, -1)[:, 1] = 9
    assert where(a, b) == []
    b["b"][1, 1] = 2
    b["a"][2] = 1
    assert where(a, b) == [1, 2]
    members = np.tile(np.array([255, 0, 255, 255], np.uint8), 3)
    raw = np.arange(12, dtype=np.uint8)
    also = raw.copy()
    also[[1, 6]] = 99
    assert where(raw, also, members) == [6]
    assert where(np.zeros(()), np.ones(())) == [0]


def test_words_of_a_matrix() -> None:
    values = {"device": np.zeros((2, 3)), "source": np.ones((2, 3))}
    hazard = builds_differ([DifferingElements("m", values, values["source"] > 0)], ["so"])
    assert hazard.message.endswith("m[0, 0] is 0.0 in the device build and 1.0 in the source build")
    assert hazard.notes[0] == "6 of 6 elements of m"
    assert len(hazard.notes) == 4


def test_functions_that_are_perturbed() -> None:
    """Those of CUDA's that a compiler may evaluate, and none of the user's."""
    source = """
        __device__ __noinline__ float own(float x) { return x + 1; }
        __global__ void k(float* x) { x[0] = FUNCTION(x[0]); }
    """
    for name, changed in (("sinf", True), ("__expf", True), ("pow", True), ("own", False),
                          ("sqrtf", False), ("fabsf", False)):  # fmt: skip
        text = source.replace("FUNCTION(x[0])", f"{name}(x[0]{', 2.5' if name == 'pow' else ''})")
        assert (perturbed(Kernel.from_cuda(text, "k", build="source")) is not None) == changed


RING = """
__global__ void k(const int* in, int* out, int rounds) {
    __shared__ int slot[3][32];
    __shared__ volatile int full[3], empty[3];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (threadIdx.x < 3) { full[threadIdx.x] = 0; empty[threadIdx.x] = 1; }
    __syncthreads();
    if (warp == 0) {
        for (int r = 0; r < rounds; ++r) {
            __syncwarp();
            __threadfence_block();
            slot[r % 3][lane] = in[r * 32 + lane];
            __threadfence_block();
            __syncwarp();
            if (lane == 0) { empty[r % 3] = 0; __threadfence_block(); full[r % 3] = 1; }
            __syncwarp();
        }
    } else {
        for (int r = 0; r < rounds; ++r) {
            while (!full[r % 3]) {}
            __syncwarp();
            __threadfence_block();
            out[r * 32 + lane] = slot[r % 3][lane];
            __threadfence_block();
            __syncwarp();
            if (lane == 0) { full[r % 3] = 0; __threadfence_block(); empty[r % 3] = 1; }
            __syncwarp();
        }
    }
}
"""


def test_the_device_build_is_tried_in_other_orders() -> None:
    """The producer does not wait: if it runs ahead, the consumer waits for ever, in both builds."""
    args = [np.arange(192, dtype=np.int32), np.zeros(192, np.int32), 6]
    (loop,) = [hazard for hazard in verdict(RING, args).hazards if hazard.row.is_endless]
    assert loop.builds == BUILDS
    assert not any("source build" in note for note in loop.notes)


RACES = """
    __global__ void k(int* out) {
        __shared__ int s[64];
        s[threadIdx.x] = threadIdx.x;
        BARRIER
        out[threadIdx.x] = s[63 - threadIdx.x];
    }
"""


@pytest.mark.parametrize("racy", ["lockstep", "warps", 1, ""])
def test_how_often_the_device_build_is_tried(
    racy: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it shows what the source build does; only then is it said that it does not."""
    clean = Kernel.from_cuda(RACES.replace("BARRIER", "__syncthreads();"), "k")
    seen: list[str | int] = []
    observe = Launcher.observe

    def sometimes(
        self: Launcher, kernel: Kernel, checks: Any, schedule: str | int, *args: Any, **how: Any
    ) -> Any:
        if kernel.build == "device":
            seen.append(schedule)
            kernel = kernel if schedule == racy else clean
        return observe(self, kernel, checks, schedule, *args, **how)

    monkeypatch.setattr(Launcher, "observe", sometimes)
    (hazard,) = verdict(RACES.replace("BARRIER", ""), [np.zeros(64, np.int32)]).hazards
    assert hazard.builds == (BUILDS if racy else ("source",))
    assert (SOURCE_ONLY in hazard.notes) == (not racy)
    assert seen[: 1 + ("lockstep", "warps", "reverse", 1).index(racy or 1)] == seen
    assert seen[-1] == (racy or 1)
