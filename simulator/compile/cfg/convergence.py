"""Where the lanes of a warp run together again: convergence points, as ``ptxas -O0`` places them.

From Volta on lanes of a warp that have gone different ways come together only where the compiler
has put a convergence barrier (``BSSY``, ``BSYNC``), and a lane that leaves the region in front of
one by another way takes no part in it (``BREAK``). Where the compiler puts them is written down
nowhere. The rule here was found by assembling 2,100 random control-flow graphs with ptxas 13.0 at
``-O0`` and reading the machine code; ``tests/fuzz`` (net ``convergence``) holds it to ptxas anew.

- The immediate post-dominator of a branch is a convergence point.
- Inside a loop, so is what would be one if the edges that leave the loop were not there.
- Behind a loop with a branch at its end, the block that this branch alone leads to is one if all
  other edges out of the loop lead to one block.
- A block where ways meet is one if all edges out of the region in front of it, from its immediate
  dominator on, lead to one other block; of two such blocks with the same dominator, the outer one.
- Of several blocks at which a function ends, one counts; ways to the others are left out.

A loop whose exit depends on what it has read by an atomic operation or a strong load begins with
``YIELD`` there: a lane that waits at a convergence barrier is let go when others of its warp come
to such a loop's head (an H200 counts so: ``docs/counters.md``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

_END = -1
"""The node behind all blocks at which a function ends."""


class Graph:
    """Control-flow graph with one entry.

    Attributes:
        entry: The entry node.
        after: Successors of each reachable node.
        before: Predecessors of each reachable node.
    """

    def __init__(self, entry: int, after: Mapping[int, Iterable[int]]) -> None:
        self.entry = entry
        reached, todo = {entry}, [entry]
        while todo:
            fresh = set(after[todo.pop()]) - reached
            reached |= fresh
            todo += fresh
        self.after = {n: tuple(dict.fromkeys(after[n])) for n in after if n in reached}
        self.before: dict[int, list[int]] = {n: [] for n in self.after}
        for at, ways in self.after.items():
            for to in ways:
                self.before[to].append(at)

    @functools.cached_property
    def dominators(self) -> dict[int, int]:
        """The immediate dominator of each node but the entry.

        Source: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
        """
        order, done, stack = [], {self.entry}, [(self.entry, iter(self.after[self.entry]))]
        while stack:
            at, rest = stack[-1]
            to = next((n for n in rest if n not in done), None)
            if to is None:
                order.append(at)
                stack.pop()
            else:
                done.add(to)
                stack.append((to, iter(self.after[to])))
        place = {n: i for i, n in enumerate(order)}
        above = {self.entry: self.entry}
        changed = True
        while changed:
            changed = False
            for at in order[-2::-1]:
                new = -1
                for other in self.before[at]:
                    if other in above:
                        if new < 0:
                            new = other
                        while new != other:
                            while place[new] < place[other]:
                                new = above[new]
                            while place[other] < place[new]:
                                other = above[other]
                if above.get(at) != new:
                    above[at] = new
                    changed = True
        del above[self.entry]
        return above

    def dominates(self, one: int, other: int) -> bool:
        """Whether every path from the entry to ``other`` passes ``one``."""
        while other != one and other != self.entry:
            other = self.dominators[other]
        return other == one

    @functools.cached_property
    def loops(self) -> dict[int, set[int]]:
        """Natural loops, by their heads."""
        found: dict[int, set[int]] = {}
        for at, ways in self.after.items():
            for head in ways:
                if not self.dominates(head, at):
                    continue
                body, todo = found.setdefault(head, {head}), [at]
                while todo:
                    if (node := todo.pop()) not in body:
                        body.add(node)
                        todo += self.before[node]
        return found

    def region(self, at: int, start: int) -> set[int]:
        """Return the nodes on paths from ``start``, which dominates ``at``, without ``at``."""
        found, todo = {start}, list(self.before[at])
        while todo:
            node = todo.pop()
            if node not in found and node != at:
                found.add(node)
                todo += self.before[node]
        return found

    def leaves(self, some: set[int]) -> set[int]:
        """Return the successors of a set outside of it."""
        return {to for at in some for to in self.after.get(at, ())} - some

    def post_dominators(self) -> dict[int, int]:
        """Return the immediate post-dominator of each branch that has one."""
        back: dict[int, list[int]] = {n: list(before) for n, before in self.before.items()}
        back[_END] = [n for n, ways in self.after.items() if not ways]
        above = Graph(_END, back).dominators
        branches = [n for n, ways in self.after.items() if len(ways) > 1]
        return {n: to for n in branches if (to := above.get(n, _END)) != _END}


def points(graph: Graph) -> tuple[set[int], set[int]]:
    """Return the convergence points of a function, and the loop heads where iterations converge.

    The latter are no points for lanes that enter the loop.
    """
    graph = _one_end(graph)
    if len(graph.after) < 2:
        return set(), set()
    after = graph.post_dominators()
    certain = set(after.values())
    inner, heads = _in_loops(graph, after)
    extra = inner - certain
    taken = [(graph.dominators[at], graph.region(at, graph.dominators[at])) for at in inner]
    for at, start, region in sorted(_candidates(graph, certain | extra), key=_outer_first):
        if any(at in other and start == begins for begins, other in taken):
            continue
        taken.append((start, region))
        extra.add(at)
        within = {n: [to for to in graph.after[n] if to in region or to == at] for n in region}
        extra |= set(Graph(start, within | {at: []}).post_dominators().values()) - certain
    return certain | extra, heads


def _outer_first(candidate: tuple[int, int, set[int]]) -> tuple[int, int]:
    return -len(candidate[2]), candidate[0]


def _one_end(graph: Graph) -> Graph:
    """Return the graph with paths to the last exit only."""
    exits = [n for n, ways in graph.after.items() if not ways]
    if len(exits) < 2:
        return graph
    end = max(exits, key=lambda n: (max(graph.before[n], default=-1), len(graph.before[n])))
    leads, todo = {end}, [end]
    while todo:
        more = set(graph.before[todo.pop()]) - leads
        leads |= more
        todo += more
    if graph.entry not in leads:
        return graph
    ways = {n: [to for to in graph.after[n] if to in leads] for n in graph.after if n in leads}
    return Graph(graph.entry, ways)


def _in_loops(graph: Graph, after: Mapping[int, int]) -> tuple[set[int], set[int]]:
    """Return post-dominators that exist only without loop exits; heads separately.

    Args:
        graph: The function.
        after: Immediate post-dominators of its branches.
    """
    found: set[int] = set()
    heads: set[int] = set()
    again = max(graph.after) + 1  # stands for the head, where the next round begins
    for head, body in graph.loops.items():
        ways = {
            n: [again if to == head else to for to in graph.after[n] if to in body] for n in body
        }
        for at, to in Graph(head, ways | {again: []}).post_dominators().items():
            if to == again:
                heads.add(head)
            elif after.get(at) != to:
                found.add(to)
    return found, heads


def _candidates(graph: Graph, known: set[int]) -> list[tuple[int, int, set[int]]]:
    """Return further candidates for convergence points, with region and start of each."""
    found = []
    loops = graph.loops
    for at, before in graph.before.items():
        if at in known or at == graph.entry:
            continue
        before = [n for n in before if at not in loops or n not in loops[at]]
        if len(before) == 1:
            heads = [h for h in graph.after[before[0]] if h in loops and before[0] in loops[h]]
            heads = [h for h in heads if at not in loops[h]]
            if not heads:
                continue
            start, region = heads[0], loops[heads[0]]
            if len(graph.leaves(region) - {at}) <= 1:
                found.append((at, start, region))
            continue
        if at in loops or any(
            at not in body and not body.isdisjoint(before) for body in loops.values()
        ):
            continue
        start = graph.dominators[at]
        region = graph.region(at, start)
        others = graph.leaves(region) - {at}
        if len(others) == 1 and _loops_fit(graph, region, others):
            found.append((at, start, region))
    return found


def _loops_fit(graph: Graph, region: set[int], others: set[int]) -> bool:
    """Whether the exiting loops of a region have one other exit, with one path to it."""
    for body in graph.loops.values():
        if body <= region and not others.isdisjoint(graph.leaves(body)):
            on = graph.leaves(body) - others
            if len(on) != 1 or len(graph.before[min(on)]) != 1:
                return False
    return True
