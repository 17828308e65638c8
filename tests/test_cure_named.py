"""Named barriers, where only some of a block's threads come: a lost one is given back."""

import json
from pathlib import Path

import pytest
from test_cures import check, launch

from simulator.cures.remedies import named_barriers
from simulator.cures.statements import Syntax

pytestmark = pytest.mark.slow

FUNCTION = """\
__device__ __forceinline__ void half_sync(int which) {
    asm volatile("bar.sync %0, 64;" :: "r"(1 + which) : "memory");
}
__global__ void k(float* out, const float* in) {
    __shared__ float s[128], p[64];
    int t = threadIdx.x, half = t / 64;
    s[t] = in[t];
    __syncthreads();
    if (half == 0) {
        p[t] = s[t] * 2.0f;
        half_sync(half);  // lost
        float v = p[t ^ 33];
        half_sync(half);  // lost
        p[t] = v + 1.0f;
        half_sync(half);  // lost
        out[t] = p[63 - t];
    } else {
        out[t] = s[t] * s[t];
    }
}
"""
MACRO = """\
#define MEET(id) asm volatile("barrier.sync.aligned " #id ", 64;" ::: "memory")
__global__ void k(float* out, const float* in, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    if (t < 64) {
        for (int i = 0; i < n; ++i) {
            s[t] = in[t + i * 64];
            MEET(3);  // lost
            float v = s[t ^ 63];
            MEET(3);  // lost
            s[t] = v * v;
            MEET(3);
            out[t] = s[t ^ 32];
            MEET(3);  // lost
        }
    } else {
        out[t] = t;
    }
}
"""
PLAIN = """\
__global__ void k(float* out, const float* in) {
    __shared__ float s[128], q[96];
    int t = threadIdx.x;
    if (t >= 96) {
        out[t] = 1.0f;
    } else {
        s[t] = in[t];
        __barrier_sync_count(5, 96);  // lost
        q[t] = s[95 - t];
        __barrier_sync_count(5, 96);  // lost
        out[t] = q[(t + 48) % 96];
    }
}
"""
SOURCES = {"function": (FUNCTION, ()), "macro": (MACRO, (3,)), "intrinsic": (PLAIN, ())}
LOST = [
    (name, i)
    for name, (text, _) in SOURCES.items()
    for i, line in enumerate(text.splitlines())
    if line.endswith("// lost")
]


@pytest.mark.parametrize(("name", "lost"), LOST)
def test_what_is_lost_is_given_back(name: str, lost: int, tmp_path: Path) -> None:
    text, more = SOURCES[name]
    lines = text.splitlines()
    wanted = lines.pop(lost).split("//")[0].strip()
    file = tmp_path / "k.cu"
    file.write_text("\n".join(lines) + "\n")
    words = launch(file, 1, 128, "f32[128]", "f32[256]=arange", *more)
    told = tmp_path / "told.json"
    assert check(*words, "--fix", "--json", told).exit_code == 0
    errors = [h for h in json.loads(told.read_text())["hazards"] if h["severity"] == "error"]
    assert errors
    assert {error["cure"]["text"] for error in errors} == {wanted}
    again = check(*words, "--fail-on", "warning")
    assert again.exit_code == 0, again.stdout


def test_statements_that_are_found() -> None:
    files = {Path(f"{name}.cu"): text.encode() for name, (text, _) in SOURCES.items()}
    found = {text: named_barriers(Syntax({path: text})) for path, text in files.items()}
    assert [names[-1] for names in found.values()] == [
        "half_sync(half);", "MEET(3);", "__barrier_sync_count(5, 96);",
    ]  # fmt: skip
    other = b'__global__ void k() { __syncthreads(); asm volatile("bar.sync 0;"); __syncwarp(); }'
    assert named_barriers(Syntax({Path("k.cu"): other})) == []
