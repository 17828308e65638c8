"""Kernels of the tests, compiled once, and the schedules and builds that they run in."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulator
from kernels import Kernel, library

SCHEDULES: tuple[str | int, ...] = ("lockstep", "warps", "reverse", 1)
BUILDS = ("device", "source")
ONE_FIRST = ("device", pytest.param("source", marks=pytest.mark.slow))
"""The other build in the gate's second stage, where it says much the same."""
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p, %q, %p<4>, %w<3>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>;"
    " .reg .f64 %fd<12>;\n"
)


@functools.cache
def compiled(source: str | Path, entry: str = "k", build: str = "device") -> Kernel:
    """A kernel of CUDA C++: a file, or a text that may begin at the parameters of ``k``."""
    if isinstance(source, str) and source.startswith("("):
        source = f'extern "C" __global__ void k{source}'
    return Kernel.from_cuda(source, entry, build=build)


def entry(body: str, params: str = ".param .u64 out, .param .u32 n", before: str = "") -> Kernel:
    """An entry ``k`` of PTX around some lines, with registers of every kind."""
    return Kernel.from_ptx(
        f"{HEADER}{before}\n.visible .entry k({params}) {{\n{REGISTERS}{body}\nret;\n}}\n", "k"
    )


def drawn_later(seeds: Iterable[Any]) -> list[Any]:
    """Of a net in the suite: draws that the gate's second stage looks at."""
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds]


def every_other(cases: Sequence[Any]) -> list[Any]:
    """Of cases that are much alike: the others are the second stage's."""
    later = drawn_later(cases[1::2])
    return [later[i // 2] if i % 2 else case for i, case in enumerate(cases)]


def ints(*sizes: int) -> list[Any]:
    return [np.zeros(size, np.int32) for size in sizes]


def run_library(
    name: str, size: tuple[int, ...], tile: int | None = None, build: str = "device", **options: Any
) -> tuple[simulator.Run, bool]:
    """A run of a library kernel, and whether its outputs were right."""
    found = library.get(name)
    launch = found.launch(size, tile)
    expected = launch.expected()
    kernel = found.kernel(tile, build=build)
    options = {"shared_bytes": launch.shared_bytes} | options
    result = simulator.launch(kernel, launch.grid, launch.block, launch.args, **options)
    return result, all(output.within for output in launch.compare(expected))
