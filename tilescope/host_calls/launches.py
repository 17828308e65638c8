"""Launches by a program's host: what a GPU would refuse, and pointers to no memory of its."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from kernels.arguments.convert import MAX_BLOCK, MAX_GRID, MAX_STATIC_SHARED, MAX_THREADS
from simulator import Device

from ..scripts.virtual_device import VirtualDevice
from ..sessions.recording import user_line

SHAPE, SHARED, OTHER = "shape", "shared", "other"
"""What a GPU refuses: the grid or the block, too much dynamic shared memory, something else."""


@dataclass(frozen=True)
class LaunchByHost:
    """How a launch ended.

    Attributes:
        run: What ``simulator.launch`` returned; ``None``: it is refused.
        refused: ``SHAPE``, ``SHARED``, ``OTHER``, or nothing.
        reason: Why, a sentence.
        used_host_pointer: Whether the kernel accessed memory of the host.
    """

    run: simulator.Run | None
    refused: str = ""
    reason: str = ""
    used_host_pointer: bool = False


def checked_launch(
    machine: VirtualDevice, kernel: Kernel, grid: Sequence[int], block: Sequence[int],
    args: Sequence[Any], shared_bytes: int, stream: Any, allowed: int = MAX_STATIC_SHARED,
    **how: Any,
) -> LaunchByHost:  # fmt: skip
    """Launch a kernel, and report mistakes of the host.

    Args:
        machine: How launches are simulated.
        kernel: The kernel.
        grid: As for ``simulator.launch``, with ``block`` and ``shared_bytes``.
        block: See ``grid``.
        args: For each parameter its bytes, a number, or what a front end takes for one.
        shared_bytes: See ``grid``.
        stream: The stream.
        allowed: Bytes of dynamic shared memory that the host has asked for.
        how: Further arguments of ``simulator.launch``.
    """
    call = f"the launch of {kernel.name}"
    refused, reason = refusal(grid, block, shared_bytes, allowed)
    if not refused:
        suspects = _bad_pointers(machine.device, kernel, args)
        try:
            run = machine.launch(kernel, grid, block, args, shared_bytes, stream, **how)
        except simulator.LaunchError as error:
            refused, reason = OTHER, str(error)
    if refused:
        machine.checks.launch_error(user_line(), call, reason)
        return LaunchByHost(None, refused, reason)
    if not suspects:
        return LaunchByHost(run)
    faulty, host = machine.checks.bad_pointers(user_line(), call, run.hazards, suspects)
    run.hazards[:] = faulty
    return LaunchByHost(run, used_host_pointer=host)


def refusal(
    grid: Sequence[int], block: Sequence[int], shared_bytes: int, allowed: int
) -> tuple[str, str]:
    """Return what a GPU refuses of a launch (``SHAPE``, ``SHARED``), and why; empty if nothing."""
    if reason := _misshaped(grid, block):
        return SHAPE, reason
    if shared_bytes <= allowed:
        return "", ""
    return SHARED, (
        f"{shared_bytes:,} bytes of dynamic shared memory, {allowed:,} are allowed "
        "(cudaFuncSetAttribute, cudaFuncAttributeMaxDynamicSharedMemorySize)"
    )


def _misshaped(grid: Sequence[int], block: Sequence[int]) -> str:
    shapes = f"a grid of {'x'.join(map(str, grid))}, blocks of {'x'.join(map(str, block))}"
    threads = int(np.prod(block, dtype=object))
    if min(*grid, *block) < 1:
        return f"{shapes}: none may be 0"
    if threads > MAX_THREADS:
        return f"{shapes}: {threads:,} threads in a block, a GPU allows {MAX_THREADS:,}"
    for limit, shape in ((MAX_GRID, grid), (MAX_BLOCK, block)):
        if any(n > largest for n, largest in zip(shape, limit, strict=False)):
            return f"{shapes}: at most {'x'.join(map(str, limit))}"
    return ""


def _bad_pointers(device: Device, kernel: Kernel, args: Sequence[Any]) -> list[tuple[str, str]]:
    """Return parameters that are addresses of freed memory, or of the host's own: names, and which.

    Each is its name and what freed memory it points into, or nothing for the host's.
    """
    if kernel.adapter or len(args) != len(kernel.params):
        return []
    labels, kinds, found = kernel.labels(), kernel.parameter_types, []
    for i, (param, one) in enumerate(zip(kernel.params, args, strict=True)):
        if param.nbytes != 8 or param.is_struct or not isinstance(one, (bytes, int, np.integer)):
            continue
        address = int.from_bytes(one, "little") if isinstance(one, bytes) else int(one)
        label = labels[i] if i < len(labels) and labels[i] else f"parameter {i + 1}"
        freed = device.freed_at(address)
        is_host = 1 << 39 <= address < 1 << 47 and device.find(address) is None
        may_point = i >= len(kinds) or not kinds[i] or "*" in kinds[i]
        if freed or (may_point and is_host):
            found.append((label, freed))
    return found
