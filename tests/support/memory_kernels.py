"""PTX of kernels that access memory, run on both machines."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

import simulator
from kernels import Kernel

THREADS = 96
START = [
    ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>;",
    ".reg .f32 %f<8>; .reg .f64 %fd<8>; .reg .b128 %q<4>;",
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;",
    "mad.lo.u32 %r3, %r1, %r2, %r0;",
]


def launch(machine: Any, k: Kernel, grid: int, block: int, arrays: Sequence[np.ndarray]) -> None:
    result = machine.launch(k, grid, block, list(arrays))
    if machine is simulator:
        assert result.hazards == []


def element(parameter: int, size: int, index: str = "%r3", into: str = "%rd2") -> list[str]:
    """Address of an element of an array that is a parameter."""
    return [
        f"ld.param.u64 %rd0, [p{parameter}]; mul.wide.u32 %rd1, {index}, {size};",
        f"add.u64 {into}, %rd0, %rd1;",
    ]


def random_bytes(count: int, seed: str) -> np.ndarray:
    return np.frombuffer(random.Random(seed).randbytes(count), np.uint8).copy()


def home(space: str, size: int) -> tuple[list[str], str]:
    """Code that puts the address of a thread's own element of a space in %rd4, and its word."""
    each = f"mul.wide.u32 %rd5, %r0, {size};"
    if space == "shared":
        return [".shared .align 16 .b8 room[3072];", f"mov.u64 %rd4, room; {each}",
                "add.u64 %rd4, %rd4, %rd5;"], "shared"  # fmt: skip
    if space == "local":
        return [
            ".local .align 16 .b8 own[64];",
            "mov.u64 %rd4, own; add.u64 %rd4, %rd4, 16;",
        ], "local"
    if space == "generic":
        lines = [".shared .align 16 .b8 room[3072];", f"mov.u64 %rd4, room; {each}"]
        return [*lines, "add.u64 %rd4, %rd4, %rd5; cvta.shared.u64 %rd4, %rd4;"], ""
    return [*element(2, size, into="%rd4")], "global"
