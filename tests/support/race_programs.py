"""CUDA C++ programs that race, or do not: names say which, and why."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.launches import ints

E = 'extern "C" __global__ void k'
FLAG = E + (
    "(volatile int* f, int* d, int* o) {{ if (blockIdx.x == 0) {{ if (threadIdx.x == 0)"
    " {{ d[0] = 1; {0} f[0] = 1; }} }} else if (threadIdx.x == 0)"
    " {{ while (f[0] == 0); {1} o[0] = d[0]; }} }}"
)
REF = (
    "#include <cuda/atomic>\n"
    + E
    + (
        "(int* f, int* d, int* o) {{ cuda::atomic_ref<int, cuda::thread_scope_{0}> r(*f);"
        " if (blockIdx.x == 0) {{ if (threadIdx.x == 0) {{ d[0] = 1;"
        " r.store(1, cuda::memory_order_{1}); }} }} else if (threadIdx.x == 0)"
        " {{ while (r.load(cuda::memory_order_{2}) == 0); o[0] = d[0]; }} }}"
    )
)
LAST = (
    "__device__ unsigned done; "
    + E
    + (
        "(const int* a, int* p, int* o) {{ __shared__ bool last; __shared__ int s[32];"
        " s[threadIdx.x] = a[blockIdx.x * 32 + threadIdx.x]; __syncthreads();"
        " if (threadIdx.x == 0) {{ int t = 0; for (int i = 0; i < 32; i++) t += s[i];"
        " p[blockIdx.x] = t; {0} last = atomicInc(&done, gridDim.x) == gridDim.x - 1; }}"
        " __syncthreads(); if (last && threadIdx.x == 0) {{ int t = 0;"
        " for (int i = 0; i < gridDim.x; i++) t += {1}[i]; o[0] = t; }} }}"
    )
)
LOCK = (
    "__device__ int lock; "
    + E
    + (
        "(int* c) {{ if (threadIdx.x == 0) {{ while (atomicCAS(&lock, 0, 1) != 0); {0}"
        " c[0] = c[0] + 1; {1} atomicExch(&lock, 0); }} }}"
    )
)
TWO_LOCKS = (
    "__device__ int lock; "
    + E
    + (
        "(int* d) {{ if (blockIdx.x == {0}) {{ while (atomicCAS(&lock, 0, 1) != 0); {1} d[0] = 1;"
        " {2} atomicExch(&lock, 0); }} else {{ while (atomicCAS(&lock, 0, 1) != 0);"
        " __threadfence(); d[0] = 2; __threadfence(); atomicExch(&lock, 0); }} }}"
    )
)
CHAIN = E + (
    "(volatile int* f, volatile int* g, int* d, int* o) {{ if (threadIdx.x) return;"
    " if (blockIdx.x == 0) {{ d[0] = 1; __threadfence(); f[0] = 1; }}"
    " if (blockIdx.x == 1) {{ {0} {1} g[0] = 1; }}"
    " if (blockIdx.x == 2) {{ while (g[0] == 0); __threadfence(); o[0] = d[0]; }} }}"
)
GRID = (
    "__device__ unsigned count, sense; __device__ void all(unsigned n) {{ __syncthreads();"
    " if (threadIdx.x == 0) {{ unsigned s = {2}; {0} if (atomicAdd(&count, 1) == n - 1) {{ {1}"
    " atomicExch(&count, 0); {1} {3}; }} else {{ while ({2} == s); }} __threadfence(); }}"
    " __syncthreads(); }} "
    + E
    + (
        "(int* a, int* b) {{ int i = blockIdx.x * 32 + threadIdx.x, n = gridDim.x * 32;"
        " for (int r = 0; r < 2; r++) {{ b[i] = a[(i + 1) % n]; all(gridDim.x);"
        " a[i] = b[(i + 32) % n]; all(gridDim.x); }} }}"
    )
)
TURNS = (
    '__device__ void wait(int b) {{ asm volatile("bar.sync %0, 128;" :: "r"(b) : "memory"); }}'
    ' __device__ void come(int b) {{ asm volatile("bar.arrive %0, 128;" :: "r"(b) : "memory"); }} '
    + E
    + (
        "(int* o, const int* a) {{ __shared__ int s[2][64]; int t = threadIdx.x % 64;"
        " if (threadIdx.x < 64) for (int i = 0; i < 6; i++) {{ if (i > 1) wait(3 + i % 2);"
        " s[i % 2][t] = a[i * 64 + t]; come(1 + i % 2); }} else for (int i = 0; i < 6; i++) {{"
        " wait(1 + i % 2); {0} o[t] += s[i % 2][63 - t]; {1} }} }}"
    )
)
FREE = "if (i < 4) come(3 + i % 2);"
WARP_FLAG = E + (
    "(volatile int* f, int* d, int* o) {{ int t = threadIdx.x; if (blockIdx.x == 0) {{ d[t] = t;"
    " {0} {1} if (t == 0) f[0] = 1; }} else {{ while (f[0] == 0); __threadfence();"
    " o[t] = d[31 - t]; }} }}"
)
SENSE = "*(volatile unsigned*)&sense"
COUNTED = (
    "__device__ unsigned count; "
    + E
    + (
        "(int* a, int* b) {{ b[blockIdx.x] = 1; {0} if (atomicAdd(&count, 1) != gridDim.x - 1)"
        " while ({1} < gridDim.x); __threadfence();"
        " a[blockIdx.x] = b[(blockIdx.x + 1) % gridDim.x]; }}"
    )
)
WAIT = "while (f[0] == 0);"
FENCE = "__threadfence();"


def three() -> list[Any]:
    return ints(1, 1, 1)


def summed() -> list[Any]:
    return [np.arange(128, dtype=np.int32), *ints(4, 1)]


LOCKS: dict[str, tuple[str, int, int, Callable[[], list[Any]], bool]] = {
    f"a lock; block {block} {what}": (
        TWO_LOCKS.format(block, *fences),
        2,
        1,
        lambda: ints(1),
        not all(fences),
    )
    for block in (0, 1)
    for what, fences in {
        "does not fence when it takes it": ("", FENCE),
        "does not fence when it lets go": (FENCE, ""),
        "fences as the other does": (FENCE, FENCE),
    }.items()
}
NAMED = E + (
    "(volatile int* f, int* d, int* o) {{ int t = threadIdx.x; if (blockIdx.x == 0) {{"
    " if (t == 3) d[0] = 1; if (t < 64) {{ {0} }} if (t == 40) {{ __threadfence(); f[0] = 1; }} }}"
    " else if (t == 0) {{ while (f[0] == 0); __threadfence(); o[0] = d[0]; }} }}"
)
WARP_CHAIN = E + (
    "(int* o) {{ __shared__ volatile int s[1]; int t = threadIdx.x; if (t == 25) s[0] = 7;"
    " if (t >= 16) __syncwarp(0xffff0000u);"
    " if (t % 2 == {0}) {{ __syncwarp({1}); if (t == {2}) o[0] = s[0]; }} }}"
)
CASES: dict[str, tuple[str, int, int, Callable[[], list[Any]], bool]] = {
    **LOCKS,
    "what a named barrier brought, a fence after it hands on": (
        NAMED.format('asm volatile("bar.sync 1, 64;" ::: "memory");'),
        2, 96, lambda: ints(1, 1, 1), False,
    ),
    "a fence hands on nothing of a warp that it has not met": (
        NAMED.format(""), 2, 96, lambda: ints(1, 1, 1), True,
    ),
    "what a lane has seen at one warp barrier it hands on at the next": (
        WARP_CHAIN.format(0, "0x55555555u", 8), 1, 32, lambda: ints(1), False,
    ),
    "lanes that a chain of warp barriers leaves out": (
        WARP_CHAIN.format(1, "0x0000aaaau", 9) .replace("% 2 == 1", "% 2 == 1 && t < 16"),
        1, 32, lambda: ints(1), True,
    ),
    "a comparison that fails writes nothing, and so releases nothing": (
        E + "(int* lock, int* x, int* o) { if (threadIdx.x) return;"
        " if (blockIdx.x == 0) { x[0] = 1; __threadfence(); atomicCAS(lock, 7, 9); }"
        " else { while (atomicCAS(lock, 0, 1) != 0); __threadfence(); o[0] = x[0]; } }",
        2, 32, lambda: ints(1, 1, 1), True,
    ),
    "volatile shared memory, no barrier": (
        E + "(int* o) { __shared__ volatile int s[64]; s[threadIdx.x] = threadIdx.x;"
        " o[threadIdx.x] = s[63 - threadIdx.x]; }", 1, 64, lambda: ints(64), True),
    "a flag, no fence": (FLAG.format("", ""), 2, 32, three, True),
    "a flag, fences on both sides": (FLAG.format(FENCE, FENCE), 2, 32, three, False),
    "a flag, a fence on the writer's side": (FLAG.format(FENCE, ""), 2, 32, three, True),
    "a flag, a fence on the reader's side": (FLAG.format("", FENCE), 2, 32, three, True),
    "a flag, fences of block scope": (
        FLAG.format("__threadfence_block();", "__threadfence_block();"), 2, 32, three, True),
    "a flag, one fence of block scope": (
        FLAG.format(FENCE, "__threadfence_block();"), 2, 32, three, True),
    "a flag read once, its value ignored": (
        E + "(int* f, int* d, int* o) { if (blockIdx.x == 0) { if (threadIdx.x == 0) { d[0] = 1;"
        " __threadfence(); atomicExch(f, 1); } } else if (threadIdx.x == 0) { atomicAdd(f, 0);"
        " __threadfence(); o[0] = d[0]; } }", 2, 32, three, True),
    "a flag read once, its value only kept": (
        E + "(int* f, int* d, int* o) { if (blockIdx.x == 0) { if (threadIdx.x == 0) { d[0] = 1;"
        " __threadfence(); atomicExch(f, 1); } } else if (threadIdx.x == 0) {"
        " int v = atomicAdd(f, 0); __threadfence(); o[0] = d[0] + v; } }", 2, 32, three, True),
    "a flag read once, which decides on something else": (
        E + "(int* f, int* d, int* o) { if (blockIdx.x == 0) { if (threadIdx.x == 0) { d[0] = 1;"
        " __threadfence(); atomicExch(f, 1); } } else if (threadIdx.x == 0) {"
        " if (atomicAdd(f, 0) > 5) o[1] = 7; __threadfence(); o[0] = d[0]; } }",
        2, 32, lambda: ints(1, 1, 2), True),
    "a flag read once, and looked at": (
        E + "(int* f, int* d, int* o) { if (blockIdx.x == 0) { if (threadIdx.x == 0) { d[0] = 1;"
        " __threadfence(); atomicExch(f, 1); } } else if (threadIdx.x == 0) {"
        " if (atomicAdd(f, 0)) { __threadfence(); o[0] = d[0]; } } }", 2, 32, three, False),
    "a flag read once within a block, its value ignored": (
        E + "(int* f, int* d, int* o) { if (threadIdx.x == 0) { d[0] = 1; __threadfence();"
        " atomicExch(f, 1); } if (threadIdx.x == 32) { atomicAdd(f, 0); __threadfence();"
        " o[0] = d[0]; } }", 1, 64, three, True),
    "atomics of block scope by two blocks": (
        E + "(int* c) { atomicAdd_block(c, 1); }", 2, 32, lambda: ints(1), True),
    "atomics of block scope by one block": (
        E + "(int* c) { atomicAdd_block(c, 1); }", 1, 64, lambda: ints(1), False),
    "one side of block scope": (
        E + "(int* c) { if (blockIdx.x) atomicAdd_block(c, 1); else atomicAdd(c, 1); }",
        2, 32, lambda: ints(1), True),
    "atomics of system and device scope": (
        E + "(int* c) { if (blockIdx.x) atomicAdd_system(c, 1); else atomicAdd(c, 1); }",
        2, 32, lambda: ints(1), False),
    "an atomic of 32 bits over one of 64": (
        E + "(unsigned long long* c) { if (threadIdx.x == 0) atomicAdd(c, 1ull);"
        " if (threadIdx.x == 32) atomicAdd((unsigned*)c + 1, 1u); }",
        1, 64, lambda: [np.zeros(1, np.uint64)], True),
    "atomics of 32 and 64 bits side by side": (
        E + "(unsigned long long* c) { if (threadIdx.x == 0) atomicAdd(c, 1ull);"
        " if (threadIdx.x == 32) atomicAdd((unsigned*)c + 2, 1u); }",
        1, 64, lambda: [np.zeros(2, np.uint64)], False),
    "an atomic and a plain read": (
        E + "(int* c, int* o) { if (blockIdx.x == 0) atomicAdd(c, 1); else o[threadIdx.x] = *c; }",
        2, 32, lambda: ints(1, 32), True),
    "one block reads what another wrote": (
        E + "(int* c, int* o) { if (blockIdx.x == 0) c[threadIdx.x] = 1;"
        " else o[threadIdx.x] = c[threadIdx.x]; }", 2, 32, lambda: ints(32, 32), True),
    "the last block, as NVIDIA's sample has it": (
        LAST.format(FENCE, "((volatile int*)p)"), 4, 32, summed, False),
    "the last block, no fence": (LAST.format("", "p"), 4, 32, summed, True),
    **{
        f"a barrier of the grid with a flag that is {what}, {faulty}": (
            GRID.format(before, last, read, write), 3, 32, lambda: ints(96, 96), bool(faulty),
        )
        for what, read, write in (
            ("volatile", SENSE, f"{SENSE} = s + 1"),
            ("read by adding zero", "atomicAdd(&sense, 0)", "atomicExch(&sense, s + 1)"),
            ("compared with itself", "atomicCAS(&sense, 0, 0)", "atomicAdd(&sense, 1)"),
        )
        for faulty, before, last in (
            ("", FENCE, FENCE),
            ("no fence before the arrival", "", FENCE),
            ("no fence of who comes last", FENCE, ""),
        )
    },
    **{
        f"lanes that fence, {what}, and one of them sets the flag": (
            WARP_FLAG.format(before, meet), 2, 32, lambda: ints(1, 32, 32), racy,
        )
        for what, before, meet, racy in (
            ("meet", FENCE, "__syncwarp();", False),
            ("do not meet", FENCE, "", True),
            ("meet in halves", FENCE, "__syncwarp(t < 16 ? 0xffffu : 0xffff0000u);", True),
            ("meet, with a fence of block scope", "__threadfence_block();", "__syncwarp();", True),
        )
    },
    "lanes that meet before they fence, and one of them sets the flag": (
        WARP_FLAG.format("__syncwarp();", FENCE), 2, 32, lambda: ints(1, 32, 32), False,
    ),
    "named barriers by turns, each slot freed once it is read": (
        TURNS.format("", FREE), 1, 128, lambda: ints(64, 512), False),
    "named barriers by turns, each slot freed too early": (
        TURNS.format(FREE, ""), 1, 128, lambda: ints(64, 512), True),
    "a barrier of the grid that looks at the count": (
        COUNTED.format(FENCE, "*(volatile unsigned*)&count"), 3, 1, lambda: ints(3, 3), False,
    ),
    "a barrier of the grid that looks at the count, no fence": (
        COUNTED.format("", "*(volatile unsigned*)&count"), 3, 1, lambda: ints(3, 3), True,
    ),
    "a lock with fences": (LOCK.format(FENCE, FENCE), 8, 32, lambda: ints(1), False),
    "a lock without fences": (LOCK.format("", ""), 8, 32, lambda: ints(1), True),
    "a lock, a fence where it is taken": (LOCK.format(FENCE, ""), 8, 32, lambda: ints(1), True),
    "a lock, a fence where it is let go": (LOCK.format("", FENCE), 8, 32, lambda: ints(1), True),
    "handed on by way of a third block": (
        CHAIN.format(WAIT, FENCE), 3, 32, lambda: [*three(), *ints(1)], False),
    "a third block that does not wait": (
        CHAIN.format("", FENCE), 3, 32, lambda: [*three(), *ints(1)], True),
    "a third block without a fence": (
        CHAIN.format(WAIT, ""), 3, 32, lambda: [*three(), *ints(1)], True),
    "release and acquire": (REF.format("device", "release", "acquire"), 2, 32, three, False),
    "relaxed on both sides": (REF.format("device", "relaxed", "relaxed"), 2, 32, three, True),
    "release, no acquire": (REF.format("device", "release", "relaxed"), 2, 32, three, True),
    "acquire, no release": (REF.format("device", "relaxed", "acquire"), 2, 32, three, True),
    "release and acquire of block scope": (
        REF.format("block", "release", "acquire"), 2, 32, three, True),
    "a shuffle orders nothing": (
        E + "(int* o) { __shared__ int s[32]; s[threadIdx.x] = 1; __shfl_sync(~0u, 1, 0);"
        " o[threadIdx.x] = s[31 - threadIdx.x]; }", 1, 32, lambda: ints(32), True),
    "a named barrier, one side arrives": (
        E + '(int* o) { __shared__ int s[32]; if (threadIdx.x < 32) { s[threadIdx.x] = threadIdx.x;'
        ' asm volatile("bar.arrive 1, 64;" ::: "memory"); } else {'
        ' asm volatile("bar.sync 1, 64;" ::: "memory"); o[threadIdx.x] = s[63 - threadIdx.x]; } }',
        1, 64, lambda: ints(64), False),
    "a named barrier in two places": (
        E + '(int* o) { __shared__ int s[32]; if (threadIdx.x < 32) { s[threadIdx.x] = threadIdx.x;'
        ' asm volatile("bar.sync 1, 64;" ::: "memory"); } else {'
        ' asm volatile("bar.sync 1, 64;" ::: "memory"); o[threadIdx.x] = s[63 - threadIdx.x]; } }',
        1, 64, lambda: ints(64), False),
    "blocks at different barriers": (
        E + "(int* o) { __shared__ int s[64]; s[threadIdx.x] = threadIdx.x; if (blockIdx.x & 1) {"
        " __syncthreads(); o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x]; } else {"
        " __syncthreads(); o[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x ^ 1]; } }",
        2, 64, lambda: ints(128), False),
    "a block that returns early": (
        E + "(int* o) { __shared__ int s[64]; if (blockIdx.x == 1) return;"
        " s[threadIdx.x] = threadIdx.x; __syncthreads();"
        " o[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x]; }",
        3, 64, lambda: ints(192), False),
    "blocks of different trip counts": (
        E + "(int* o) { __shared__ int s[64]; for (int i = 0; i <= blockIdx.x; i++) {"
        " s[threadIdx.x] = i; __syncthreads(); o[blockIdx.x * 64 + threadIdx.x] ="
        " s[63 - threadIdx.x]; __syncthreads(); } }", 3, 64, lambda: ints(192), False),
}  # fmt: skip
