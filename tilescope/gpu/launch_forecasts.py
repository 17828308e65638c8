"""Predicted times of a program's launches, each kind of launch predicted once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernels import Kernel
from simulator import Device
from simulator.gpus.table import Gpu

from .prediction_inputs import Forecast, predicted

_TAKEN = ("symbols", "cooperative", "cluster", "device", "stack_bytes", "heap_bytes")
"""Arguments of ``simulator.launch`` that ``simulator.predict`` takes as well."""


class LaunchForecasts:
    """Forecasts of launches on one GPU.

    Launches of one kernel that agree in shape, in scalars, and in the sizes of the memory that they
    are given share the forecast of the first one: what arrays contain may make others differ.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._made: dict[object, Forecast] = {}

    def of(
        self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], args: Sequence[Any],
        shared_bytes: int, how: Mapping[str, Any],
    ) -> Forecast:  # fmt: skip
        """Return the forecast of a launch that is about to be made."""
        device = how.get("device")
        key = (
            kernel.sha256, kernel.entry, tuple(grid), tuple(block), shared_bytes,
            str(how.get("cluster")), tuple(_kind(arg, device) for arg in args),
        )  # fmt: skip
        if key not in self._made:
            given = {name: how[name] for name in _TAKEN if name in how}
            self._made[key] = predicted(
                kernel, grid, block, args=args, gpu=self.gpu, shared_bytes=shared_bytes, **given
            )
        return self._made[key]


def _kind(arg: Any, device: Device | None) -> object:
    """Return a key that is equal for arguments of similar launches."""
    if isinstance(arg, np.ndarray):
        return arg.shape, arg.dtype.str
    if isinstance(arg, bytes):
        found = device.find(int.from_bytes(arg, "little")) if device and len(arg) == 8 else None
        return arg if found is None else found.nbytes
    return arg if isinstance(arg, (bool, int, float, np.generic)) else str(type(arg))
