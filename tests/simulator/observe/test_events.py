"""The observer protocol: who is told of what, and that nobody is told what it does not ask for."""

from typing import Any

import numpy as np

from kernels import Kernel
from simulator.events import Dispatcher, Observer, all_of
from simulator.execute.batches import batches, run_batches
from simulator.execute.prepare import prepare

SOURCE = """
__device__ __noinline__ float local(int i) { float a[4]; a[i & 3] = i; return a[0]; }
extern "C" __global__ void k(float* out, const float* in, int n)
{
    __shared__ float s[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x] = in[i];
    __syncthreads();
    float f = in[i];
    asm("{.reg .pred p; setp.gt.f32 p, %0, 0f00000000; @p add.f32 %0, %0, %0;}" : "+f"(f));
    if (threadIdx.x % 2) out[i] = s[63 - threadIdx.x] * 3.0f + f;
    __threadfence();
    __syncwarp();
    if (i == n) out[64 * gridDim.x] = 0;
    if (i == 7) out[i] = __shfl_sync(1 << 7, f, 8);
    if (i == 5) asm volatile("bar.arrive 1, 64;");
    asm volatile("cp.async.commit_group; fence.proxy.async; wgmma.fence.sync.aligned;");
    __shared__ long long b;
    unsigned at = __cvta_generic_to_shared(&b);
    asm volatile("{ .reg .pred p; cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"
                 " mbarrier.test_wait.parity.shared.b64 p, [%0], 1; }" :: "r"(at));
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;");
    if (i == 98) out[i] = local(i);
    if (i == 99) printf("");
    if (i == 100) __trap();
}
"""
EVENTS = [name for name in vars(Observer) if not name.startswith("_") and name != "merge"]
NOT_HERE = {
    "barrier_divergence", "scheduled_out_of_order", "stuck", "string_read", "freed", "reallocated",
    "compact_access", "bulk_copied", "grouped_loads",
}  # fmt: skip
"""Those that the kernel does not lead to."""


class Everything(Observer):
    """Notes down the names of the events."""

    def __init__(self) -> None:
        self.seen: list[str] = []


def _note(name: str) -> Any:
    return lambda self, *event: self.seen.append(name)


for _name in EVENTS:
    setattr(Everything, _name, _note(_name))


class Accesses(Observer):
    """Wants accesses alone."""

    def __init__(self) -> None:
        self.count = 0

    def access(self, event: Any) -> None:
        """See ``Observer``."""
        self.count += 1


def watched(*observers: Observer, traced: bool = False) -> Dispatcher:
    kernel = Kernel.from_cuda(SOURCE, "k", "compute_90a")
    args = [np.zeros(128, np.float32), np.ones(128, np.float32), 3]
    launch = prepare(kernel, 2, 64, args, 0, "lockstep", 10_000, traced)
    told = Dispatcher(observers)
    run_batches(launch, launch.allocations(), told, batches(launch))
    for tell in told.end:
        tell()
    return told


def test_every_event_is_told() -> None:
    all_events = Everything()
    watched(all_events, traced=True)
    seen = all_events.seen
    assert set(EVENTS) - set(seen) == NOT_HERE
    assert (seen[0], *seen[-2:]) == ("start", "finish", "end")
    assert seen.count("start") == seen.count("finish") == seen.count("end") == 1


def test_only_what_is_overridden_is_told() -> None:
    accesses = Accesses()
    told = watched(accesses)
    assert accesses.count > 0
    assert {name for name in EVENTS if getattr(told, name)} == {
        "access",
        "compact_access",
        "grouped_loads",
    }
    assert told.access == (accesses.access,)


def test_several_are_told_in_their_order() -> None:
    said: list[int] = []
    calls = tuple((lambda event, n=n: said.append(n + event)) for n in (1, 2, 3))
    all_of(calls)(10)
    all_of(calls[:1])(20)
    all_of(())(30)
    assert said == [11, 12, 13, 21]
