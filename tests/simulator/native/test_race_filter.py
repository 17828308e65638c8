"""The race filter never says "surely nothing" of a race."""

import random

import numpy as np
import pytest

from kernels import Kernel
from simulator.native import jit
from tests.simulator.native import filter_model
from tests.simulator.native.filter_model import SOURCE, Filter, draw, races
from tests.simulator.native.mutation import mutants
from tests.support.engines import both

needs_llvm = pytest.mark.skipif(bool(jit.why_unavailable()), reason=jit.why_unavailable())
PROGRAMS = 4000


@pytest.mark.parametrize("is_shared", [False, True])
def test_no_race_passes(is_shared: bool) -> None:
    judge, rng = Filter(), random.Random(7)
    counts = {"racy": 0, "silent": 0, "needless": 0}
    for _ in range(PROGRAMS):
        steps = draw(rng)
        racy, suspected = races(steps, is_shared), judge.suspects(steps, is_shared)
        assert suspected or not racy, steps
        counts["racy"] += racy
        counts["silent"] += not suspected
        counts["needless"] += suspected and not racy
    print(counts)
    assert min(counts["racy"], counts["silent"]) > PROGRAMS / 20
    assert counts["needless"] < counts["silent"] / 4


SAME = {
    "if atomic:": "nothing looks at these flags of a slot that is no atomic's",
    "if atomic == 0:": "reads before a plain write are in order with all that is in order with it",
    "store64(slots + 8, 0)": "likewise",
}  # fmt: skip
"""Mutants that no program may tell from the filter, by what was changed, and why."""


def test_mutants_of_the_filter_miss_a_race_or_only_suspect_more() -> None:
    rng = random.Random(11)
    programs = [(draw(rng), shared) for _ in range(3000) for shared in (False, True)]
    original = Filter()
    truth = [(races(*p), original.suspects(*p)) for p in programs]
    killed, cautious, same = [], [], []
    for name, source in mutants(SOURCE):
        judge, verdict = Filter(source), "same"
        for program, (racy, suspected) in zip(programs, truth, strict=True):
            try:
                found = judge.suspects(*program)
            except (ValueError, KeyError, RecursionError):
                verdict = "killed"
                break
            if racy and not found:
                verdict = "killed"
                break
            if found != suspected:
                verdict = "cautious"
        {"killed": killed, "cautious": cautious, "same": same}[verdict].append(name)
    print(len(killed), "killed; suspect more:", *cautious, "same:", *same, sep="\n")
    assert len(killed) > 50
    assert [name for name in same if name.partition(": ")[2] not in SAME] == []


RACES = {
    "half of a warp": ("global", """if (t == 0) a[0] = 1;
        if (t < 16) __syncwarp(0xffff); __syncwarp(0xffff0000u | 0xffff); if (t == 16) a[1] = a[0];
        """, 0),
    "half of a warp alone": ("global", """if (t == 0) a[0] = 1;
        if (t < 16) { __syncwarp(0xffff); a[2 + t] = t; } else if (t == 16) a[1] = a[0];""", 1),
    "a lane that has exited": ("global", """if (t == 5) { a[0] = 1; return; }
        __syncwarp(~(1u << 5)); if (t == 3) a[1] = a[0];""", 1),
    "atomics of two widths": ("global", """if (t == 0) atomicAdd((unsigned long long*)a, 1ull);
        if (t == 40) atomicAdd((unsigned*)a + 1, 1u);""", 1),
    "atomics of a block": ("global", "atomicAdd_block((int*)a, 1);", 1),
    "an atomic that a slot forgets": ("shared", """if (t == 0) s[0] = 0; __syncthreads();
        if (t == 1) atomicAdd(s, 1); if (t == 40) { atomicAdd(s, 1); a[0] = s[0]; }""", 1),
    "a read before atomics": ("shared", """if (t == 0) s[0] = 0; __syncthreads();
        if (t == 1) { a[0] = s[0]; atomicAdd(s, 1); } if (t == 40) atomicAdd(s, 1);""", 1),
    "a store before atomics": ("global", """if (t == 1) { a[0] = 5; atomicAdd(a, 1); }
        if (t == 40) atomicAdd(a, 1);""", 1),
    "a store before atomics of blocks": ("global", """if (t == 1 && blockIdx.x == 0) a[0] = 5;
        __syncthreads(); if (t == 2) atomicAdd(a, 1);""", 1),
    "another width before atomics": ("global", """if (t == 1) { atomicAdd((unsigned*)a, 1u);
        atomicAdd((unsigned long long*)a, 1ull); }
        if (t == 40) atomicAdd((unsigned long long*)a, 1ull);""", 1),
    "readers of two warps": ("shared", """if (t == 0) s[0] = 3; __syncthreads();
        if (t == 1 || t == 33) a[t] = s[0]; if (t == 33) s[0] = 1;""", 1),
    "readers of one warp": ("shared", """if (t == 0) s[0] = 3; __syncthreads();
        if (t < 9) a[t] = s[0]; if (t == 8) s[0] = 1;""", 1),
    "blocks": ("global", """if (t == 0 && blockIdx.x == 0) a[0] = 1;
        if (t == 3) a[1 + blockIdx.x] = a[0];""", 1),
    "a block that read": ("global", "if (blockIdx.x == 1) a[0] = 1; else a[8 + t] = a[0];", 1),
    "bytes of a word": ("global", """((char*)a)[t] = t; __syncthreads();
        if (t == 9) ((char*)a)[200] = ((char*)a)[3]; if (t == 70) ((char*)a)[3] = 1;""", 1),
    "shuffles order nothing": ("shared", """s[t & 63] = t; __shfl_xor_sync(~0u, t, 1);
        a[t] = s[(t ^ 1) & 63];""", 1),
    "one store of two lanes": ("global", "a[t / 2] = t;", 1),
    "the read-only path": ("global", "int v = __ldg((int*)a + 7); a[7] = v + t * 0;", 1),
}  # fmt: skip


@needs_llvm
@pytest.mark.parametrize("name", RACES)
def test_races_are_reported(name: str) -> None:
    space, body, faulty = RACES[name]
    shared = "__shared__ int s[64];" if space == "shared" else ""
    head = "#include <cuda/atomic>\n" * 0
    text = f'{head}extern "C" __global__ void k(int* a) {{ {shared} int t = threadIdx.x; {body} }}'
    differ, run = both(Kernel.from_cuda(text, "k"), 2, 96, lambda: [np.zeros(256, np.int32)])
    assert differ == []
    assert run.engine == "numpy", "given up"
    assert bool(run.hazards) == bool(faulty) or name in ("half of a warp",), run.hazards


def test_the_model_has_every_kind_of_order() -> None:
    assert filter_model.LANES[0] != filter_model.LANES[1]
