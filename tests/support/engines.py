"""Launches in both engines, side by side."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from kernels.arguments.uninitialised import missing_of
from simulator import Run

LEFT_OUT = ("seconds",)
"""Keys of ``Run.to_dict`` that differ from launch to launch."""


def outcome(run: Run, args: Sequence[Any]) -> dict[str, Any]:
    """All that a user could see of a launch."""
    shown = {key: value for key, value in run.to_dict().items() if key not in LEFT_OUT}
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    unset = [None if flags is None else flags.tobytes() for flags in map(missing_of, arrays)]
    contents = [a.tobytes() for a in arrays]
    return shown | {
        "arrays": contents, "unset": unset, "work": run.work, "steps": run.batch_steps,
    }  # fmt: skip


def both(
    kernel: Kernel, grid: Any, block: Any, make: Callable[[], Sequence[Any]], **how: Any
) -> tuple[list[str], Run]:
    """Launch in NumPy, then natively; return the keys that differ, and the native run."""
    found = []
    for engine in ("numpy", "native"):
        args = make()
        run = simulator.launch(kernel, grid, block, args, engine=engine, **how)
        found.append(outcome(run, args))
    one, other = found
    return [key for key in one if one[key] != other[key]], run


def copied(args: Sequence[Any]) -> list[Any]:
    """Arguments whose arrays are copies."""
    return [copy.deepcopy(a) for a in args]
