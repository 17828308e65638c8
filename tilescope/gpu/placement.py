"""A run on a named GPU: its occupancy there, and its place under that GPU's roofs."""

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
    """A launch on a GPU that need not be there.

    Attributes:
        gpu: Which.
        occupancy: Blocks of a multiprocessor; without registers an upper bound.
        roofline: The least times of its parts.
        source: Where the registers a thread come from; empty if they are not known.
        blocks: Of the grid.
    """

    gpu: Gpu
    occupancy: Occupancy
    roofline: Roofline
    source: str
    blocks: int

    @property
    def waves(self) -> int | None:
        """Rounds in which the grid's blocks run; ``None`` if a block does not fit at all."""
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
    """The GPU that ``--gpu`` names.

    Raises:
        UserError: There is none of that name in the table.
    """
    try:
        return device.find_gpu(name)
    except UnknownGpu as error:
        raise UserError(str(error)) from None


def place(outcome: Outcome, gpu: Gpu, registers: int | None = None) -> Placement:
    """Put a run on a GPU.

    Registers a thread, if they are not given, are asked of the driver where a GPU of this kind is
    here, else of the compiler of machine code.

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
    """Registers a thread, if there is a GPU whose compiler output is that GPU's."""
    if not device.available()[0]:
        return None
    try:
        if device.capability() != gpu.capability:
            return None
        return device.registers(outcome.target.kernel)
    except device.DeviceError as error:
        raise UserError(str(error)) from None
