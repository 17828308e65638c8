"""Constants adjusted anew without a family of launches, to see what of the rest foretells it.

The adjustment begins at what ``benchmarks.gpu`` measured on an H200, and goes up and down in one
constant after the other while the sum of the errors falls.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from simulator.gpus.table import find
from simulator.prediction.critical_path import Chain, chain
from simulator.prediction.estimated_sass import MachineBlock
from simulator.prediction.model import Shape, times
from simulator.prediction.model_input import PredictionCase
from simulator.prediction.rates import ADJUSTED, Rates, rates
from simulator.prediction.work import Work

GPU = find("h200")
MEASURED = {
    "launch_us": 6.51, "l2_requests": 9.0e10, "l2_latency": 341.0, "atomic_same": 1.39e9,
}  # fmt: skip
"""What ``python -m benchmarks.gpu`` said on an H200, of the constants that are adjusted."""
_NEUTRAL = {"joint": 4.0, "overlap": 4.0, "l1_fill": 1.0}
"""Where the adjustment of those begins that no microbenchmark tells."""
_STEPS = (1.5, 1.2, 1.07, 1.03)
_MEASURED_WITHIN, _FURTHEST = 1.5, 4.0
"""Times above or below where it began, at most: of what was measured, and of the rest."""


@dataclass
class Kept:
    """What the time of a launch is worked out from, without its arrays.

    Attributes:
        case: As ``time_h200.json`` names it; ``ms``: measured.
        to_dram: As ``Case`` has it; ``blocks``: of the sample.
    """

    case: str
    ms: float
    sites: Sequence[Any]
    found: Sequence[MachineBlock]
    work: Work
    memory: tuple[float, float]
    apart: tuple[float, float]
    to_dram: float
    shape: Shape
    blocks: int
    chains: dict[float, Chain] = dataclasses.field(default_factory=dict)

    def error(self, known: Rates) -> float:
        """Logarithm of predicted over measured."""
        key = known.l2_latency
        if key not in self.chains:
            program: Any = SimpleNamespace(sites=self.sites)
            self.chains[key] = chain(
                program, self.found, self.work, self.blocks, known, self.to_dram
            )
        took = times(self.work, self.chains[key], self.memory, self.apart, GPU, known, self.shape)
        return math.log(took.total * 1e3 / self.ms)


def keep(name: str, ms: float, it: PredictionCase) -> Kept:
    """What matters of a launch, with what it took."""
    blocks = len(it.observed.sample.blocks)
    sites = it.launch.program.sites
    return Kept(
        name, ms, sites, it.found, it.work, it.memory, it.observed.memory.row_misses, it.to_dram,
        it.shape, blocks,
    )  # fmt: skip


def start() -> Rates:
    """Where adjusting begins."""
    figures: dict[str, Any] = MEASURED | _NEUTRAL
    return dataclasses.replace(rates(GPU), **figures)


def adjust(some: Sequence[Kept]) -> Rates:
    """The constants with which the errors of some launches are least."""
    begin = now = start()
    names = ADJUSTED

    def cost(known: Rates) -> float:
        return sum(abs(one.error(known)) for one in some)

    least = cost(now)
    for step in _STEPS:
        better = True
        while better:
            better = False
            for name in names:
                for factor in (step, 1 / step):
                    value = getattr(now, name) * factor
                    most = _MEASURED_WITHIN if name in MEASURED else _FURTHEST
                    if not 1 / most <= value / getattr(begin, name) <= most:
                        continue
                    trial = dataclasses.replace(now, **{name: value})
                    found = cost(trial)
                    if found < least - 1e-6:
                        now, least, better = trial, found, True
    return now


def left_out(
    launches: Sequence[Kept], families: Mapping[str, Callable[[str], bool]],
    tuned: Callable[[str], bool],
) -> dict[str, tuple[Rates, list[float]]]:  # fmt: skip
    """For each family the constants adjusted without it, and its errors with these."""
    found = {}
    for family, member in families.items():
        known = adjust([one for one in launches if tuned(one.case) and not member(one.case)])
        found[family] = (
            known,
            [math.expm1(abs(one.error(known))) for one in launches if member(one.case)],
        )
    return found
