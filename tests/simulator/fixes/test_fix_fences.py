"""Fences between blocks that hand on what they write by an atomic or a flag."""

from pathlib import Path

import pytest

from tests.simulator.fixes.fix_check import fixed_source

COUNT = "unsigned*", "last = atomicAdd(flag, 1) == gridDim.x - 1;"


FLAG = (
    "volatile unsigned*",
    "flag[blockIdx.x] = 1; last = blockIdx.x == 0; "
    "if (last) for (int i = 0; i < gridDim.x; ++i) while (flag[i] == 0);",
)


@pytest.mark.slow_cases("READ")
@pytest.mark.parametrize("lost", [("WRITTEN",), ("READ",), ("WRITTEN", "READ")], ids="-".join)
def test_who_reads_behind_a_flag_gets_a_fence(tmp_path: Path, lost: tuple[str, ...]) -> None:
    source = right = """\
__global__ void k(float* part, volatile unsigned* flag, float* out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            part[0] = 3;
            __threadfence();  // WRITTEN
            *flag = 1;
        } else {
            while (*flag == 0);
            __threadfence();  // READ
            *out = part[0];
        }
    }
}
"""
    for place in ("WRITTEN", "READ"):
        fence = f"            __threadfence();  // {place}\n"
        right = right.replace(f"  // {place}", "")
        source = source.replace(fence, "" if place in lost else fence.replace(f"  // {place}", ""))
    assert fixed_source(tmp_path, source, 2, 32, "f32[3]", "u32[1]", "f32[1]") == right


@pytest.mark.slow_cases("READ", "lines")
@pytest.mark.parametrize("narrow", [("WRITTEN",), ("READ",), ("WRITTEN", "READ")], ids="-".join)
@pytest.mark.parametrize("line", ["\n            ", " "], ids=["lines", "one line"])
def test_a_fence_of_the_block_becomes_one_of_the_device(
    tmp_path: Path, narrow: tuple[str, ...], line: str
) -> None:
    right = source = """\
__global__ void k(float* part, volatile unsigned* flag, float* out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            part[0] = 3;LINEWRITTENLINE*flag = 1;
        } else {
            while (*flag == 0);LINEREADLINE*out = part[0];
        }
    }
}
""".replace("LINE", line)
    for place in ("WRITTEN", "READ"):
        right = right.replace(place, "__threadfence();")
        fence = "__threadfence_block();" if place in narrow else "__threadfence();"
        source = source.replace(place, fence)
    assert fixed_source(tmp_path, source, 2, 32, "f32[3]", "u32[1]", "f32[1]") == right


FOR_ALL = """\
__global__ void k(float* part, TYPE flag, float* out) {
    __shared__ bool last;
    int t = threadIdx.x;
    part[blockIdx.x * 64 + t] = t;
    __syncthreads();
    if (t == 0) {
        __threadfence();
        SET
        __threadfence();
    }
    __syncthreads();
    if (WHO) out[blockIdx.x * 64 + t] = part[(blockIdx.x ^ 1) * 64 + t];
}
"""
MET, FENCED = "    __syncthreads();\n", "        __threadfence();\n"
BEHIND, AHEAD = "= t;\n", "    if ("
POLL = FLAG[0], "flag[blockIdx.x] = 1; while (flag[0] == 0); while (flag[1] == 0);"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "code", "who"), [(*COUNT, "last"), (*POLL, "true")], ids=["count", "flag"]
)
@pytest.mark.parametrize(
    ("lost", "given"),
    [
        ([BEHIND + MET], BEHIND + MET),
        ([MET + AHEAD], MET + AHEAD),
        ([BEHIND + MET, MET + AHEAD], ""),
        ([MET + "    if (t == 0) {\n" + FENCED], BEHIND + MET[:-1] + " __threadfence();\n"),
    ],
    ids=["behind", "ahead", "both", "behind with its fence"],
)
def test_who_hands_on_for_others_meets_them_first(
    tmp_path: Path, kind: str, code: str, who: str, lost: list[str], given: str
) -> None:
    """One thread tells that all have written, or asks for all: a barrier of the block is lost."""
    right = FOR_ALL.replace("TYPE", kind).replace("SET", code).replace("WHO", who)
    source = right
    for piece in lost:
        assert piece in source
        source = source.replace(piece, piece.replace(MET, "").replace(FENCED, ""))
    text = fixed_source(tmp_path, source, 2, 64, "f32[128]", "u32[3]", "f32[128]")
    assert given in text
    assert text.count("__sync") == right.count("__sync")
