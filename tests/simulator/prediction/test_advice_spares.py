"""What a report advises fits its kernel: each row of the tables has one that it must spare."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel
from simulator import Hazard
from simulator.hazards.kinds import BARRIER_DIVERGENCE, DEADLOCK, KINDS
from simulator.hazards.race_cases import ANY_RACE
from tests.simulator.fixes.fix_check import check, hazards, launch

HEAD = "__global__ void k(int* a, int* b, int n) {\n"
HEAD += "    __shared__ int s[128];\n    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n"
RACES = {
    "warps": "s[t] = a[i]; b[i] = s[127 - t];",
    "lanes": "if (t < 32) { s[t] = a[i]; b[i] = s[31 - t]; }",
    "blocks": "a[i] = t; b[i] = a[255 - i];",
    "writes": "s[t / 64] = t; __syncthreads(); b[i] = s[t & 1];",
    "a copy that is waited for": (
        "__pipeline_memcpy_async(&s[t], &a[i], 4); __pipeline_commit(); __pipeline_wait_prior(0);"
        " b[i] = s[127 - t];"
    ),
    "an atomic beside": "atomicAdd(&b[0], 1); s[t] = a[i]; a[i] = s[127 - t];",
    "an update of one's own": "s[t] = 1; s[t] += a[i]; b[i] = s[127 - t];",
    "a look at one's own": "s[t] = 1; if (s[t] == a[i]) s[t] = 2; b[i] = s[127 - t];",
}
"""Races, and what may be said of them."""
SAID = {
    "lanes": {"in step"}, "blocks": {"blocks"}, "writes": {"one instruction"},
    "a copy that is waited for": set[str](),
}  # fmt: skip
NEAR = {
    "copy": "a copy that is waited for",
    "lost": "an update of one's own", "update": "an update of one's own",
    "update in step": "an update of one's own", "look": "a look at one's own",
    "scope": "an atomic beside", "silent": "an atomic beside", "steps": "an atomic beside",
    "in step": "warps", "blocks": "warps", "far": "blocks", "one instruction": "warps",
}  # fmt: skip
"""A kernel that is much like the one that a case is about; of others the plainest."""


@functools.cache
def raced(name: str) -> tuple[Hazard, ...]:
    source = f"#include <cuda_pipeline.h>\n{HEAD}    {RACES[name]}\n}}\n"
    args: list[Any] = [np.arange(256, dtype=np.int32), np.zeros(256, np.int32), 0]
    return tuple(simulator.launch(Kernel.from_cuda(source, "k"), 2, 128, args).hazards)


NOTES = {name: case.note for row in KINDS.values() if row.is_race
         for name, case in row.cases.items() if case.note}  # fmt: skip


@pytest.mark.parametrize("case", NOTES)
def test_a_note_is_of_its_case_alone(case: str) -> None:
    name = NEAR.get(case, "warps")
    found = raced(name)
    assert any(hazard.row.is_race for hazard in found)
    if case not in SAID.get(name, ()):
        assert not any(NOTES[case] in note for hazard in found for note in hazard.notes)


@pytest.mark.parametrize("name", SAID)
def test_and_it_is_said_there(name: str) -> None:
    said = {case for case in NOTES for h in raced(name) if NOTES[case] in h.notes}
    assert said >= SAID[name]


def test_every_race_has_a_kernel_that_it_spares() -> None:
    assert {*NEAR} <= {*ANY_RACE, *NOTES}
    assert {*NEAR.values(), *SAID} <= {*RACES}


# -- barriers -----------------------------------------------------------------------------

BARRIERS = {
    "an if": ("if (t < n) {\n s[t] = a[i];\n __syncthreads(); }\n b[i] = s[t];", "out of the if"),
    "a loop that counts": (
        "for (int j = t; j < n; j += 64) {\n s[t] = a[j];\n __syncthreads();\n b[j] = s[t]; }",
        "round it up, and guard the body",
    ),
    "a loop in one line": (
        "for (int j = t; j < n; j += 64) { s[t] = a[j]; __syncthreads(); b[j] = s[t]; }",
        "round it up, and guard the body",
    ),
    "a loop that looks": (
        "int j = a[i];\nwhile (j > 100) {\n j -= 40;\n __syncthreads(); }\n b[i] = j;",
        "go on until all are done",
    ),
    "a break": (
        "for (int j = 0; ; j++) {\n if (a[i] < j * 40)\n break;\n __syncthreads(); }\n b[i] = 1;",
        "go on until all are done",
    ),
    "a continue": (
        "for (int j = 0; j < 3; j++) {\n if (a[i] < 100 * j)\n continue;\n __syncthreads(); }",
        "instead of the continue",
    ),
    "a return": ("if (t >= n) return;\n s[t] = 1;\n __syncthreads();\n b[i] = s[t];",
                 "return after the barrier"),
    "a switch": (
        "switch (a[i] > n) {\n case 0: s[t] = 1;\n __syncthreads(); }\n b[i] = s[t];",
        "out of the",
    ),
}  # fmt: skip
ADVICE = (
    "out of the if", "out of the loop", "out of the switch", "out of the branch",
    "round it up, and guard the body", "go on until all are done", "instead of the continue",
    "return after the barrier", "one barrier for all",
)  # fmt: skip


@functools.cache
def parted(name: str) -> tuple[str, ...]:
    kernel = Kernel.from_cuda(f"{HEAD}{BARRIERS[name][0]}\n}}\n", "k")
    args: list[Any] = [np.arange(256, dtype=np.int32), np.zeros(256, np.int32), 100]
    found = simulator.launch(kernel, 1, 128, args, checks=["barriers"]).hazards
    assert {h.kind for h in found} <= {BARRIER_DIVERGENCE.name, DEADLOCK.name}
    return tuple(note for hazard in found for note in hazard.notes)


@pytest.mark.parametrize("name", BARRIERS)
def test_advice_on_a_barrier_fits_what_keeps_threads_from_it(name: str) -> None:
    notes, right = parted(name), BARRIERS[name][1]
    assert any(right in note for note in notes), notes
    for other in ADVICE:
        if right not in other:
            assert not any(other in note for note in notes), notes


# -- copies ---------------------------------------------------------------------------------

PIPELINE = """\
#include <cuda_pipeline.h>
__global__ void k(const int* x, int* y, int rounds) {
    __shared__ int stage[3][64];
    int t = threadIdx.x;
    for (int r = 0; r < 2; ++r) {
        __pipeline_memcpy_async(&stage[r][t], &x[r * 64 + t], 4);
        __pipeline_commit();
    }
    for (int r = 0; r < rounds; ++r) {
        __pipeline_wait_prior(WAIT);
        __syncthreads();
        y[r * 64 + t] = stage[r % 3][63 - t];
        if (r + 2 < rounds)
            __pipeline_memcpy_async(&stage[(r + 2) % 3][t], &x[(r + 2) * 64 + t], 4);
        __pipeline_commit();
    }
}
"""


@pytest.mark.parametrize("wait", [2, 3])
def test_a_wait_for_too_few_is_told_its_number(wait: int) -> None:
    kernel = Kernel.from_cuda(PIPELINE.replace("WAIT", str(wait)), "k")
    args: list[Any] = [np.zeros(512, np.int32), np.zeros(512, np.int32), 8]
    for schedule in ("lockstep", "warps", "reverse", 1):
        found = simulator.launch(kernel, 1, 64, args, schedule=schedule).hazards
        reads = [h for h in found if h.kind == "raw-race"]
        assert reads
        for hazard in reads:
            said = f"it waits, but with {wait} for 1: cp.async.wait_group 1"
            assert hazard.notes[1].startswith(said), (schedule, hazard.notes)
            assert hazard.title.startswith("Wait for too few groups: shared `stage` is read")


def test_no_wait_at_all_is_told_another_way() -> None:
    kernel = Kernel.from_cuda(PIPELINE.replace("__pipeline_wait_prior(WAIT);", ""), "k")
    args: list[Any] = [np.zeros(512, np.int32), np.zeros(512, np.int32), 8]
    found = simulator.launch(kernel, 1, 64, args).hazards
    assert any("__pipeline_wait_prior(0)" in note for h in found for note in h.notes)
    assert not any("it waits" in note for h in found for note in h.notes)
    right = Kernel.from_cuda(PIPELINE.replace("WAIT", "1"), "k")
    assert simulator.launch(right, 1, 64, args).hazards == []


# -- fixes ------------------------------------------------------------------------------------

FIXES = {
    "updates": ("s[t] = 1; s[t] += a[i]; b[i] = s[127 - t];", "atomic"),
    "looks": ("s[t] = 1; if (s[t] == a[i]) s[t] = 2; b[i] = s[127 - t];", "atomic"),
    "waits": (RACES["a copy that is waited for"], "wait"),
    "counts": (RACES["a copy that is waited for"], "for __pipeline"),
    "fences": ("atomicAdd(&b[0], 1); s[t] = a[i]; a[i] = s[127 - t];", "fence"),
    "lanes": ("s[t] = a[i]; b[i] = s[127 - t];", "__syncwarp"),
    "the grid": ("s[t] = a[i]; b[i] = s[127 - t];", "grid"),
    "clusters": ("s[t] = a[i]; b[i] = s[127 - t];", "cluster"),
    "splits": ("s[t] = a[i]; b[i] = s[127 - t];", "auto value"),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n != "updates" else n for n in FIXES]
)
def test_a_fix_is_not_tried_where_a_barrier_is_missing(tmp_path: Path, name: str) -> None:
    body, other = FIXES[name]
    file = tmp_path / "my.cu"
    lines = body.replace("; ", ";\n    ")
    file.write_text(f"#include <cuda_pipeline.h>\n{HEAD}    {lines}\n}}\n")
    found = hazards(*launch(file, 1, 128, "i32[128]=arange", "i32[128]", 0))
    texts = {hazard["fix"]["text"] for hazard in found if hazard["fix"]}
    assert texts == {"__syncthreads();"}
    said = check(*launch(file, 1, 128, "i32[128]=arange", "i32[128]", 0)).stdout
    assert other not in "".join(line for line in said.splitlines() if "fix" in line)
