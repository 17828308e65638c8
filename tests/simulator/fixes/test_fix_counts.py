"""Waits that leave too much under way: their number is edited, and no second wait is put there."""

import json
from pathlib import Path

import pytest

from simulator.fixes.edits.statements import Point, Syntax
from simulator.fixes.edits.wait_counts import count_edits
from tests.simulator.fixes.fix_check import check, launch

RING = """\
#include <cuda_pipeline.h>
__global__ void k(float* out, const float* in, int n) {
    __shared__ __align__(16) float s[4][64];
    int t = threadIdx.x;
    for (int i = 0; i < 2; ++i) {
        __pipeline_memcpy_async(&s[i][t], in + 64 * i + t, 4);
        __pipeline_commit();
    }
    float sum = 0;
    for (int i = 0; i < n; ++i) {
        if (i + 2 < n) __pipeline_memcpy_async(&s[(i + 2) & 3][t], in + 64 * (i + 2) + t, 4);
        __pipeline_commit();
        __pipeline_wait_prior(LEFT);
        __syncthreads();
        sum += s[i & 3][63 - t];
    }
    out[t] = sum;
}
"""
SENT = """\
__global__ void k(float* out, const float* in, int n) {
    __shared__ __align__(128) float s[64];
    int t = threadIdx.x;
    s[t] = in[t] * n;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
            :: "l"(out), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
    out[t] += 1;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (RING.replace("LEFT", "4"), "__pipeline_wait_prior(2) for __pipeline_wait_prior(4) on"),
        (SENT, 'asm volatile("cp.async.bulk.wait_group 0;" ::: "memory") for asm volatile("cp.'),
    ],
)
def test_a_lax_wait_is_edited(text: str, fix: str, tmp_path: Path) -> None:
    file, told = tmp_path / "my.cu", tmp_path / "told.json"
    file.write_text(text)
    words = launch(file, 1, 64, "f32[64]", "f32[384]=arange", 6, "--arch", "compute_90a")
    said = " ".join(check(*words, "--fix", "--json", told).stdout.split())
    assert f"fix {fix}" in said
    assert "one wrong statement explains these 2: the above and" in said
    assert all(h["fix"] for h in json.loads(told.read_text())["hazards"])
    assert check(*words, "--fail-on", "warning").exit_code == 0


@pytest.mark.parametrize(
    ("wait", "given", "left", "case", "wanted"),
    [
        ("__pipeline_wait_prior(@)", "2", 2, "copy", ["1", "0"]),
        ("wait_prior<@>(block)", "1", 1, "copy", ["0"]),
        ("cp_async_wait<@>()", "STAGES - 2", 1, "copy", ["STAGES - 2 - 1"]),
        ("wait_group(n32_t<@>{})", "1", 1, "bulk", ["0"]),
        ('asm("wgmma.wait_group.sync.aligned @;")', "1", 1, "registers", ["0"]),
        ('asm("cp.async.wait_group %0;" :: "n"(@))', "ST - 1", 1, "copy", ["ST - 1 - 1"]),
        ("bulk_wait_group@<0>()", "_read", 0, "sent", [""]),
        ("bulk_wait_group@<0>()", "_read", 0, "bulk", []),
        ("wait(full, @)", "1", 1, "copy", []),  # for a phase, say, in the line of another wait
        ('asm("cp.async.wait_group %0;" :: "n"(@))', "N", 1, "copy", []),  # of all calls
        ("ring<@>(1)", "3", 1, "copy", []),
    ],
)
def test_what_is_tried_instead_of_a_wait(
    wait: str, given: str, left: int, case: str, wanted: list[str], tmp_path: Path
) -> None:
    wait, others = wait.replace("@", given), [wait.replace("@", one) for one in wanted]
    text = f"void k() {{\n  for (;;) {{\n    copy();\n    {wait};\n    read();\n  }}\n  late();\n}}"
    syntax = Syntax({tmp_path: text.encode()})
    waits = [(left, [Point(tmp_path, 4)])]
    edits = [*count_edits(syntax, waits, [Point(tmp_path, 5)], case)]
    assert [edit.text for edit in edits] == others
    assert all(edit.line == 4 and edit.where == f"for {wait} on" for edit in edits)
    assert [*count_edits(syntax, waits, [Point(tmp_path, 7)], case)] == []  # behind the loop
