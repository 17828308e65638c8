"""Launches in both engines side by side, and in NumPy with native forms."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import simulator
from kernels import Kernel
from kernels.arguments.uninitialised import missing_of
from simulator import Run
from simulator.execute.prepare import prepare
from simulator.native.ufuncs import loops, substitution

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


@contextmanager
def all_forms() -> Iterator[None]:
    """Let every native form stand in, faster or not, compiled without optimisation."""
    names = "_PASSES", "_LEVEL", "_loops", "_is_faster"
    before = {name: getattr(substitution, name) for name in names}
    given = 0, 0, _loops, lambda function, step: True
    vars(substitution).update(zip(names, given, strict=True))
    try:
        yield
    finally:
        vars(substitution).update(before)


_loops: dict[Any, Any] = {}
"""What ``all_forms`` has compiled."""


def with_forms(
    kernel: Kernel, grid: Any, block: Any, args: Sequence[Any], **how: Any
) -> dict[str, Any]:
    """Launch in NumPy with all native forms; return all that a user could see, and ``forms``.

    ``forms``: the names of those that stand in.
    """
    shared_bytes = how.get("shared_bytes", 0)
    prepared = prepare(kernel, grid, block, args, shared_bytes, "lockstep", 1 << 20, False)
    with all_forms():
        substitution.substitute(prepared.program)
        chosen = prepared.program.analysis(substitution.slow_steps)
        for basic in prepared.program.blocks:
            for name, step in basic.body.functions.items():
                assert name not in chosen or chosen[name].text == loops.module_text(step)
        run = simulator.launch(kernel, grid, block, args, **how)
    return outcome(run, args) | {"forms": list(prepared.program.substitutes.functions)}


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
