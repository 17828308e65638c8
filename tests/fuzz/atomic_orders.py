"""Draws kernels whose results depend on the order of atomics: loops and branches about them."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernels import Kernel

WORDS, OWN = 16, 64
"""Words of atomics in global memory; the first of the threads' own ones."""
SHAPES = ((1, 32), (1, 32), (1, 21), (1, 64), (1, 96), (2, 32), (3, 40), (5, 64), (300, 250))
"""Blocks and threads; the last one's blocks are two batches."""


class OrderedLaunch(NamedTuple):
    """A kernel, its launch, and what makes its arguments."""

    text: str
    grid: int
    block: int
    seed: int
    rounds: int

    def kernel(self) -> Kernel:
        """The kernel, compiled."""
        return Kernel.from_cuda(self.text, "k")

    def args(self) -> list[Any]:
        """Fresh arguments."""
        rng = np.random.default_rng(self.seed)
        return [rng.integers(0, 50, OWN + self.grid * self.block).astype(np.int32), self.rounds]


def draw(seed: int) -> OrderedLaunch:
    """A launch of a seed."""
    rng = random.Random(seed)
    grid, block = rng.choice(SHAPES)
    depth = rng.choice([0, 1, 1, 2])
    parts = [_statements(rng, depth, True) for _ in range(rng.choice([1, 1, 2, 3]))]
    body = " __syncthreads(); ".join(parts)
    text = f"""extern "C" __global__ void k(int* a, int n) {{
        int t = threadIdx.x, w = t / 32, i = blockIdx.x * blockDim.x + t, x = a[{OWN} + i];
        __shared__ int s[8]; if (t < 8) s[t] = t; __syncthreads();
        {body} __syncthreads(); a[{OWN} + i] = x + s[t & 7]; }}"""
    return OrderedLaunch(text, grid, block, seed, rng.choice([3, 3, 40]))


def _statements(rng: random.Random, depth: int, is_outer: bool = False) -> str:
    many = rng.choice([1, 1, 2]) if is_outer else 1
    return " ".join(_statement(rng, depth) for _ in range(many))


def _statement(rng: random.Random, depth: int) -> str:
    kinds: list[Callable[[], str]] = [lambda: _atomic(rng)]
    if depth:
        condition = rng.choice(["x & 1", "t & 3", "w == 1", "i % 5 == 2", "blockIdx.x & 1", "w"])
        bound = rng.choice(["n", "2", "(x & 3) + 1", "w + 1", "(t & 1) + 1"])
        name = f"r{depth}"
        inner = lambda: _statements(rng, depth - 1)  # noqa: E731
        kinds = [
            lambda: f"if ({condition}) {{ {inner()} }} else {{ x += i; }}",
            lambda: f"if ({condition}) {{ {inner()} }} else {{ {inner()} }}",
            lambda: (
                f"for (int {name} = 0; {name} < {bound}; {name}++) {{ x += {name}; {inner()} }}"
            ),
        ]
    return rng.choice(kinds)()


def _waiting(rng: random.Random, name: str, inner: str) -> str:
    """A loop that an atomic or another lane's value ends, or a counter."""
    head = f"for (int {name} = 0; {name} < {rng.choice(['3', '9', '(t & 7) + 1'])}; {name}++)"
    where = rng.choice(["s + (t & 3)", "a + (i & 3)", "a + 4"])
    end = rng.choice([
        f"if (atomicCAS({where}, x & 3, i & 3) == {name}) break;",
        f"if (atomicAdd({where}, 1) & 1) break;",
        f"int o = atomicExch({where}, i & 3); x += o; if (o < (t & 3)) continue; if (o) break;",
    ])  # fmt: skip
    return f"{head} {{ {end} {inner} }}" if rng.random() < 0.5 else f"{head} {{ {inner} {end} }}"


def _atomic(rng: random.Random) -> str:
    where = rng.choice(["s + (t & 3)", "s + (w & 1)", "a + (i & 3)", "a + (w & 3)", "a", "s",
                        "a + 4 + blockIdx.x % 4"])  # fmt: skip
    what = rng.choice([f"x + {rng.randrange(9)}", "i", "1", "x & 15"])
    if rng.random() < 0.3:
        return f"atomicAdd((float*)a + 8 + (i & 1), 1.0f / (float)(({what} & 31) + 3));"
    operation = rng.choice(["Add", "Add", "Exch", "Max", "Min", "Xor", "Or"])
    into = rng.choice(["x += ", "x ^= ", ""])
    if rng.random() < 0.2:
        return f"{into}atomicCAS({where}, x & 7, {what});"
    return f"{into}atomic{operation}({where}, {what});"
