"""What ``check`` says of races that no edit fixes, and of what a fix is not."""

from pathlib import Path

import pytest

from tests.simulator.fixes.fix_check import check, hazards, launch

OPTIONS = ("--shared", 512, "--arch", "compute_90a")
GROUPS = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
"""


NO_BARRIER = "no fix: no __syncthreads() between two statements removes this race alone"
REFUSED = {
    "an update": (
        "removes this race alone; let one atomic operation read and write, as",
        """
    a[0] *= a[t];
""",
    ),
    "a write by all": (
        NO_BARRIER,
        """
    a[0] = t;
""",
    ),
    "an if that reads and writes": (
        "the if on line 3 both reads and writes",
        """
    if (t < 63) {
        int x = a[t + 1];
        a[t] = x;
    }
""",
    ),
    "two branches": (
        NO_BARRIER,
        """
    __shared__ int s[64];
    s[t] = a[t];
    __syncthreads();
    if (t < 32) {
        for (int i = 0; i < 2; ++i)
            s[t] = i;
    } else {
        for (int i = 0; i < 2; ++i)
            a[t] += s[63 - t];
    }
""",
    ),
    "threads that have returned": (
        "__syncthreads() after line 5 would order the two, but threads that a return",
        """
    __shared__ int s[64];
    if (t > 49) return;
    s[t] = a[t];
    a[t] = s[49 - t];
""",
    ),
}


@pytest.mark.slow_but("a write by all")
@pytest.mark.parametrize("name", REFUSED)
def test_where_no_edit_is_a_fix_it_says_so(name: str, tmp_path: Path) -> None:
    said, body = REFUSED[name]
    file = tmp_path / "my.cu"
    text = f"__global__ void k(int* a) {{\n    int t = threadIdx.x;{body}}}\n"
    file.write_text(text)
    result = check(*launch(file, 1, 64, "i32[65]=arange"), "--fix")
    assert result.exit_code == 1
    assert said in " ".join(result.stdout.split())
    assert "verified" not in result.stdout
    assert file.read_text() == text


def test_blocks_are_not_fixed_by_a_barrier(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("__global__ void k(int* a) { a[threadIdx.x] = blockIdx.x; }\n")
    result = check(*launch(file, 2, 32, "i32[32]"))
    assert result.exit_code == 1
    assert "  fix" not in result.stdout


@pytest.mark.slow_cases("5000")
@pytest.mark.parametrize("place", ['100 "gen.y"', "5000"])
def test_what_a_line_directive_hides_is_said_to_be_hidden(tmp_path: Path, place: str) -> None:
    file = tmp_path / "my.cu"
    text = f"""\
__global__ void k(int* a) {{
    __shared__ int s[64];
    int t = threadIdx.x;
#line {place}
    s[t] = a[t];
    a[t] = s[63 - t];
}}
"""
    file.write_text(text)
    said = " ".join(check(*launch(file, 1, 64, "i32[64]=arange")).stdout.split())
    assert "no fix looked for: the compiler names" in said
    assert "which cannot be read" in said
    assert "removes this race" not in said


def test_a_file_whose_name_the_compiler_does_not_keep_is_said_to_have_no_fix(
    tmp_path: Path,
) -> None:
    file = tmp_path / "two\nlines.cu"
    file.write_text("""\
__global__ void k(int* a) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    a[t] = s[63 - t];
}
""")
    said = " ".join(check(*launch(file, 1, 64, "i32[64]=arange")).stdout.split())
    assert "no fix looked for: the compiler names" in said
    assert "removes this race" not in said


def test_a_split_where_some_threads_may_not_come_says_so(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("""\
__global__ void k(const unsigned char* mask, int* a) {
    int i = threadIdx.x;
    if (mask[i]) {
        int to = i ^ 33;
        a[to] = a[i] + 1;
    }
}
""")
    said = " ".join(check(*launch(file, 1, 64, "u8[64]=1", "i32[64]=arange")).stdout.split())
    assert "splits the statement on line 5, where all threads of the block have to come" in said


def test_one_update_is_told_as_one(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("__global__ void k(int* a) {\n    a[threadIdx.x % 4] += 1;\n}\n")
    found = hazards(*launch(file, 2, 64, "i32[4]"))
    assert {h["fix"]["group"] for h in found} == {1}
    said = " ".join(check(*launch(file, 2, 64, "i32[4]")).stdout.split())
    assert "atomicAdd(&a[threadIdx.x % 4], 1) instead of the statement on line 2: verified" in said
    assert "explains these 6 (an atomic operation does it in one): the above and" in said
    assert not any("__syncwarp" in note for h in found for note in h["notes"])
    file.write_text("__global__ void k(int* a) {\n    a[threadIdx.x % 4] *= 3;\n}\n")
    said = " ".join(check(*launch(file, 2, 64, "i32[4]=ones")).stdout.split())
    assert "these 6 (an atomic operation does it in one): the above and" in said
    assert "no fix: " not in said
    assert said.endswith("no fix found: no edit is known to try")


def test_where_nothing_hands_on_no_fence_is_tried(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("""\
__global__ void k(int* a) {
    a[blockIdx.x] = 1;
    a[threadIdx.x + 8] = a[gridDim.x - 1 - blockIdx.x];
}
""")
    said = " ".join(check(*launch(file, 2, 4, "i32[16]")).stdout.split())
    assert "hands on needs a __threadfence() before it" in said
    assert said.endswith("no fix found: no edit is known to try")


APART = """\
__global__ void k(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    ELSEWHERE
    if (blockIdx.x % 2 == 0) a[i] = 1;
    if (i < 64) a[i + 1] = 2;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "elsewhere",
    ["", pytest.param("if (n == 0) cg::this_grid().sync();", marks=pytest.mark.slow)],
)
def test_what_orders_lanes_is_no_fix_where_blocks_race(tmp_path: Path, elsewhere: str) -> None:
    """No barrier of the grid takes this race away: lanes of a warp race at the same lines."""
    file = tmp_path / "my.cu"
    text = GROUPS + APART.replace("ELSEWHERE", elsewhere)
    file.write_text(text)
    words = launch(file, 4, 32, "f32[130]", 3)
    found = hazards(*words, "--fix")
    assert {hazard["severity"] for hazard in found} == {"error", "warning"}, found
    assert [hazard["fix"] for hazard in found] == [None] * len(found)
    assert file.read_text() == text


def test_lanes_that_lose_updates_to_blocks_too_are_told_of_an_atomic(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text("__global__ void k(int* a) {\n    a[threadIdx.x % 8] *= 3;\n}\n")
    found = hazards(*launch(file, 2, 32, "i32[8]"))
    (update,) = found
    assert update["fix"] is None
    assert "another block" in update["message"]
    assert any("another lane" in h["message"] for h in update["follows"])
    said = " ".join(check(*launch(file, 2, 32, "i32[8]")).stdout.split())
    assert "one update in several steps explains these 4 (an atomic operation does it in" in said


UNWAITED = """\
__global__ void k(float* out, const float* in) {
    __shared__ __align__(128) float s[128];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&full);
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" :: "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1], 512, [%2];"
                     :: "r"((unsigned)__cvta_generic_to_shared(s)), "l"(in), "r"(at) : "memory");
    }
    __syncthreads();
    out[t] = s[127 - t];
}
"""


@pytest.mark.slow
def test_what_no_statement_fixes_says_so(tmp_path: Path) -> None:
    """A wait for an mbarrier is of a phase that only the program knows."""
    file = tmp_path / "my.cu"
    file.write_text(UNWAITED)
    said = " ".join(check(*launch(file, 1, 128, "f32[128]", "f32[128]=arange")).stdout.split())
    assert (
        "no fix: the source alone does not determine which mbarrier and phase to wait for" in said
    )


TWO_LOST = """\
#define WAIT() asm volatile("cp.async.wait_group 0;" ::: "memory")
template <bool WAITS> __global__ void k(float* out, const float* in, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(s + t);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(in + t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (WAITS) WAIT();
    out[t] = s[127 - t];
}
"""


@pytest.mark.slow
def test_a_wait_that_only_gives_the_race_another_name_is_no_fix(tmp_path: Path) -> None:
    """In front of the end of its group it waits for nothing; the builds tell of two races."""
    file = tmp_path / "my.cu"
    file.write_text(TWO_LOST)
    _, *words = launch(file, 1, 128, "f32[128]", "f32[128]=arange", 4, *OPTIONS)
    said = " ".join(check(file, "k<false>", *words).stdout.split())
    fixes = said.split(" fix ")[1:]
    assert [fix.partition(", ")[0] for fix in fixes] == [
        "WAIT(); __syncthreads() after line 8: verified"
    ]
    assert "verified, 0 errors left" in fixes[0]
