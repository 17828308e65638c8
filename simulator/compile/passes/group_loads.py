"""Grouping of shared-memory loads from one base (``memory.grouped_loads``).

Unrolled loops load rows and columns of a tile in this way. No operation in between may write
memory, synchronise, or change the base.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...core.geometry import WARP
from ..ir import Compute, CountLanes, IrOp, MemoryOp, Move, SavePredicate
from ..ir_values import SourceValue, Temporary, Value

_LEAST = 3
"""So many of them are worth it."""


@dataclass(frozen=True, kw_only=True)
class LoadGroup(IrOp):
    """Loads that share one address computation and one event.

    Attributes:
        sites: Numbers of the sites.
        found: The result registers.
    """

    sites: tuple[int, ...]
    base: SourceValue
    found: Temporary


@dataclass(frozen=True, kw_only=True)
class LoadGroupResult(IrOp):
    """Result of one grouped load: its ``number`` in ``found``."""

    found: Temporary
    number: int


def together(steps: Iterable[IrOp], numbers: Iterator[int]) -> list[IrOp]:
    """Group the loads of a block; ``numbers``: for temporaries."""
    steps = list(steps)
    begins: dict[int, IrOp] = {}
    for run in _runs(steps):
        loads = [step for at in run if isinstance(step := steps[at], MemoryOp)]
        found, first = Temporary(next(numbers), "b32"), loads[0]
        sites = tuple(load.site.number for load in loads)
        begins[run[0]] = LoadGroup(
            first.instruction, None, sites=sites, base=first.base, found=found
        )
        for number, (at, load) in enumerate(zip(run, loads, strict=True)):
            steps[at] = LoadGroupResult(
                load.instruction, None, load.targets, found=found, number=number
            )
    return [
        one for at, step in enumerate(steps) for one in (begins.get(at), step) if one is not None
    ]


def _runs(steps: list[IrOp]) -> Iterator[list[int]]:
    """Yield the positions of loads that form a group."""
    if sum(isinstance(step, MemoryOp) and step.site.space == "shared" for step in steps) < _LEAST:
        return
    runs: dict[tuple[Value, str], list[int]] = {}
    for at, step in enumerate(steps):
        over = list(runs)
        if isinstance(step, MemoryOp) and step.site.access == "load" and not step.site.strong:
            if _is_groupable(step):
                runs.setdefault((step.base.value, step.site.type), []).append(at)
            over = []
        elif isinstance(step, Compute | Move | SavePredicate | CountLanes):
            over = []
        written = {target.register for target in step.targets if target}
        over += [key for key in runs if key[0] in written and key not in over]
        yield from (run for key in over if len(run := runs.pop(key)) >= _LEAST)
    yield from (run for run in runs.values() if len(run) >= _LEAST)


def _is_groupable(load: MemoryOp) -> bool:
    """Whether a load can be grouped: one used word, by all lanes."""
    site = load.site
    return (
        site.space == "shared"
        and site.nbytes == 4
        and site.count == 1
        and site.lanes == WARP
        and not (site.order or site.far or load.guard or load.sources)
        and None not in load.targets
    )
