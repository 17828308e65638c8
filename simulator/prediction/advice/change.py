"""A launch without one of its defects."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from kernels.ptx.module import Instruction

from ..model_input import PredictionCase
from ..work import SiteWork


@dataclass(frozen=True)
class Change:
    """Finding of a rule.

    Attributes:
        case: The launch without the defect.
        instruction: Most affected instruction; ``None``: the whole launch.
        fields: Values for the rule's texts.
    """

    case: PredictionCase
    instruction: Instruction | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def places(case: PredictionCase, wanted: Callable[[SiteWork], bool]) -> dict[int, SiteWork]:
    """Accesses of a kind by their place in ``work.sites``."""
    return {at: one for at, one in enumerate(case.work.sites) if wanted(one)}


def worst(some: Collection[SiteWork], cost: Callable[[SiteWork], float]) -> Instruction:
    """The instruction of the line on which accesses cost most."""
    lines: dict[object, float] = {}
    for one in some:
        lines[one.site.line] = lines.get(one.site.line, 0.0) + cost(one)
    line = max(lines, key=lambda at: lines[at])
    return max((one for one in some if one.site.line == line), key=cost).site.instruction


def plain(one: SiteWork) -> bool:
    """Whether it is a load or store of global memory that waits for nobody."""
    site = one.site
    return one.space == "global" and site.access != "atomic" and not site.strong and one.ideal > 0
