"""Advice: one rule for each defect; its gain is the predicted time without the defect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...hazards.sources import Sources
from ..model_input import PredictionCase
from . import access_defects, redundant_barriers, reuse_defects, thread_defects
from .change import Change

MAX_ADVICE = 3
"""Pieces of advice that are given."""
_LEAST = 0.1
"""Share of the time, without the launch's own, that advice has to save: by which nine in ten
predictions are off at most (docs/predicted.md)."""


@dataclass(frozen=True)
class Rule:
    """A performance defect.

    Attributes:
        name: Name of the defect.
        found: Detects the defect and returns the launch without it; ``None`` if it is absent.
        cause: Explanation, a format string with the fields of the ``Change``.
        change: Advice, a format string likewise.
    """

    name: str
    found: Callable[[PredictionCase], Change | None]
    cause: str
    change: str


RULES = (
    Rule("strided", access_defects.strided,
         "lanes {stride:,} bytes apart, {each:.0f} sectors a request for {ideal:.0f}", "{change}"),
    Rule("uncoalesced", access_defects.scattered,
         "lanes go anywhere, {each:.0f} sectors a request for {ideal:.0f}",
         "sort what is looked up, or stage it in shared memory"),
    Rule("unaligned", access_defects.unaligned,
         "rows begin inside a sector, {each:.1f} a request for {ideal:.0f}",
         "pad or shift them to multiples of 128 bytes"),
    Rule("small transactions", access_defects.small,
         "a warp asks for {requests} bytes at a time", "{change}"),
    Rule("bank conflicts", access_defects.conflicts,
         "{ways:.0f}-way bank conflicts, {share:.0%} of shared wavefronts", "{change}"),
    Rule("redundant loads", reuse_defects.redundant,
         "a block loads each sector {times:.0f} times", "load tiles into shared memory"),
    Rule("redundant between blocks", reuse_defects.between_blocks,
         "blocks load the same {times:.0f} times from L2",
         "{change}: four times the results from what a block loads"),
    Rule("missing reuse", reuse_defects.again,
         "the same address in {share:.0%} of the rounds", "keep it in a register"),
    Rule("operands", reuse_defects.operands,
         "{each:.1f} shared loads for each multiply-add",
         "let a thread compute several results from registers"),
    Rule("spills", reuse_defects.spills,
         "{share:.0%} of the instructions spill registers to local memory",
         "allow more registers (launch bounds, --maxrregcount), or unroll less"),
    Rule("low occupancy", thread_defects.occupancy,
         "only {warps} of {most} warps fit, for {limiter}", "{change}"),
    Rule("too few blocks", thread_defects.few_blocks,
         "{blocks} for {sms} multiprocessors", "split the work over {wanted:,} blocks{each}"),
    Rule("divergence", thread_defects.divergence,
         "warps go both ways, {share:.0%} of their lanes are on",
         "let whole warps go one way: branch on the warp, or sort the work"),
    Rule("serial atomics", thread_defects.atomics,
         "a block adds {passes:,.0f} times to few places",
         "sum in the block first, in shared memory or by shuffles"),
    Rule("atomics of blocks", thread_defects.atomics_of_blocks,
         "each of {blocks:,} blocks adds to the same places",
         "let {slots:,} blocks loop over the input"),
    Rule("serial shared atomics", thread_defects.shared_atomics,
         "lanes add to the same shared word, {passes:,.0f} passes a block",
         "sum in the warp first, by shuffles"),
    Rule("unneeded barriers", redundant_barriers.barriers,
         "{which} nothing in the blocks tried", "take {them} out"),
)  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """One change that would make a launch faster.

    Attributes:
        rule: The defect, as ``RULES`` calls it.
        file, line: Where it shows most; an empty file and 0 of what is the whole launch's.
        cause: What is wrong, with the counters that say so; ``change``: what to do.
        time_ms: As predicted now; ``changed_ms``: after the change.
        launch_ms: What of both the launch takes by itself.
    """

    rule: str
    file: str
    line: int
    cause: str
    change: str
    time_ms: float
    changed_ms: float
    launch_ms: float = field(repr=False, default=0.0)

    @property
    def gain(self) -> float:
        """Predicted speed-up."""
        return self.time_ms / self.changed_ms

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        before, after, rest = self.time_ms, self.changed_ms, ""
        if self.launch_ms > before / 2:
            before, after = before - self.launch_ms, after - self.launch_ms
            rest = ", launch overhead not counted"
        return f"{where}{self.cause}; {self.change}: {span(before, after)} predicted{rest}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        plainly = {k: v for k, v in self.__dict__.items() if k != "launch_ms"}
        return plainly | {"gain": self.gain, "text": str(self)}


def span(before: float, after: float) -> str:
    """``18 to 7 ms``; of milliseconds."""
    for size, unit in ((1e3, "s"), (1.0, "ms"), (1e-3, "us")):
        if before >= size or unit == "us":
            return f"{before / size:.3g} to {after / size:.3g} {unit}"
    raise AssertionError


def advise(case: PredictionCase) -> tuple[Advice, ...]:
    """Return the most effective changes of a launch."""
    before, launch = case.took.total, case.rates.launch_us * 1e-6
    found = []
    sources = Sources(case.launch.kernel.source_text)
    for rule in RULES:
        change = rule.found(case)
        if change is None:
            continue
        after = change.case.took.total
        if before - after < _LEAST * case.own:
            continue
        at = sources.of(change.instruction) if change.instruction else None
        found.append(
            Advice(
                rule.name, at.file if at else "", at.line if at else 0,
                rule.cause.format(**change.fields), rule.change.format(**change.fields),
                before * 1e3, after * 1e3, launch * 1e3,
            )
        )  # fmt: skip
    found.sort(key=lambda advice: advice.changed_ms)
    return tuple(found[:MAX_ADVICE])
