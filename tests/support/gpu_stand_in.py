"""The simulator in the place of a GPU: launches of ``device.validate``."""

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

import device
import simulator
from kernels import Kernel

VALIDATE = importlib.import_module("device.validate")
"""The module; ``device.validate`` is its function."""
Change = Callable[[Sequence[Any]], object]


def stand_in(monkeypatch: pytest.MonkeyPatch, changes: Iterable[Change] = ()) -> None:
    """Launch on the simulator instead; ``changes`` make its results wrong."""

    def launch(
        kernel: Kernel, grid: Any, block: Any, args: Sequence[Any], shared: int, *_: Any, **__: Any
    ) -> device.Output:
        simulator.launch(kernel, grid, block, args, shared)
        for change in changes:
            change(args)
        return device.Output(1.0, (1.0,), kernel.sha256, "Stand-in", "13.0", 24, 0, 0)

    monkeypatch.setattr(VALIDATE, "launch", launch)
