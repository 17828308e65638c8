"""What each recorded instruction does in the story, and whose data it moves."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.compile.program import Watched
from simulator.isa.decoded import moves, passes, running
from simulator.observe.trace.access_counts import SHARED
from simulator.observe.trace.trace import Trace, TraceEvent

QUIET, LOAD, READ, KEEP, COMPUTE, WRITE, ATOMIC, ARRIVE, RELEASE, OTHER = range(10)
"""Acts: no step at all; a load from global memory; a read of shared memory; a store to shared
memory; arithmetic; a store to global memory; an atomic; arrival at a barrier and its release;
anything else."""

_ALL = 1 << 30
_FOLLOWED = 20_000
"""Events that tell which result goes into which operand."""


@dataclass
class Roles:
    """Facts about the instructions of one run, by their numbers in ``Program.watched``.

    Attributes:
        acts: What each does.
        place: Global array that each accesses; -1 where it is shared memory, -9 for none.
        variable: Shared variable that each accesses, by its number; -1 for none.
        widths: Bytes that a thread accesses at once.
        copies: Whether each copies in bulk.
        running: Whether each continues a running value that is stored in the end.
        chain: Running arithmetic whose results each continues.
        sources: Of each shared variable the global array that is copied into it, if all its
            loaded content comes from that one; else -1.
        constant: Stores whose value may be a constant.
    """

    acts: list[int] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    variable: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    copies: list[bool] = field(default_factory=list)
    running: list[bool] = field(default_factory=list)
    chain: list[set[int]] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    constant: set[int] = field(default_factory=set)


def roles_of(
    trace: Trace, watched: Sequence[dict[str, Any]], shared: Sequence[dict[str, Any]]
) -> Roles:
    """The roles in one run; ``watched`` and ``shared`` as the page has them."""
    every = trace.program.watched or []
    found = Roles()
    places, offsets = _first_accesses(trace, len(every))
    for number, item in enumerate(every):
        place = places.get(number, -9)
        found.place.append(place)
        found.variable.append(_variable(shared, place, offsets.get(number, -1)))
        found.widths.append(item.site.nbytes if item.site else 0)
        found.copies.append(item.what == "copy")
        found.acts.append(_act(item, watched[number], place))
    moves = _OperandFlow(trace, every)
    found.running, found.chain = moves.running(found.acts)
    found.sources, found.constant = moves.sources(found, len(shared))
    return found


def _first_accesses(trace: Trace, count: int) -> tuple[dict[int, int], dict[int, int]]:
    """Place and smallest byte of the first execution of each access."""
    places: dict[int, int] = {}
    offsets: dict[int, int] = {}
    for batch in trace.batches:
        for event in batch.events:
            if event.watched in places or event.place is None or event.watched < 0:
                continue
            if (trace.program.watched or [])[event.watched].what == "copy":
                place = event.values[1].reshape(-1)
                offset = event.values[0].reshape(-1)
                offset = offset[offset >= 0]
            else:
                place, offset = _on(event.place, event.mask), _on(event.offset, event.mask)
            places[event.watched] = int(place.max())
            offsets[event.watched] = int(offset.min()) if offset.size else -1
            if len(places) == count:
                return places, offsets
    return places, offsets


def _on(value: Any, mask: Any) -> Any:
    """The values of the threads that take part."""
    if mask is None or value.ndim == 0:
        return value.reshape(-1)
    shape = np.broadcast_shapes(value.shape, mask.shape)
    return np.broadcast_to(value, shape)[np.broadcast_to(mask, shape)]


def _variable(shared: Sequence[dict[str, Any]], place: int, offset: int) -> int:
    if place != SHARED:
        return -1
    for number, item in enumerate(shared):
        if item["start"] <= offset < item["start"] + item["bytes"]:
            return number
    return -1


def is_quiet(item: Watched, shown: dict[str, Any]) -> bool:
    """Whether nobody counts an instruction as a step: branches, moves, addresses, predicates."""
    if item.what in ("branch", "exit"):
        return True
    if item.what != "value":
        return False
    return moves(item.instruction) or bool(shown.get("address")) or bool(shown.get("predicate"))


def _act(item: Watched, shown: dict[str, Any], place: int) -> int:
    if is_quiet(item, shown):
        return QUIET
    if item.what == "barrier":
        return ARRIVE
    if item.what == "value":
        return COMPUTE
    if item.what == "atomic":
        return ATOMIC
    if place == SHARED:
        return READ if item.what == "load" else KEEP
    if place >= 0:
        return LOAD if item.what == "load" else WRITE
    return KEEP if item.what == "copy" else OTHER


class _OperandFlow:
    """Which instruction's result went into which operand, as the first events show it.

    Registers are reused, so the writer of each is followed event by event. A write by fewer threads
    than the one before leaves that one standing beside it, as behind a guard.
    """

    def __init__(self, trace: Trace, every: Sequence[Watched]) -> None:
        self.every = every
        self.behind: list[dict[int, set[int]]] = [{} for _ in every]
        writers: dict[int, dict[int, int]] = {}
        for batch in trace.batches[:1]:
            for event in batch.events[:_FOLLOWED]:
                if event.watched >= 0:
                    self._follow(event, writers)

    def _follow(self, event: TraceEvent, writers: dict[int, dict[int, int]]) -> None:
        item = self.every[event.watched]
        given = [
            {-1: _ALL} if isinstance(operand, str) else writers.get(operand, {-1: _ALL})
            for operand in item.inputs
        ]
        into = self.behind[event.watched]
        for k, found in enumerate(given):
            into.setdefault(k, set()).update(found)
        lanes = _ALL if event.mask is None else int(np.count_nonzero(event.mask))
        through = item.what == "value" and passes(item.instruction)
        result = {n: lanes for found in given for n in found} if through else {event.watched: lanes}
        for register in item.outputs:
            if register < 0:
                continue
            if through or item.what in ("value", "load", "atomic"):
                known = writers.get(register, {})
                older = {n: count for n, count in known.items() if count > lanes}
                writers[register] = older | result

    def before(self, number: int, operands: slice = slice(None)) -> set[int]:
        """Instructions whose results an instruction took; -1 stands for a constant."""
        taken = self.behind[number]
        return {n for k in sorted(taken)[operands] for n in taken[k]}

    def running(self, acts: Sequence[int]) -> tuple[list[bool], list[set[int]]]:
        """Arithmetic that continues the same arithmetic on the way to what is stored, and which."""
        wanted: set[int] = set()
        stack = [n for n, act in enumerate(acts) if act in (WRITE, KEEP, ATOMIC)]
        while stack:
            for number in self.before(stack.pop()):
                if number >= 0 and number not in wanted and self.every[number].what == "value":
                    wanted.add(number)
                    stack.append(number)
        if not any(self.before(n) for n, act in enumerate(acts) if act in (WRITE, ATOMIC)):
            # Recording ended before anything was stored: any arithmetic may be on the way there.
            wanted = {n for n, item in enumerate(self.every) if item.what == "value"}
        chained: set[int] = set()
        chain: list[set[int]] = [set() for _ in self.every]
        for number in wanted:
            kind, first = running(self.every[number].instruction)
            if any(_is_literal(operand) for operand in self.every[number].inputs):
                continue  # a polynomial or the reduction of a range, not a sum of data
            for other in self.before(number, slice(first, None)) if kind else ():
                if other in wanted and running(self.every[other].instruction)[0] == kind:
                    chained |= {number, other}
                    chain[number].add(other)
        return [n in chained and acts[n] == COMPUTE for n in range(len(self.every))], chain

    def sources(self, roles: Roles, count: int) -> tuple[list[int], set[int]]:
        """See ``Roles.sources`` and ``Roles.constant``."""
        found: list[set[int]] = [set() for _ in range(count)]
        constant = set()
        for number, item in enumerate(self.every):
            variable = roles.variable[number]
            if roles.acts[number] != KEEP or variable < 0:
                continue
            same = [
                roles.place[n]
                for n, other in enumerate(self.every)
                if n != number and other.instruction.line == item.instruction.line
                and other.what == "load"
            ]  # fmt: skip
            if same:
                found[variable].update(same)
                continue
            for other in self.before(number):
                if other < 0:
                    constant.add(number)
                else:
                    loads = self.every[other].what == "load"
                    found[variable].add(roles.place[other] if loads else -9)
        only = [next(iter(f)) if len(f) == 1 else -1 for f in found]
        return [max(place, -1) for place in only], constant


def _is_literal(operand: int | str) -> bool:
    """Whether an operand is a number other than 0, written out in the program."""
    try:
        return isinstance(operand, str) and float(operand) != 0
    except ValueError:
        return False
