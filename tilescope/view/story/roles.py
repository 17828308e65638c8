"""Role of each recorded instruction in the story, and the array whose data it moves."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulator.compile.probes import Watched
from simulator.isa.decoded import combination, moves, passes, roles, running
from simulator.observe.trace.access_counts import SHARED
from simulator.observe.trace.trace import Trace, TraceEvent

QUIET, LOAD, READ, KEEP, COMPUTE, WRITE, ATOMIC, ARRIVE, RELEASE, OTHER = range(10)
"""Acts of instructions.

No step; a load from global memory; a read of shared memory; a store to shared memory; arithmetic; a
store to global memory; an atomic; arrival at a barrier; its release; any other."""

OF = "of"
"""Stands for what is made where one of the values is stored as it was read."""
_ALL = 1 << 30
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)")
_FOLLOWED = 20_000
"""Events from which the data flow between instructions is taken."""


@dataclass
class Roles:
    """Facts about the instructions of one run, by their numbers in ``Program.watched``.

    Attributes:
        acts: Act of each, such as ``LOAD``.
        place: Global array that each accesses; -1 for shared memory, -9 for no access.
        variable: Shared variable that each accesses, by its number; -1 for none.
        widths: Bytes that a thread accesses at once.
        copies: Whether each is a bulk copy.
        running: Whether each continues a running value that is finally stored.
        chain: Running arithmetic whose results each continues.
        values: Number of the running value that each continues, from 1; 0 for none.
        shapes: Rows, columns and depth of the matrix products by tensor cores.
        products: First recorded item of each instruction with a shape: one execution, one product.
        sources: Global array from which all loaded contents of each shared variable come, or -1.
        constant: Stores whose value may be a constant.
        computed: Stores to shared memory of values that do not come straight from global memory.
        combines: For a store to shared memory whose values are made of two that were read there,
            the instructions that make them with what they make, such as ``sum``. For a store of
            what was read it is ``OF``, with -1 for the instruction.
    """

    acts: list[int] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    variable: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    copies: list[bool] = field(default_factory=list)
    running: list[bool] = field(default_factory=list)
    chain: list[set[int]] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    shapes: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    products: set[int] = field(default_factory=set)
    sources: list[int] = field(default_factory=list)
    constant: set[int] = field(default_factory=set)
    computed: set[int] = field(default_factory=set)
    combines: dict[int, dict[int, str]] = field(default_factory=dict)


def roles_of(
    trace: Trace, watched: Sequence[dict[str, Any]], shared: Sequence[dict[str, Any]]
) -> Roles:
    """Return the roles in one run; ``watched`` and ``shared`` as in the page's data."""
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
    found.values = _components(found.running, found.chain)
    found.shapes = {n: shape for n, item in enumerate(every) if (shape := _product_shape(item))}
    first: dict[int, int] = {}
    for number in found.shapes:
        first.setdefault(every[number].instruction.line, number)
    found.products = set(first.values())
    found.sources, found.constant, found.computed = moves.sources(found, len(shared))
    found.combines = moves.combines(found)
    return found


def _components(running: Sequence[bool], chain: Sequence[set[int]]) -> list[int]:
    """Number the connected components of running arithmetic: each is one running value."""
    found = [0] * len(running)
    linked: dict[int, set[int]] = {n: set() for n, on in enumerate(running) if on}
    for number in linked:
        for other in chain[number] & linked.keys():
            linked[number].add(other)
            linked[other].add(number)
    count = 0
    for number in linked:
        if found[number]:
            continue
        count += 1
        stack = [number]
        while stack:
            one = stack.pop()
            if not found[one]:
                found[one] = count
                stack += linked[one]
    return found


def _product_shape(item: Watched) -> tuple[int, int, int] | None:
    """Return rows, columns and depth of a matrix product, as the instruction's name has them."""
    match = _SHAPE.search(item.instruction.name)
    count = item.step.op.count if item.step else None
    if not match or not (
        roles(item.instruction).row.warpgroup or (count or "").startswith("tensor")
    ):
        return None
    rows, columns, depth = map(int, match.groups())
    return rows, columns, depth


def _first_accesses(trace: Trace, count: int) -> tuple[dict[int, int], dict[int, int]]:
    """Return place and lowest byte of each access at its first execution."""
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
    """Return the values of the active threads."""
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
    """Return whether an instruction is no step: a branch, move, address or predicate."""
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
    """Data flow between instructions, taken from the first events.

    Registers are reused, so their writers are tracked event by event. If fewer threads write a
    register than before, as under a guard, both writers count.
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
        """Return the instructions whose results are its operands; -1 stands for a constant."""
        taken = self.behind[number]
        return {n for k in sorted(taken)[operands] for n in taken[k]}

    def running(self, acts: Sequence[int]) -> tuple[list[bool], list[set[int]]]:
        """Return which instructions continue a running value that is stored, and their chains."""
        wanted: set[int] = set()
        stack = [n for n, act in enumerate(acts) if act in (WRITE, KEEP, ATOMIC)]
        while stack:
            for number in self.before(stack.pop()):
                if number >= 0 and number not in wanted and self.every[number].what == "value":
                    wanted.add(number)
                    stack.append(number)
        if not any(self.before(n) for n, act in enumerate(acts) if act in (WRITE, ATOMIC)):
            # The recording ended before the first store: any arithmetic may lead to one.
            wanted = {n for n, item in enumerate(self.every) if item.what == "value"}
        chained: set[int] = set()
        chain: list[set[int]] = [set() for _ in self.every]
        for number in wanted:
            kind, first = running(self.every[number].instruction)
            if any(_is_literal(operand) for operand in self.every[number].inputs):
                continue  # a polynomial or a range reduction, not a sum of data
            for other in self.before(number, slice(first, None)) if kind else ():
                if other in wanted and running(self.every[other].instruction)[0] == kind:
                    chained |= {number, other}
                    chain[number].add(other)
        return [n in chained and acts[n] == COMPUTE for n in range(len(self.every))], chain

    def combines(self, roles: Roles) -> dict[int, dict[int, str]]:
        """Return ``Roles.combines``."""
        reads = {n for n, act in enumerate(roles.acts) if act == READ}
        found: dict[int, dict[int, str]] = {}
        for number, act in enumerate(roles.acts):
            made = self.before(number) - reads if act == KEEP else set()
            operations = {n for n in made if self._combines(n, reads)}
            if operations and operations == made:
                found[number] = {n: combination(self.every[n].instruction) for n in operations}
            elif act == KEEP and not made and self.before(number):
                found[number] = {-1: OF}
        return found

    def _combines(self, number: int, reads: set[int]) -> bool:
        """Return whether an instruction combines two values read from shared memory."""
        if number < 0 or not combination(self.every[number].instruction):
            return False
        operands = self.behind[number].values()
        return len(operands) == 2 and all(some and some <= reads for some in operands)

    def sources(self, roles: Roles, count: int) -> tuple[list[int], set[int], set[int]]:
        """Return ``Roles.sources``, ``Roles.constant`` and ``Roles.computed``."""
        found: list[set[int]] = [set() for _ in range(count)]
        constant: set[int] = set()
        computed: set[int] = set()
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
                    if not loads or roles.place[other] < 0:
                        computed.add(number)
        only = [next(iter(f)) if len(f) == 1 else -1 for f in found]
        return [max(place, -1) for place in only], constant, computed


def _is_literal(operand: int | str) -> bool:
    """Return whether an operand is a literal other than 0."""
    try:
        return isinstance(operand, str) and float(operand) != 0
    except ValueError:
        return False
