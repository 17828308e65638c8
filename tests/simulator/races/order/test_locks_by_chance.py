"""Who reads behind a lock, having let it go, comes after others by chance alone.

Unless what it has read under the lock decides on that, or on their writes.
"""

import numpy as np
import pytest

import simulator
from kernels import Kernel

SOURCE = """
#define K(name) extern "C" __global__ void name(int* lock, int* c, int* out)
#define LOCK while (atomicCAS(lock, 0, 1) != 0); __threadfence()
#define UNLOCK __threadfence(); atomicExch(lock, 0)
#define ONE threadIdx.x == 0
#define B blockIdx.x
K(all_read) {
    if (ONE) { LOCK; *c += 1; UNLOCK; }
    __syncthreads();
    if (threadIdx.x == 40) out[B] = *c;
}
K(one_reads) {
    if (ONE) { LOCK; *c += 1; UNLOCK; if (B == 3) out[B] = *c; }
}
K(exchanged) {
    if (ONE) {
        while (atomicExch(lock, 1) != 0);
        __threadfence(); *c += 1; UNLOCK;
        if (B == 3) out[B] = *c;
    }
}
K(for_the_block) {
    if (ONE) { LOCK; }
    __syncthreads();
    if (threadIdx.x < 4) c[threadIdx.x] += 1;
    __syncthreads();
    if (ONE) { UNLOCK; if (B == 3) out[B] = c[2]; }
}
K(writes_behind) {
    if (ONE) { LOCK; *c += 1; UNLOCK; if (B == 3) *c = 7; }
}
K(within) {
    if (ONE) { LOCK; *c += 1; out[B] = *c; UNLOCK; }
}
K(again) {
    if (ONE) { LOCK; *c += 1; UNLOCK; LOCK; out[B] = *c; UNLOCK; }
}
K(the_last) {
    if (ONE) {
        LOCK; c[0] += B; c[1] += 1; bool last = c[1] == 4; UNLOCK;
        if (last) out[B] = c[0];
    }
}
K(the_last_of_the_block) {
    __shared__ bool last;
    if (ONE) { LOCK; c[0] += B; c[1] += 1; last = c[1] == 4; UNLOCK; }
    __syncthreads();
    if (last && threadIdx.x == 40) out[B] = c[0];
}
K(made_once) {
    if (ONE) {
        LOCK; if (c[1] == 0) { c[0] = 42; c[1] = 1; } UNLOCK;
        out[B] = c[0];
    }
}
K(of_a_queue) {  // an item is taken under the lock, and used behind it
    if (ONE && B < 2) {
        c[4 + B] = 10 + B;
        LOCK; int n = c[0]; c[1 + n] = 4 + B; c[0] = n + 1; UNLOCK;
    } else if (ONE) {
        for (int item = 0; !item;) {
            LOCK; int n = c[0]; if (n) { item = c[n]; c[0] = n - 1; } UNLOCK;
            if (item) out[B] = c[item];
        }
    }
}
K(one_in_another) {
    if (ONE) {
        LOCK;
        while (atomicCAS(lock + 1, 0, 1) != 0);
        __threadfence();
        *c += 1;
        __threadfence();
        atomicExch(lock + 1, 0);
        out[B] = *c;
        UNLOCK;
    }
}
K(then_all_meet) {
    if (ONE) { LOCK; }
    __syncthreads();
    if (threadIdx.x < 4) c[threadIdx.x] += 1;
    __syncthreads();
    if (ONE) {
        UNLOCK;
        __threadfence();
        if (atomicAdd(lock + 1, 1) == 3) atomicExch(c + 7, 1);
        while (((volatile int*)c)[7] == 0);
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x == 2) out[B] = c[2];
}
K(the_last_to_come) {
    __shared__ bool last;
    if (ONE) { LOCK; c[0] += 1; }
    __syncthreads();
    if (threadIdx.x < 4) c[threadIdx.x + 1] += 1;
    __syncthreads();
    if (ONE) { UNLOCK; __threadfence(); last = atomicAdd(lock + 1, 1) == 3; __threadfence(); }
    __syncthreads();
    if (last && threadIdx.x == 2) out[B] = c[0] + c[3];
}
K(a_mailbox) {  // what is taken there was put there by another one: it is no lock
    if (ONE && B == 0) { c[1] = 5; __threadfence(); atomicExch(lock, 1); }
    else if (ONE && B == 1) {
        while (atomicExch(lock, 0) == 0);
        __threadfence();
        atomicExch(lock + 1, 1);
        out[B] = c[1];
    }
}
"""


@pytest.mark.parametrize("build", ["device", "source"])
@pytest.mark.parametrize(
    ("entry", "kind", "pairs"),
    [
        ("all_read", "raw-race", 12), ("one_reads", "raw-race", 3), ("exchanged", "raw-race", 3),
        ("for_the_block", "raw-race", 3), ("writes_behind", "waw-race", 3),
        *((name, "", 0) for name in ("within", "again", "one_in_another", "the_last",
          "the_last_of_the_block", "made_once", "of_a_queue", "then_all_meet", "the_last_to_come",
          "a_mailbox")),
    ],
)  # fmt: skip
def test_behind_a_lock(entry: str, kind: str, pairs: int, build: str) -> None:
    kernel = Kernel.from_cuda(SOURCE, entry, build=build)
    for schedule in ("lockstep", "warps", "reverse", 1):
        args = [np.zeros(2, np.int32), np.zeros(8, np.int32), np.zeros(4, np.int32)]
        run = simulator.launch(kernel, 4, 64, args, schedule=schedule)
        found = [(h.kind, h.severity, h.count) for h in run.hazards if h.kind == kind or not kind]
        assert found == ([(kind, "error", pairs)] if pairs else []), schedule
