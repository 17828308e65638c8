"""Occupancy and roofline of a run on a named GPU."""

import math
from dataclasses import dataclass
from typing import Any

import device
from device import Gpu, Occupancy, Roofline, UnknownGpu
from kernels.machine_code.cubin import machine_code

from ..check.outcome import Outcome
from ..cli.errors import UserError

GIVEN, DRIVER, COMPILER = "as given", "from the driver", "from machine code made here"


@dataclass(frozen=True)
class Placement:
    """A launch on a GPU that need not be present.

    Attributes:
        gpu: The GPU.
        occupancy: Resident blocks of a multiprocessor; without known registers an upper bound.
        roofline: Lower bounds of the time of each part.
        source: Origin of the register count; empty if it is unknown.
        blocks: Blocks of the grid.
    """

    gpu: Gpu
    occupancy: Occupancy
    roofline: Roofline
    source: str
    blocks: int

    @property
    def waves(self) -> int | None:
        """Number of waves of the grid; ``None`` if no block fits."""
        resident = self.gpu.sms * self.occupancy.blocks
        return -(-self.blocks // resident) if resident else None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.gpu.key,
            "capability": self.gpu.capability,
            "multiprocessors": self.gpu.sms,
            "registers_source": self.source or None,
            "waves": self.waves,
            "occupancy": self.occupancy.to_dict(),
            "roofline": self.roofline.to_dict(),
        }


def find(name: str) -> Gpu:
    """Return the GPU that ``--gpu`` names.

    Raises:
        UserError: The table has no such GPU.
    """
    try:
        return device.find_gpu(name)
    except UnknownGpu as error:
        raise UserError(str(error)) from None


def place(outcome: Outcome, gpu: Gpu, registers: int | None = None) -> Placement:
    """Place a run on a GPU.

    Unless they are given, registers come from the driver if such a GPU is present, else from the
    machine-code compiler.

    Raises:
        UserError: The driver refuses the kernel.
    """
    run, target = outcome.run, outcome.target
    blocks = math.prod(run.grid)
    source = GIVEN
    if registers is None:
        registers = _from_driver(outcome, gpu)
        source = DRIVER
    if registers is None:
        code = machine_code(target.kernel, gpu.capability)
        registers, source = (code.registers, COMPILER) if code else (None, "")
    return Placement(
        gpu,
        device.occupancy(gpu, math.prod(run.block), registers, run.shared_bytes),
        device.roofline(gpu, run.counters, target.args, blocks),
        source,
        blocks,
    )


def _from_driver(outcome: Outcome, gpu: Gpu) -> int | None:
    """Return the registers of a thread, if a GPU of the same architecture is present."""
    if not device.available()[0]:
        return None
    try:
        if device.capability() != gpu.capability:
            return None
        return device.registers(outcome.target.kernel)
    except device.DeviceError as error:
        raise UserError(str(error)) from None
