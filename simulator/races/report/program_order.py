"""Program order: which access of a race a report names first, under every schedule.

A race has no order, so that the order of the run must not matter. The rules, in turn:

- The thread that sets a flag precedes the thread that waits for it.
- The access from which the other is reachable comes first, preferably on a path without a barrier
  that would have ordered the two.
- If each is reachable from the other (a loop), the write comes before the read.
- Otherwise the order of the source text decides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar, TypeVarTuple, cast

from kernels.ptx.module import Instruction

from ...analysis.influence import ForwardSlices
from ...analysis.pointer_bases import Bases
from ...compile.cfg.basic_blocks import Block
from ...compile.cfg.cfg import BlockReachability
from ...compile.program import Program
from ...isa import Flow
from ...isa.decoded import callee, calls, roles
from ...memory.site import PHASE, Site

_NOWHERE = frozenset[int]()
_POINTER = 8
"""Bytes of a pointer in a kernel parameter."""
_Place = tuple[int, int]
"""A block, and where in it."""
_Asked = TypeVarTuple("_Asked")
_Answer = TypeVar("_Answer")


def _memo(
    method: Callable[[ProgramOrder, *_Asked], _Answer],
) -> Callable[[ProgramOrder, *_Asked], _Answer]:
    """Cache a method's results in its object, so that they are freed together."""

    @functools.wraps(method)
    def answer(self: ProgramOrder, *asked: *_Asked) -> _Answer:
        key = method, asked
        if key not in self.known:
            self.known[key] = method(self, *asked)
        return cast(_Answer, self.known[key])

    return answer


class ProgramOrder:
    """Order of a program's accesses.

    Attributes:
        known: Cached results, by method and arguments.
    """

    def __init__(self, program: Program) -> None:
        self.known: dict[object, object] = {}
        self.blocks, self._program = [one.block for one in program.blocks], program
        self._position = {
            id(ins): place for block in self.blocks for place, ins in enumerate(block.instructions)
        }

    def first(self, one: Site, other: Site, distance: str) -> bool:
        """Whether one instruction is named before the other."""
        return self.named(one, other, distance, False)

    @_memo
    def named(self, one: Site, other: Site, distance: str, behind: bool) -> bool:
        """Whether one access is named before the other; ``behind``: see ``handed``."""
        if one is other:
            return True
        reading = (one.access == "load") != (other.access == "load")
        handed = self.handed(one, other, distance, behind) if reading else None
        if handed is not None:
            return handed
        ways = ("all", distance) if distance == "block" else (distance, "all")
        for i, way in enumerate(ways):
            there, back = self._leads(one, other, way), self._leads(other, one, way)
            if there != back:
                return there
            if there and reading and (i == 0) == (distance != "block"):
                return one.access != "load"
        return self._text(one) < self._text(other)

    def handed(self, one: Site, other: Site, distance: str, behind: bool) -> bool | None:
        """Whether flags between threads put one access first; ``None``: they decide nothing.

        The signalling thread sets its flag after its access, and the flag controls whether the
        other access happens (in a block with no barrier in between). If either thread may signal
        the other, each at its own place, the run's order counts, because the flags enforce it. If
        one of them signals before its access, that access and the other's next one are unordered.
        ``behind``: the read follows an earlier write of the same thread, so that it races with the
        next one. Races on flags themselves are not decided.
        """
        if one.asynchronous or other.asynchronous or {one, other} & self._hears:
            return None
        way = "all" if distance == "block" else distance
        one_tells, other_tells = (self._tells_behind(x, way) for x in (one, other))
        heard, heard_other = (self._hears_before(x, way) for x in (one, other))
        hands, back = (
            one_tells and bool(heard_other - heard),
            other_tells and bool(heard - heard_other),
        )
        if one_tells and other_tells and heard and heard_other:
            direct, direct_other = (self._tells_directly(x, way) for x in (one, other))
            if direct != direct_other:
                return direct_other
        if hands != back:
            if behind and not self._met_between(one, other, way):
                return one.access == "load"
            return hands
        if not (one_tells and other_tells):
            return None
        passed_on = (
            f.number not in heard & heard_other
            or not any(s is not f and self._steering.same_place(f, s) for s in self._tells)
            for f in self._hears
            if f.number in heard | heard_other and self._steering.waits(f)
        )
        return True if any(passed_on) else None

    @_memo
    def _tells_behind(self, site: Site, way: str) -> bool:
        """Whether a thread may signal after an access."""
        return any(s is not site and self._leads(site, s, way) for s in self._tells)

    @_memo
    def _tells_directly(self, site: Site, way: str) -> bool:
        """Whether a thread may signal after an access, before it waits for others again."""
        waits = {f.block for f in self._hears if self._steering.waits(f)}
        behind = self._paths(way, False, frozenset(waits)).after(site.block)
        return any(
            s.block in behind or (s.block == site.block and self._at(s) > self._at(site))
            for s in self._tells
            if s is not site
        )

    def _met_between(self, one: Site, other: Site, way: str) -> bool:
        """Whether every path from a read to the next write passes a barrier."""
        read, write = (one, other) if one.access == "load" else (other, one)
        return self._leads(read, write, "all") and not self._leads(read, write, way)

    @_memo
    def _hears_before(self, site: Site, way: str) -> frozenset[int]:
        """Return the flags that control an access and that other threads may set."""
        return frozenset(
            f.number
            for f in self._hears
            if self._leads(f, site, way) and self._steering.guards(f, site)
        )

    @functools.cached_property
    def _steering(self) -> ForwardSlices:
        return self._program.analysis(ForwardSlices)

    @functools.cached_property
    def _tells(self) -> list[Site]:
        """Return the sites that may signal another thread; an ``mbarrier`` counts as a barrier.

        A signal is a strong write that a controlling read may observe. A write through another
        kernel parameter than all of them is data.
        """
        sites = self._program.sites
        writes = [s for s in sites if s.strong and s.access != "load" and s.operation != PHASE]
        params = enumerate(self._program.entry.params)
        bases = Bases(
            self._program,
            [(number, offset) for number, p in params for offset in range(0, p.nbytes, _POINTER)],
        )
        heard = [bases.of(read) for read in self._hears]
        if not all(heard):  # of a read without a known base any write may be the signal
            return writes
        known = frozenset().union(*heard)
        return [s for s in writes if not bases.of(s) or bases.of(s) & known]

    @functools.cached_property
    def _hears(self) -> frozenset[Site]:
        """Return the sites that may receive a controlling signal."""
        sites, numbers = self._program.sites, self._steering.controlling_strong_reads
        return frozenset(s for s in sites if s.number in numbers)

    def precedes(self, one: Site, other: Site) -> bool:
        """Whether one access is reachable from the other, past barriers as well."""
        return self._leads(one, other, "all")

    def _text(self, site: Site) -> tuple[object, ...]:
        at = (site.block, self._position.get(id(site.instruction), 0), site.number)
        location = site.instruction.location and site.instruction.location.user
        if location is None:
            return "", 0, *at
        return location.file, location.line, site.access == "load", *at

    def _leads(self, one: Site, other: Site, way: str) -> bool:
        if one.block == other.block and self._at(one) < self._at(other):
            return True
        return other.block in self._after(one.block, way)

    def _at(self, site: Site) -> int:
        """Return the position of an access in its block."""
        return self._position[id(site.instruction)]

    @_memo
    def unwaited(self, one: Site, other: Site) -> bool:
        """Whether a copy is certainly in flight at an access that nothing orders after it.

        The access is reachable from the copy without a wait; a branch or call with a wait counts as
        one. Or the two are on different paths, as where one warp copies and another reads, and one
        leads to the other without a wait.
        """
        if not self._leads(one, other, "all"):
            return not self._leads(other, one, "all") and self._begins(other, one.queue)
        for name in (one.function, other.function, *self._functions):
            starts, stops = self._places(one, name), self._places(other, name)
            if starts and stops:
                waits = self._waiting(name, one.queue)
                return any(not _between(s, e, waits) for s in starts for e in stops)
        return False

    @_memo
    def waits_between(self, one: Site, other: Site, wait: Instruction) -> bool:
        """Whether a wait lies on a path from one access to the other, possibly in a callee."""
        for name in (one.function, other.function, *self._functions):
            starts, stops = self._places(one, name), self._places(other, name)
            if starts and stops:
                at = self._standing(name, wait)
                return any(_between(s, e, at) for s in starts for e in stops)
        return False

    @_memo
    def _standing(self, name: str, wait: Instruction) -> list[_Place]:
        """Return the places at which a function reaches a wait, itself or by calls."""
        return [
            place
            for place, ins in self._functions[name]
            if ins is wait
            or any(i is wait for f in self._called(ins) for _, i in self._functions[f])
        ]

    @_memo
    def wait_follows_access(self, copy: Site, other: Site, wait: Instruction) -> bool:
        """Whether a shared-memory access follows a copy, and the copy's wait follows both."""
        return (
            other is not copy
            and other.space not in ("local", "global")
            and not copy.access == other.access == "load"
            and copy.queue != "transaction"
            and not self.first(other, copy, copy.queue)
            and not self.unwaited(copy, other)
            and not self.waits_between(copy, other, wait)
        )

    def _begins(self, site: Site, queue: str) -> bool:
        """Whether an access is reachable from the entry without a wait."""
        body = self.blocks[site.block].instructions[: self._position[id(site.instruction)]]
        return site.block in self._beginning(queue) and not any(_waits(i, queue) for i in body)

    @_memo
    def _beginning(self, queue: str) -> set[int]:
        def passes(block: Block, to: int) -> bool:
            return not any(_waits(ins, queue) for ins in block.instructions)

        return {self._program.start} | BlockReachability(self.blocks, passes).after(
            self._program.start
        )

    @functools.cached_property
    def _functions(self) -> dict[str, list[tuple[_Place, Instruction]]]:
        """The instructions of each function, with their places."""
        found: dict[str, list[tuple[_Place, Instruction]]] = {}
        for block in self.blocks:
            body = found.setdefault(block.function.name, [])
            body += [((block.number, at), ins) for at, ins in enumerate(block.instructions)]
        return found

    def _places(self, site: Site, name: str) -> list[_Place]:
        """Return the places at which a function reaches an access, itself or by calls."""
        if site.function == name:
            return [(site.block, self._position[id(site.instruction)])]
        return [place for place, reached in self._calls[name] if site.function in reached]

    @_memo
    def _waiting(self, name: str, queue: str) -> list[_Place]:
        """Return the places at which a function waits, or may wait, for a queue."""
        found = []
        for place, ins in self._functions[name]:
            called = self._called(ins)
            inside = (i for one in called for _, i in self._functions[one])
            unknown = calls(ins) and ins.targets[0].startswith("%")
            if _waits(ins, queue) or unknown or any(_waits(i, queue) for i in inside):
                found.append(place)
        return found

    @functools.cached_property
    def _calls(self) -> dict[str, list[tuple[_Place, frozenset[str]]]]:
        """The call places of each function, with the functions that may run."""
        return {
            name: [(place, reached) for place, ins in body if (reached := self._called(ins))]
            for name, body in self._functions.items()
        }

    def _called(self, ins: Instruction) -> frozenset[str]:
        """Return the functions that an instruction may run."""
        name = callee(ins)
        return self._reached(name) if name in self._functions else frozenset()

    @_memo
    def _reached(self, name: str) -> frozenset[str]:
        """Return a function and its transitive callees."""
        found: set[str] = set()
        todo = [name]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += self._callees[name]
        return frozenset(found)

    @functools.cached_property
    def _callees(self) -> dict[str, set[str]]:
        """The callees of each function."""
        return {
            name: {callee(ins) for _, ins in body}.intersection(self._functions)
            for name, body in self._functions.items()
        }

    @functools.cached_property
    def _clustered(self) -> bool:
        """Whether the program uses the cluster's barrier."""
        return any(one.cluster for one in self._program.blocks)

    @_memo
    def _after(self, number: int, way: str) -> set[int]:
        """Return the blocks on a path; arrival and wait at a cluster's barrier end it."""
        found = self._paths(way, False, _NOWHERE).after(number)
        if way == "all" or not self._clustered:
            return found
        return found.union(*map(self._paths(way, True, _NOWHERE).after, {number} | found))

    @_memo
    def _paths(self, way: str, arrived: bool, closed: frozenset[int]) -> BlockReachability:
        """Return reachability past no barrier of a kind, and no ``closed`` block."""

        def passes(block: Block, to: int) -> bool:
            end = block.end
            if to in closed:
                return False
            if way != "all" and end is not None and roles(end).flow is Flow.BARRIER:
                return roles(end).holds != (arrived or not end.has("cluster"))
            if way in ("lane", "warp") and self._awaits_phase(block, to):
                return False
            body = self.blocks[to].body
            return not (way == "lane" and body and roles(body[0]).row.warp_barrier)

        return BlockReachability(self.blocks, passes)

    def _awaits_phase(self, block: Block, to: int) -> bool:
        """Whether an edge implies a completed wait at an ``mbarrier``.

        The edge leaves a test, a loop that tests, or a function that does. Unoptimised code may
        test before the loop, and ``cuda::barrier`` at its place.
        """
        end = block.end
        inside = self._called(end) if end is not None and to == block.follow else frozenset()
        blocks, functions = self._phase_waits
        return block.number in blocks or not inside.isdisjoint(functions)

    @functools.cached_property
    def _phase_waits(self) -> tuple[set[int], set[str]]:
        """Return the blocks that wait at an ``mbarrier``, and the functions that test one."""
        waits = [s for s in self._program.sites if roles(s.instruction).row.phase == "wait"]
        exits = (self._steering.exits(site) for site in waits)
        return {s.block for s in waits}.union(*exits), {s.function for s in waits}


def _between(start: _Place, end: _Place, waits: Sequence[_Place]) -> bool:
    """Whether a wait lies on the way from one place to another, possibly around a loop."""
    if start < end:
        return any(start < wait < end for wait in waits)
    return any(wait > start or wait < end for wait in waits)


def _waits(ins: Instruction, queue: str) -> bool:
    """Whether an instruction waits for the operations of a queue."""
    row = roles(ins).row
    if row.phase == "wait":
        return queue in ("copy", "transaction")
    return row.asynchronous == "wait" and row.queue == queue
