"""Convergence regions: where lanes of a warp reconverge, from the control flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...compile.cfg.basic_blocks import successors
from ...compile.cfg.convergence import Graph, points
from ...compile.program import CompiledBlock
from ...isa.decoded import roles
from ...memory.site import Site

NEW = -1
"""What happens to the tokens of lanes on an edge: they get a new one; else the point's number."""


class Convergence:
    """Static convergence facts of a program.

    Attributes:
        edges: Effect of each edge on tokens: ``NEW``, or the number of a convergence point or loop
            head.
        saves: For each block that begins regions, the points whose lanes save their tokens.
        entries: First blocks of functions with several call sites.
        depths: For each point in recursive functions, the register with the call depth.
        points: The convergence points.
        affected: Blocks at which lanes of a warp may be in several groups.
        yields: Heads of loops that wait for writes of others.
    """

    def __init__(self, blocks: Sequence[CompiledBlock], sites: Iterable[Site]) -> None:
        self.edges: dict[tuple[int, int], int] = {}
        self.saves: dict[int, list[int]] = {}
        self._blocks = blocks
        functions: dict[str, list[CompiledBlock]] = {}
        for block in blocks:
            functions.setdefault(block.block.function.name, []).append(block)
        shared = [site for site in sites if site.counted and site.space != "local"]
        polls = {id(s.instruction) for s in shared if s.access == "atomic" or s.strong}
        self._calls = {b.number: b.call_entry for b in blocks if b.terminator_kind == "call"}
        called = Counter(self._calls.values())
        self.entries = {entry for entry, times in called.items() if times > 1}
        self._flows = {name: _Flow(some, polls) for name, some in functions.items()}
        self._first = {some[0].number: name for name, some in functions.items()}
        self._gates = {
            b.number for b in blocks if b.gate is not None or b.terminator_kind == "barrier"
        }
        self.yields = frozenset(n for flow in self._flows.values() for n in flow.yields)
        self.depths: dict[int, int] = {}
        for block in blocks:
            if block.group is not None:
                for start in (block.number, block.call_entry):
                    flow = self._flows[blocks[start].block.function.name]
                    self.depths |= dict.fromkeys(flow.regions, block.group.depth.number)
        upset = self._upsetting()
        for flow in self._flows.values():
            self._settle(flow, upset)
        for call, entry in self._calls.items():
            flow, follow = self._flows[self._first[entry]], self._blocks[call].block.follow
            if entry in self.entries:
                self.edges[call, entry] = NEW
            what = self.edges.get((call, follow), NEW if len(flow.exits) > 1 else None)
            if what is not None:
                self.edges |= {(end, follow): what for end in flow.exits}
        self.affected = self._affected(upset)
        self.points = frozenset(n for flow in self._flows.values() for n in flow.points)

    def _upsetting(self) -> set[str]:
        """Return the functions from which lanes may return with other tokens."""
        found = {
            name for name, flow in self._flows.items()
            if len(flow.exits) > 1 or flow.split_pairs or flow.first in self.entries or flow.yields
        }  # fmt: skip
        size = -1
        while size != len(found):
            size = len(found)
            for name, flow in self._flows.items():
                if any(self._first[self._calls[n]] in found for n in flow.calls):
                    found.add(name)
        return found

    def _settle(self, flow: _Flow, upset: set[str]) -> None:
        """Add the edges of a function."""
        for edge in flow.split_pairs:
            self.edges[edge] = NEW
        restless = {n for n in flow.calls if self._first[self._calls[n]] in upset}
        restless |= {at for at, _ in flow.split_pairs} | flow.yields
        if restless or self.entries or self.yields:
            restless |= self._gates & flow.graph.after.keys()
        for point, (start, region, before) in flow.regions.items():
            if not region.isdisjoint(restless):
                self.saves.setdefault(start, []).append(point)
                self.edges |= {(at, point): point for at in before}

    def _affected(self, upset: set[str]) -> frozenset[int]:
        """Return the blocks reachable after a divergence, up to the reconvergence."""
        found: set[int] = set()
        todo: list[tuple[int, int]] = [(to, at) for (at, to), what in self.edges.items()
                                       if what == NEW]  # fmt: skip
        todo += [(self._blocks[call].block.follow, call) for call, entry in self._calls.items()
                 if self._first[entry] in upset]  # fmt: skip
        todo += [(head, -1) for head in self.yields]
        for target, source in todo:
            name = self._blocks[target].block.function.name
            flow, reached, ways = self._flows[name], {target}, [target]
            while ways:
                at = ways.pop()
                if at in flow.regions and source in flow.regions[at][1]:
                    continue
                found.add(at)
                if at in self._calls:
                    found |= self._flows[self._first[self._calls[at]]].graph.after.keys()
                more = set(flow.graph.after.get(at, ())) - reached
                reached |= more
                ways += more
        return frozenset(found)


class _Flow:
    """Control flow of one function.

    Attributes:
        points: Its convergence points.
        first: Its first block.
        calls: Blocks that call.
        exits: Blocks that return.
        regions: For each point the first block of its region, the region, and its predecessors.
        split_pairs: Edges on which lanes of a warp arrive at different times without converging.
        yields: Heads of loops that wait for writes of others.
    """

    def __init__(self, blocks: list[CompiledBlock], polls: set[int]) -> None:
        after = {b.number: [n for n in successors(b.block) if n >= 0] for b in blocks}
        self.first = blocks[0].number
        self.graph = graph = Graph(self.first, after)
        self.calls = [
            b.number for b in blocks if b.terminator_kind == "call" and b.number in graph.after
        ]
        reached = graph.after.keys()
        self.exits = [
            b.number for b in blocks if b.terminator_kind == "return" and b.number in reached
        ]
        self.points, heads = points(graph)
        loops = graph.loops
        self.regions: dict[int, tuple[int, set[int], list[int]]] = {}
        self.split_pairs: list[tuple[int, int]] = []
        for to, before in graph.before.items():
            body = loops.get(to, set())
            ahead = [at for at in before if at not in body]
            if to in self.points and to != graph.entry:  # to the entry lead back edges alone
                start = graph.dominators[to]
                while start != graph.entry and any(
                    start in loop and to not in loop for loop in loops.values()
                ):
                    start = graph.dominators[start]
                self.regions[to] = start, graph.region(to, start), ahead
                continue
            if to in heads:
                self.regions[to] = to, body, [at for at in before if at in body]
            for at in ahead:
                leaves = any(at in loop and to not in loop for loop in loops.values())
                if len(ahead) > 1 or leaves:
                    self.split_pairs.append((at, to))
        self.yields = {head for head, body in loops.items() if _waits(blocks, body, polls)}


def _waits(blocks: Iterable[CompiledBlock], body: set[int], polls: set[int]) -> bool:
    """Whether an exit of a loop depends on a value that the loop polls."""
    inside = [b for b in blocks if b.number in body]
    instructions = [ins for b in inside for ins in b.block.instructions]
    if not any(id(ins) in polls for ins in instructions):
        return False
    needed = {
        name
        for b in inside
        if b.block.end is not None and set(successors(b.block)) - body
        for name in roles(b.block.end).reads
    }
    size = -1
    while size != len(needed):
        size = len(needed)
        for ins in instructions:
            if not needed.isdisjoint(roles(ins).writes):
                if id(ins) in polls:
                    return True
                needed.update(roles(ins).reads)
    return False
