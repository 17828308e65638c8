"""A search for fixes ends: each trial after some times the launch's steps, all after its work."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import simulator
from kernels import Kernel, KernelError
from kernels.arguments.argument_copies import copies
from simulator.fixes import budget, search, verification
from tests.simulator.fixes.fix_check import check, hazards, launch

ENDLESS = """\
__global__ void k(const int* a, int* o) {
    __shared__ int s[64];
    int t = threadIdx.x, n = 0;
    s[t] = 0;
    __syncthreads();
    while (s[63 - t] < 3) {
        s[t] = ++n;
        __syncthreads();
    }
    o[t] = n;
}
"""
LOST = """\
struct Lock { int* p;
  __device__ bool take() { bool ok = atomicCAS(p, 0, 1) == 0; if (ok) __threadfence(); return ok; }
  __device__ void leave() { __threadfence(); atomicExch(p, 0); } };
__global__ void k(int* locks, int* bucket, const int* v) {
    int x = v[blockIdx.x * blockDim.x + threadIdx.x];
    Lock l{locks + (x & 7)};
    for (bool done = false; !done;) {
        if (l.take()) {
            int b = (x >> 1) & 7;
            bucket[b] = bucket[b] > x ? bucket[b] : x;
            done = true;
            l.leave();
        }
    }
}
"""
SPINNING = """\
__global__ void k(const int* in, int* out, int turns) {
    __shared__ unsigned long long bar;
    __shared__ int one[64];
    int t = threadIdx.x, sum = 0, looks = 0;
    unsigned at = __cvta_generic_to_shared(&bar);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at));
    __syncthreads();
    for (int i = 0; i < turns; ++i) {
        one[t] = in[t] + i;
        unsigned long long was;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(was) : "r"(at) : "memory");
        for (int done = 0; !done; ++looks)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.shared.b64 p, [%1], %2;"
                " selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "l"(was) : "memory");
        sum += one[63 - t];
        __syncthreads();
    }
    out[t] = looks < turns ? 0 : sum;
}
"""
WORDS = (1, 64, "i32[8]", "i32[8]", "i32[64]=arange")


@pytest.mark.slow
def test_a_loop_that_is_endless_in_another_shape_does_not_stop_the_search(tmp_path: Path) -> None:
    """With fewer threads ``s[63 - t]`` is never set, and the values of ``n`` are ever new."""
    file = tmp_path / "my.cu"
    file.write_text(ENDLESS)
    assert check(*launch(file, 1, 64, "i32[64]", "i32[64]"), "--fix").exit_code == 0
    assert "3) {\n        __syncthreads();\n        s[t] = ++n;" in file.read_text()


@pytest.mark.slow
def test_warps_that_spin_one_at_a_time_do_so_within_a_trials_steps() -> None:
    """In lockstep each looks at the mbarrier once."""
    kernel = Kernel.from_cuda(SPINNING, "k")
    args = [np.ones(64, np.int32), np.zeros(64, np.int32), 8]
    runs = [simulator.launch(kernel, 1, 64, args)]
    limit = budget.trial_steps(runs, 50_000_000)
    run = simulator.launch(kernel, 1, 64, args, schedule="warps", checks="none", step_limit=limit)
    assert runs[0].batch_steps < 100
    assert not run.hazards
    assert (args[1] == 8 + 28).all()


@pytest.mark.slow
def test_a_budget_that_is_used_up_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "my.cu"
    file.write_text(LOST)
    tries: list[budget.Budget] = []

    class Small(budget.Budget):
        def __init__(self, runs: object, seconds: object) -> None:
            super().__init__()
            self.remaining = 2000
            tries.append(self)

    without = hazards(*launch(file, *WORDS), "--no-fix-search")
    monkeypatch.setattr(search, "Budget", Small)
    result = check(*launch(file, *WORDS))
    said = " ".join(result.stdout.split())
    assert result.exit_code == 1
    assert "no fix found within the search's budget; let one atomic operation read" in said
    assert "removes this race alone" not in said
    assert tries[0].remaining > -20_000  # one launch, and no more, was beyond it
    found = hazards(*launch(file, *WORDS))
    assert [h["message"] for h in found] == [h["message"] for h in without]


def test_the_budget_is_some_work_and_some_launches_of_a_large_one(tmp_path: Path) -> None:
    file = tmp_path / "my.cu"
    file.write_text(LOST)
    kernel = Kernel.from_cuda(file, "k")
    locks = [np.zeros(8, np.int32), np.zeros(8, np.int32), np.arange(64, dtype=np.int32)]
    runs = [simulator.launch(kernel, 2, 32, copies(locks)) for _ in range(2)]
    assert runs[0].work == runs[1].work > 0
    assert runs[0].batch_steps == runs[1].batch_steps > 0
    none, small = budget.Budget(), budget.Budget(runs)
    assert none.remaining == small.remaining
    large = budget.Budget([dataclasses.replace(runs[0], work=none.remaining)])
    assert large.remaining > 4 * none.remaining
    assert budget.trial_steps(runs, 50_000_000) == max(12_192, 16 * runs[0].batch_steps)
    assert budget.trial_steps(runs, 7) == 7
    small.pay(runs[0])
    assert not small.used_up
    small.remaining = 0
    assert small.used_up == "budget"
    assert not none.used_up
    assert budget.Budget(seconds=0).used_up == "time"
    assert not budget.Budget(seconds=1000).used_up


@pytest.mark.parametrize("block", [64, 100])
def test_the_work_of_a_launch_is_that_of_its_whole_batches(block: int) -> None:
    """As many steps, whatever the grid; of two batches twice as many; however many share them."""
    text = "__global__ void k(int* a) { int i = blockIdx.x * blockDim.x + threadIdx.x; a[i] += i; }"
    kernel = Kernel.from_cuda(text, "k")
    whole = (1 << 16) // block
    steps = []
    for grid, workers in ((1, 1), (3, 1), (whole, 1), (2 * whole, 1), (2 * whole, 2)):
        array = np.zeros(grid * block, np.int32)
        steps.append(simulator.launch(kernel, grid, block, [array], workers=workers).work)
    assert steps[0] == steps[1] == steps[2] > 0
    assert steps[3] == steps[4] == 2 * steps[0]


@pytest.mark.slow
def test_what_is_compiled_is_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the length of the kernel's PTX, which headers put much into; if it is refused, too."""
    file = tmp_path / "my.cu"
    file.write_text("".join(f"__device__ int unused{i} = {i};\n" for i in range(100)) + LOST)
    text = len(Kernel.from_cuda(file, "k").ptx)
    made: list[object] = []

    def refused(kernel: Kernel, files: object, build: str) -> Kernel:
        made.append(files)
        raise KernelError("refused")

    class Small(budget.Budget):
        def __init__(self, runs: object, seconds: object) -> None:
            super().__init__()
            self.remaining = 8 * (150 + text // 20)

    monkeypatch.setattr(search, "Budget", Small)
    monkeypatch.setattr(verification, "recompiled", refused)
    said = " ".join(check(*launch(file, *WORDS)).stdout.split())
    assert "no fix found within the search's budget" in said
    assert 3 <= len(made) <= 9
