"""Random CUDA C++: valid, without races, its results the same under every order of threads."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from kernels import Kernel
from tests.fuzz.compare import Launch
from tests.fuzz.cuda_terms import COUNT, VARIABLES, Terms
from tests.fuzz.ptx_program import EDGES, INPUTS
from tests.fuzz.tree import Draw, Statement, render

BLOCKS = ((32,), (32,), (64,), (96,), (40,), (16, 4), (8, 4, 2), (24, 3), (7,))
SLOTS = 2 + COUNT * len(VARIABLES)
BOX = np.dtype([("a", "i4"), ("b", "u1"), ("c", "i8"), ("d", "i2")], align=True)

HEAD = """\
#include <cuda_fp16.h>
typedef unsigned long long u64;
struct Box { int a; unsigned char b; long long c; short d; };
__constant__ int table[8] = {1, -2, 3, 2147483647, -5, 6, 7, 100};
"""
FUNCTION = """\
static __device__ ATTRIBUTE long long NAME(int i0, long long l0, float f0, Box box) {
  VARIABLES
  BODY
  return l1 + i2 + (long long)w2 + __float_as_int(f2) + box.a + box.d;
}
"""
KERNEL = """\
extern "C" __global__ void NAME(u64* out, const u64* in, u64* count, Box box, int i0, float f0,
                                long long l0) {
  __shared__ u64 s[THREADS];
  __shared__ u64 sums[8];
  unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned g = (blockIdx.y * gridDim.x + blockIdx.x) * THREADS + t;
  long long loc[8];
  for (int j = 0; j < 8; j++) loc[j] = in[(g + j) & MASK];
  unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  i0 ^= (int)in[ALIKE0 & MASK];
  f0 += (float)ALIKE1;
  l0 -= (long long)in[(ALIKE2 + 5) & MASK];
  VARIABLES
  s[t] = w0;
  if (t < 8) sums[t] = 0;
  u64* own = out + (u64)g * SLOTS;
  __syncthreads();
  BODY
  __syncthreads();
  if (t < 8) atomicAdd(count + 8 + t, sums[t]);
  STORES
}
"""


ALIKE = {"thread": "g", "block": "block", "thread of each block": "t", "warp": "t / 32",
         "launch": "(unsigned)in[1]"}  # fmt: skip
"""What threads have alike, and the number by which it differs."""


def start(kind: str, bits: str) -> str:
    """A value of a type, from 64 bits."""
    return {
        "float": f"__int_as_float((int)({bits}))",
        "double": f"__longlong_as_double({bits})",
        "__half": f"__ushort_as_half((unsigned short)({bits}))",
    }.get(kind, f"({kind})({bits})")


def declarations(given: tuple[str, ...], source: str, alike: tuple[str, ...] = ("",)) -> str:
    """All variables with a start value; ``source`` gives 64 bits for a number.

    In turn, these are what some threads have alike (``ALIKE``).
    """
    lines, numbers = [], itertools.cycle(alike)
    for kind, letter in VARIABLES.items():
        for i in range(COUNT):
            name = f"{letter}{i}"
            if name in given:
                continue
            bits = source.replace("J", str(len(lines) * 3 + 1))
            bits = bits.replace("ALIKE", f"({ALIKE.get(next(numbers))})")
            lines.append(f"{kind} {name} = {start(kind, bits)};")
    return "\n  ".join(lines)


def stores() -> str:
    lines, at = [], 2
    for kind, letter in VARIABLES.items():
        for i in range(COUNT):
            name = f"{letter}{i}"
            bits = {
                "float": f"(unsigned)__float_as_int({name})",
                "double": f"(u64)__double_as_longlong({name})",
                "__half": f"__half_as_ushort({name})",
            }.get(kind, f"(u64){name}")
            lines.append(f"own[{at}] = {bits};")
            at += 1
    return "\n  ".join(lines)


@dataclass
class Program:
    """A program: its parts as trees, its shape, and its arguments."""

    seed: int
    body: list[Statement]
    functions: list[tuple[str, list[Statement]]]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    inputs: np.ndarray
    entry: str = "k"
    alike: tuple[str, ...] = ("thread",)

    def trees(self) -> list[list[Statement]]:
        return [self.body, *(tree for _, tree in self.functions)]

    def kernel_text(self) -> str:
        parts = []
        for number, (attribute, tree) in enumerate(self.functions):
            variables = declarations(("i0", "l0", "f0"), "(u64)l0 * (J + 2) + (u64)(i0 * J)")
            parts.append(
                FUNCTION.replace("ATTRIBUTE", attribute)
                .replace("NAME", f"{self.entry}_f{number}")
                .replace("VARIABLES", variables)
                .replace("BODY", render(tree))
            )
        source = "in[(ALIKE * 7 + J) & MASK]"
        text = (
            KERNEL.replace("NAME", self.entry)
            .replace("VARIABLES", declarations(("i0", "l0", "f0"), source, self.alike))
            .replace("ALIKE0", ALIKE[self.alike[0]])
            .replace("ALIKE1", ALIKE[self.alike[-1]])
            .replace("ALIKE2", ALIKE[self.alike[len(self.alike) // 2]])
            .replace("STORES", stores())
            .replace("BODY", render(self.body))
            .replace("THREADS", str(math.prod(self.block)))
            .replace("SLOTS", str(SLOTS))
            .replace("MASK", str(INPUTS - 1))
        )
        return "\n".join([*parts, text]).replace("call_f", f"{self.entry}_f")

    def source(self) -> str:
        return HEAD + self.kernel_text()

    def arguments(self) -> list[object]:
        total = math.prod(self.block) * math.prod(self.grid)
        out = np.full(total * SLOTS, 0x1122334455667788, np.uint64)
        box = np.zeros((), BOX)
        box["a"], box["b"], box["c"], box["d"] = -7, 200, 1 << 40, -300
        return [out, self.inputs.copy(), np.zeros(16, np.uint64), box[()],
                np.int32(-5), np.float32(0.75), np.int64(-(1 << 33))]  # fmt: skip

    def launch(self, build: str, options: tuple[str, ...] = ()) -> Launch:
        kernel = Kernel.from_cuda(self.source(), self.entry, build=build, options=options)
        return Launch(kernel.ptx, kernel.entry, self.grid, self.block, self.arguments())


def draw(seed: int, entry: str = "k", small: bool = False) -> Program:
    """The program of a seed; a small one has few threads and statements."""
    from tests.fuzz.cuda_statements import Writer

    rng = Draw(seed)
    edges = [bits for values in EDGES.values() for bits in values]
    words = [
        rng.choice(edges) | rng.choice(edges) << 32 & (1 << 64) - 1
        if rng.chance(0.5)
        else rng.getrandbits(64)
        for _ in range(INPUTS)
    ]
    block, grid = rng.choice(BLOCKS), rng.choice([(1,), (1,), (2,)])
    if small:
        block, grid = rng.choice([(32,), (8,), (7,), (4, 2, 2)]), (1,)
    other = Draw(seed ^ 0xC1)
    if math.prod(grid) == 1 and math.prod(block) < 64:
        grid = (other.choice([1, 2, 3]),)
    alike = ("thread", *(other.choice([*ALIKE]) for _ in range(other.choice([1, 2, 6]))))
    program = Program(seed, [], [], grid, block, np.array(words, np.uint64), entry, alike)
    terms = Terms(rng)
    writer = Writer(rng, terms, math.prod(block))
    terms.arrays, writer.in_function = False, True
    for number in range(2):
        attribute = rng.choice(["__noinline__", "__forceinline__", ""])
        program.functions.append((attribute, writer.body(False, rng.randrange(1, 4))))
        terms.functions.append(f"call_f{number}")
    terms.arrays, writer.in_function = True, False
    program.body = writer.body(True, rng.randrange(2, 6) if small else rng.randrange(4, 12))
    return program
