"""Occupancy: how many blocks of a launch fit on a multiprocessor, and what limits them.

The arithmetic is that of ``cuda_occupancy.h`` in NVIDIA's CUDA toolkit; it needs no GPU.
``tests/gpu/test_occupancy.py`` holds it to Nsight Compute's ``launch__occupancy_limit_*``
of 100 launches on an H200.
"""

from dataclasses import dataclass
from typing import Any

from .table import KIB, Architecture, Gpu

WARP = 32


@dataclass(frozen=True)
class Occupancy:
    """Resident blocks of a multiprocessor.

    Attributes:
        limits: Blocks that each resource allows, by name: ``blocks``, ``warps``, ``registers``,
            ``shared memory``; ``None`` if unknown. A resource that the kernel does not use allows
            the hardware's maximum.
        blocks: Blocks that fit.
        warps: Warps of these blocks.
        max_warps: Warps that the hardware supports.
        registers: Registers of a thread, if given.
    """

    limits: dict[str, int | None]
    blocks: int
    warps: int
    max_warps: int
    registers: int | None

    @property
    def share(self) -> float:
        """Resident warps over the most there could be."""
        return self.warps / self.max_warps

    @property
    def limiters(self) -> tuple[str, ...]:
        """Which resources allow no more; several may tie."""
        return tuple(name for name, limit in self.limits.items() if limit == self.blocks)

    @property
    def complete(self) -> bool:
        """Whether all resources were looked at; otherwise ``blocks`` is an upper bound."""
        return None not in self.limits.values()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "limits": self.limits,
            "blocks_per_sm": self.blocks,
            "warps_per_sm": self.warps,
            "share": self.share,
            "limiters": list(self.limiters),
            "complete": self.complete,
            "registers": self.registers,
        }


def occupancy(
    gpu: Gpu | Architecture,
    threads: int,
    registers: int | None = None,
    shared_bytes: int = 0,
    carveout: int | None = None,
) -> Occupancy:
    """Return blocks a multiprocessor can hold at once.

    Args:
        gpu: A GPU, or an architecture.
        threads: Of a block.
        registers: Of a thread, as the driver's compiler assigned them (0 to 255); ``None``
            if unknown: that limit is then left open, and never guessed.
        shared_bytes: Of a block, static and dynamic, without what the system reserves.
        carveout: KiB of shared memory that the driver has split off; the largest it can, as
            CUDA's own calculation takes it, if left out.

    Raises:
        ValueError: A number that cannot be, or a split that this architecture does not have.
    """
    chip = gpu.architecture if isinstance(gpu, Gpu) else gpu
    if threads < 1:
        raise ValueError(f"a block has one thread or more, not {threads}")
    if registers is not None and registers < 0:
        raise ValueError(f"registers a thread cannot be {registers}")
    if shared_bytes < 0:
        raise ValueError(f"shared memory cannot be {shared_bytes} bytes")
    if carveout is not None and carveout not in chip.carveouts:
        listed = ", ".join(str(size) for size in chip.carveouts)
        raise ValueError(f"{chip.capability} splits off {listed} KiB, not {carveout}")
    warps = -(-threads // WARP)
    limits: dict[str, int | None] = {
        "blocks": chip.blocks,
        "warps": chip.warps // warps if threads <= 1024 else 0,
        "registers": None if registers is None else _by_registers(chip, warps, registers),
        "shared memory": _by_shared(chip, shared_bytes, carveout),
    }
    blocks = min(limit for limit in limits.values() if limit is not None)
    return Occupancy(limits, blocks, blocks * warps, chip.warps, registers)


def _by_registers(chip: Architecture, warps: int, registers: int) -> int:
    """Return the blocks that registers suffice for; a warp stays in one of four partitions."""
    if registers == 0:
        return chip.blocks
    if registers > chip.registers_per_thread:
        return 0
    each = _round_up(registers * WARP, chip.register_unit)
    if each * _round_up(warps, chip.partitions) > chip.registers:
        return 0  # the hardware holds a launch to what all partitions would need
    return chip.registers // chip.partitions // each * chip.partitions // warps


def _by_shared(chip: Architecture, shared_bytes: int, carveout: int | None) -> int:
    if shared_bytes > chip.shared_per_block:
        return 0
    each = _round_up(shared_bytes + chip.shared_reserved, chip.shared_unit)
    if each == 0:
        return chip.blocks
    there = chip.shared_bytes if carveout is None else carveout * KIB
    return there // each


def max_shared(chip: Architecture, blocks: int) -> int:
    """Return bytes of shared memory that each of so many blocks can have."""
    each = chip.shared_bytes // blocks // chip.shared_unit * chip.shared_unit
    return min(each - chip.shared_reserved, chip.shared_per_block)


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
