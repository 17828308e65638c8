"""Cures for races: where one barrier removes them, proved by running with it.

And the other way round: what happens without a barrier that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernels import Kernel

from .blocks import reachable, row_of
from .edit import with_barriers, without_barriers
from .hazard import Cure, Hazard, Source
from .module import Function, Instruction, Location
from .parser import parse
from .run import Run
from .sources import Sources

Rerun = Callable[[Kernel], Run]
"""Runs an edited kernel on the same inputs, all checks on."""

_TRIES = 12


def find_cures(kernel: Kernel, run: Run, rerun: Rerun) -> int:
    """Look for a barrier that removes each race inside blocks; sets ``hazard.cure``.

    Only what a run with the barrier proved is reported: no error left at all if that can
    be had with one barrier, else at least this hazard gone and none new.

    Returns:
        How many hazards got a cure.
    """
    cured = 0
    for hazard in run.hazards:
        if hazard.kind.endswith("-race") and hazard.severity == "error" and _one_block(hazard):
            hazard.cure = _cure(kernel, hazard, rerun)
            cured += hazard.cure is not None
    return cured


def _one_block(hazard: Hazard) -> bool:
    blocks = {item.block for item in hazard.involved}
    return len(blocks) == 1


def _cure(kernel: Kernel, hazard: Hazard, rerun: Rerun) -> Cure | None:
    functions = reachable(parse(kernel.ptx), kernel.entry)
    tried: set[tuple[int, ...]] = set()
    for after, places in _candidates(functions, hazard):
        if places in tried:
            continue
        tried.add(places)
        if len(tried) > _TRIES:
            return None
        left = rerun(with_barriers(kernel, places)).hazards
        if not [h for h in left if h.severity == "error"]:
            return Cure(_source(kernel, after), places[0])
    return None


def _source(kernel: Kernel, ins: Instruction) -> Source:
    return Sources(kernel).of(ins)


def _candidates(
    functions: list[Function], hazard: Hazard
) -> Iterator[tuple[Instruction, tuple[int, ...]]]:
    """Places for a barrier, likeliest first: (instruction it follows, PTX lines it precedes).

    Between the end of the earlier access's source line and the next line; in front of
    the later access's line; and each of these at every copy that unrolling made.
    """
    if len(hazard.involved) < 2:
        return
    earlier, later = hazard.involved[0], hazard.involved[1]
    for function in functions:
        body = function.body
        borders = list(_borders(body, function))
        first = next((i for i, ins in enumerate(body) if ins.line == earlier.ptx_line), None)
        second = next((i for i, ins in enumerate(body) if ins.line == later.ptx_line), None)
        if first is None and second is None:
            continue
        near: list[int] = []
        if first is not None:
            near += [b for b in borders if b > first][:2]
        if second is not None:
            near += [b for b in borders if b <= second][-2:][::-1]
            near.append(second)
        if first is not None and first + 1 < len(body):
            near.append(first + 1)
        for place in near:
            yield body[place - 1], (body[place].line,)
        for place in near:
            crossing = (_line(body[place - 1]), _line(body[place]))
            copies = [b for b in borders if (_line(body[b - 1]), _line(body[b])) == crossing]
            if len(copies) > 1:
                yield body[place - 1], tuple(body[b].line for b in copies)
        for place in borders:
            yield body[place - 1], (body[place].line,)


def _line(ins: Instruction) -> tuple[str, int] | None:
    location: Location | None = ins.location
    return (location.file, location.line) if location else None


def _borders(body: list[Instruction], function: Function) -> Iterator[int]:
    """Indices at which one source line ends and another begins, and block starts."""
    starts = set(function.labels.values())
    for i in range(1, len(body)):
        ended = row_of(body[i - 1]).kind in ("branch", "exit")
        if not ended and (_line(body[i]) != _line(body[i - 1]) or i in starts):
            yield i


@dataclass(frozen=True)
class BarrierVerdict:
    """What a launch says of one barrier in the source.

    Attributes:
        source: Where it stands.
        needed: Whether hazards appear without it.
        hazards: Those hazards.
        copies: How often it stands in the PTX.
    """

    source: Source
    needed: bool
    hazards: tuple[Hazard, ...]
    copies: int


def judge_barriers(kernel: Kernel, rerun: Rerun) -> list[BarrierVerdict]:
    """Take out each barrier of the source in turn, and run."""
    groups: dict[object, list[Instruction]] = {}
    for function in reachable(parse(kernel.ptx), kernel.entry):
        for ins in function.body:
            if row_of(ins).kind == "barrier":
                location = ins.location
                key = (location.file, location.line, location.column) if location else ins.line
                groups.setdefault(key, []).append(ins)
    verdicts = []
    for copies in groups.values():
        run = rerun(without_barriers(kernel, [ins.line for ins in copies]))
        verdicts.append(
            BarrierVerdict(
                _source(kernel, copies[0]), bool(run.hazards), tuple(run.hazards), len(copies)
            )
        )
    return sorted(verdicts, key=lambda v: (v.source.file, v.source.line))
