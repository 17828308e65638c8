"""The net of claims: what is said of every content of the arrays is so of others.

Random kernels of CUDA C++ in which data move by every way there is, and sometimes steer; some
are faulty. Where the simulator says that its verdict holds for every content, launches with
other contents have to have the same counters and the same hazards.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from tests.fuzz import compare
from tests.fuzz.report import Report, seeds
from tests.fuzz.tree import Statement, render
from tests.support.hazard_texts import without_values

BUILDS = ("device", "source")
SIZE = 64
"""Elements of each array, a power of two; of those in shared memory, too."""
THREADS = (32, 40, 64, 64)
HEAD = """\
#include <cuda_pipeline.h>
struct Row { int v[5]; };
struct Pair { short low; unsigned char byte; int index; };
static __device__ __noinline__ Row made(int a, int b) {
  Row row;
  for (int i = 0; i < 5; i++) row.v[i] = i % 2 ? a : b;
  return row;
}
static __device__ __noinline__ int taken(Row row, int i) { return row.v[i % 5]; }
static __device__ __noinline__ void fill(int* to, const int* from, int i) { to[i] = from[i]; }
static __device__ __noinline__ void swap(int* a, int* b) { int c = *a; *a = *b; *b = c; }
static __device__ __noinline__ int first(int a, int b) { return a; }
extern "C" __global__ void k(const int* in, int* out, int* scratch, int n) {
  __shared__ __align__(16) int s[64];
  __shared__ int w[64];
  __shared__ Pair pairs[64];
  __shared__ long long wide[32];
  __shared__ int sums[4];
  int* everyone = out;
  out += blockIdx.x * 160;
  scratch += blockIdx.x * 64;
  int t = threadIdx.x, c0 = t, c1 = n, c2 = 3, c3 = 0;
  int v[8], u[8];
  Row row = {};
  if (t < 4) sums[t] = 0;
  for (int i = 0; i < 8; i++) { v[i] = i; u[i] = i; }
  START
  int d0 = in[t], d1 = in[t ^ 1], d2 = n, d3 = in[0];
  BODY
  out[t] = d0 ^ d1;
  out[64 + t] = d2 + d3 + c3;
}
"""
START = """\
for (int i = t; i < 64; i += blockDim.x) {
    s[i] = in[i]; w[i] = i; pairs[i].low = i; pairs[i].index = 63 - i; pairs[i].byte = in[i];
    scratch[i] = in[i];
    if (i < 32) wide[i] = i;
  }
  __syncthreads();"""
MOVES = (
    "D = in[I];", "D = s[I];", "s[t] = D;", "s[63 - t] = D;", "out[t] = D;", "scratch[t] = D;",
    "D = scratch[t];", "D = D + D;", "D = D * 3 ^ C;", "D = D & D;", "D = D >> (C & 7);",
    "D = C < D ? D : D;", "D = min(D, D);", "D = C;", "D = (unsigned char)D;",
    "D = __shfl_xor_sync(__activemask(), D, 1);", "D = __shfl_down_sync(~0u, D, 2);",
    "D = __ballot_sync(~0u, D > 3);", "D = __any_sync(~0u, D == 5);", "D = __popc(D);",
    "atomicAdd(&sums[C & 3], D);", "D = atomicMax(&sums[C & 3], D);", "atomicExch(&s[t], D);",
    "D = sums[C & 3];", "atomicAdd(&scratch[I], D);", "D = __syncthreads_count(D > 3);",
    "v[C & 7] = D;", "D = v[C & 7];", "v[3] = D;", "row = made(D, D);", "D = taken(row, C & 7);",
    "row.v[2] = D;", "D = row.v[2];", "fill(v, s, C & 7);", "swap(&D, &D);", "swap(v + 1, &D);",
    "D = first(D, D);", "pairs[t].low = D;", "D = pairs[I].low;", "pairs[t].byte = D;",
    "D = pairs[I].byte;", "if (t < 32) wide[t] = (long long)D << 32 | (C & 63);",
    "D = (int)(wide[I & 31] >> 32);", "D = ((int*)wide)[I];",
    "if (t < 32) *(int2*)&s[2 * t] = make_int2(D, D);",
    "int4 q = *(int4*)&s[I & 60]; D = q.x + q.w;", "D = s[t] == D;",
    "__pipeline_memcpy_async(&s[t], &in[I], 4);",
    "__pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); D = s[I];",
    "if (t == 3) D = s[I];", "D += t > 9 ? s[I] : 0;",
)  # fmt: skip
"""``C``: a value that should not be of data; ``D``: one that may be; ``I``: a place."""
KNOWN = (
    "C = C + 1;", "C = C ^ C;", "C = C * 5 & 63;", "C = w[I];", "w[t] = C;", "w[63 - t] = C;",
    "C = pairs[I].index;", "pairs[t].index = C;", "C = (int)wide[I & 31] & 63;", "C = u[C & 7];",
    "u[C & 7] = C;", "u[2] = C;", "C = first(C, D);", "swap(&C, &C);", "fill(u, w, C & 7);",
    "C = __shfl_xor_sync(__activemask(), C, 1);", "C = n > t ? C : C;",
    "C = taken(made(C, C), C & 7);",
)  # fmt: skip
STEERS = (
    "C = D & 63;", "w[t] = D;", "u[1] = D;", "if (D > 7) out[t] = 1;", "swap(&C, &D);",
    "pairs[t].index = D;", "C = taken(row, 2);", "C = first(D, C);", "out[D & 63] = t;",
    "((short*)&pairs[t].low)[0] = D;", "D = __shfl_sync(~0u, D, D & 31);", "u[C & 7] = v[C & 7];",
    "fill(u, s, C & 7);", "D = __shfl_sync(D | 1, D, 0);", "C = D > 3 ? C : t;",
    "for (int i = 0; i < (D & 3); i++) D ^= i;", "C = __reduce_add_sync(__activemask(), D) & 63;",
)  # fmt: skip
BLOCKS = (
    "if (C & 1) {\n{0}\n}",
    "if (t < 17) {\n{0}\n}",
    "for (int j = 0; j < (C & 3); j++) {\n{0}\n}",
    "for (int j = 0; j < 3; j++) {\n{0}\n}",
    "if (C > 4) {\n{0}\n} else {\n{1}\n}",
)
PLACES = ("t", "t", "(t ^ 1)", "(t + 1 & 63)", "(C & 63)", "(63 - t)", "5")
MEETING = ("syncthreads", "~0u")
"""What all threads have to execute."""
FAULTS = (
    "out[300 + t] = 1;", "D = in[t + 40];", "s[5] = D;", "scratch[0] = D;", "D = s[t + 8];",
    "everyone[7] = D;", "everyone[t] = C;",
)  # fmt: skip


@dataclass
class Program:
    """A kernel, its grid and block, and contents that its arrays may have."""

    seed: int
    body: list[Statement]
    start: str
    grid: tuple[int, ...]
    block: tuple[int, ...]

    def trees(self) -> list[list[Statement]]:
        """What may be made smaller."""
        return [self.body]

    def source(self) -> str:
        """The kernel's CUDA C++."""
        return HEAD.replace("START", self.start).replace("BODY", render(self.body))

    def contents(self) -> list[list[np.ndarray]]:
        """Arrays: of small numbers, of any bits, of zeros, and of ones."""
        rng = np.random.default_rng(self.seed)
        sizes = SIZE, 320, 2 * SIZE
        fills: Sequence[Callable[[int], Any]] = (
            lambda n: rng.integers(0, 9, n), lambda n: rng.integers(-(2**31), 2**31, n),
            np.zeros, lambda n: np.full(n, -1),
        )  # fmt: skip
        return [[fill(n).astype(np.int32) for n in sizes] for fill in fills]


def draw(seed: int) -> Program:
    """A program of a seed."""
    rng = random.Random(seed)
    steers = rng.choice([0, 0, 0.03, 0.1])
    faults = rng.choice([0, 0, 0, 0.05])
    lost = rng.choice([0, 0, 0.5])
    body = _statements(rng, rng.randrange(4, 16), (steers, faults, lost), together=True)
    start = START if rng.random() < 0.8 else START.replace("s[i] = in[i]; ", "")
    return Program(seed, body, start, (rng.choice([1, 1, 1, 2]),), (rng.choice(THREADS),))


def _statements(
    rng: random.Random, count: int, shares: tuple[float, float, float], together: bool
) -> list[Statement]:
    steers, faults, lost = shares
    found: list[Statement] = []
    while len(found) < count:
        kind = rng.random()
        if kind < 0.1 and count > 2:
            text = rng.choice(BLOCKS)
            parts = [
                _statements(rng, rng.randrange(1, 3), shares, together=False)
                for _ in range(text.count("\n{"))
            ]
            found.append(Statement(_filled(rng, text), parts))
            continue
        of = STEERS if rng.random() < steers else FAULTS if rng.random() < faults else MOVES
        text = rng.choice(KNOWN if of is MOVES and rng.random() < 0.3 else of)
        if not together and any(word in text for word in MEETING):
            continue
        shared = any(name in text for name in ("s[", "w[", "pairs", "wide", "sums", "async"))
        text = "{ " + _filled(rng, text) + " }"
        if shared and together and rng.random() >= lost:
            text += " __syncthreads();"
        found.append(Statement(text))
    return found


def _filled(rng: random.Random, text: str) -> str:
    """With places and variables for the letters that stand for them."""
    words: list[str] = []
    for word in _parts(text):
        place = rng.choice(PLACES) if word == "I" else word
        words += [f"{p.lower()}{rng.randrange(4)}" if p in ("C", "D") else p for p in _parts(place)]
    return "".join(words)


def _parts(text: str) -> list[str]:
    """Its names and what is between them."""
    found, name = [""], False
    for letter in text:
        if (letter.isalnum() or letter == "_") != name:
            found.append("")
            name = not name
        found[-1] += letter
    return found


def wrong(program: Program, report: Report | None = None) -> str | None:
    """What is claimed of a program in one of its builds, and is not so."""
    for build in BUILDS:
        kernel = Kernel.from_cuda(program.source(), "k", build=build, arch="sm_90")
        results = []
        for arrays in program.contents():
            results.append(_launched(kernel, program, arrays))
            first, last = results[0], results[-1]
            if report:
                report.launches += 1
            if first.data_dependence is not None:
                break
            for what, one, other in (
                ("counters", first.counters, last.counters),
                ("hazards", without_values(first.hazards), without_values(last.hazards)),
            ):
                if one != other:
                    return f"{build}: claimed, other {what}: {one} and {other}"
        if report:
            claimed = "claimed" if len(results) > 1 else "steered"
            report.reach("claims", f"{claimed}, {'faulty' if first.hazards else 'clean'}")
            for hazard in first.hazards:
                report.reach(f"hazards ({claimed})", hazard.kind)
    return None


def _launched(kernel: Kernel, program: Program, arrays: list[np.ndarray]) -> Any:
    args = [*(array.copy() for array in arrays), 9]
    return simulator.launch(kernel, program.grid, program.block, args, step_limit=100_000)


def shrunk(program: Program, what: str) -> str:
    """The smallest program found that still goes wrong in the same way."""
    kind = "other hazards" if "other hazards" in what else "other counters"
    return compare.shrunk(program, wrong, kind, 150) + program.source()


def run(seconds: float, seed: int, count: int | None = None) -> Report:
    """Draw programs for some seconds, or ``count`` of them."""
    names = {f"{a}, {b}" for a in ("claimed", "steered") for b in ("faulty", "clean")}
    report = Report(known={"claims": names})
    return compare.drawn(report, seeds(seconds, seed, count), draw, wrong, shrunk)
