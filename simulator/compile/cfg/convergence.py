"""Where the lanes of a warp run together again: convergence points, as ``ptxas -O0`` places them.

From Volta on lanes of a warp that have gone different ways come together only where the compiler
has put a convergence barrier (``BSSY``, ``BSYNC``), and a lane that leaves the region in front of
one by another way takes no part in it (``BREAK``). Where the compiler puts them is written down
nowhere. The rule here was found by assembling 4,000 random control-flow graphs with ptxas 13.0 at
``-O0`` and reading the machine code; ``tests/fuzz`` (net ``convergence``) holds it to ptxas anew.

- The immediate post-dominator of a branch is a convergence point.
- Inside a loop, so is what would be one if the edges that leave the loop were not there.
- Behind a loop with a branch at its end, the block that this branch alone leads to is one if all
  other edges out of the loop lead to one block.
- A block where ways meet is one if all edges out of the region in front of it, from its immediate
  dominator on, lead to one other block, and none of them to a convergence point found in this way;
  of two such blocks with the same dominator, the outer one; else the first in the text.
- An edge leads on to where all blocks behind it lead that are reached through it alone (those of a
  ``return`` with statements of its own), but never past a convergence point.
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

    @functools.cached_property
    def onward(self) -> dict[int, int]:
        """The one node behind all nodes that a node dominates; without one, the node itself.

        Source: dominance frontiers as of Cooper, Harvey and Kennedy.
        """
        frontiers: dict[int, set[int]] = {n: set() for n in self.after}
        for node, before in self.before.items():
            for at in before:
                above: int | None = at
                while above is not None and above != self.dominators.get(node):
                    frontiers[above].add(node)
                    above = self.dominators.get(above)
        ways = {n: found - {n} for n, found in frontiers.items()}
        return {n: ways[n].pop() if len(ways[n]) == 1 else n for n in ways}

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
    taken = [(graph.dominators[at], graph.region(at, graph.dominators[at])) for at in inner]
    meet = _OtherWays(graph, certain | inner)
    candidates = sorted(_candidates(graph, certain | inner), key=lambda candidate: candidate[0])
    for at, start, region in candidates:
        if any(at in other and start == begins for begins, other in taken):
            continue
        outer = [other for other in candidates if at in other[2] and start == other[1]]
        if any(meet.at_one(*other) for other in outer) or not meet.at_one(at, start, region):
            continue
        taken.append((start, region))
        meet.found.add(at)
    return certain | inner | meet.found, heads


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
    """Return blocks behind loops and blocks where ways meet, with region and start of each."""
    found = []
    loops = graph.loops
    for at, before in graph.before.items():
        if at in known or at == graph.entry:
            continue
        before = [n for n in before if at not in loops or n not in loops[at]]
        if len(before) == 1:
            heads = [h for h in graph.after[before[0]] if h in loops and before[0] in loops[h]]
            heads = [h for h in heads if at not in loops[h]]
            if heads:
                found.append((at, heads[0], loops[heads[0]]))
        elif at not in loops and all(
            at in body or body.isdisjoint(before) for body in loops.values()
        ):
            start = graph.dominators[at]
            found.append((at, start, graph.region(at, start)))
    return found


class _OtherWays:
    """Decides whether the edges out of the region in front of a candidate lead to one node.

    Args:
        graph: The function.
        known: Convergence points by post-dominance.

    Attributes:
        found: Convergence points that are no post-dominators, so far.
    """

    def __init__(self, graph: Graph, known: set[int]) -> None:
        self.graph, self.known = graph, known
        self.found: set[int] = set()

    def at_one(self, at: int, start: int, region: set[int]) -> bool:
        """Whether all edges out of a region, but those to ``at``, lead to one node.

        Behind a loop there need be no such edge. Elsewhere the loops of the region that have one
        must have one other exit, with one path to it.

        Args:
            at: Candidate for a convergence point.
            start: Its immediate dominator, or the loop's head.
            region: The nodes in front of it.
        """
        if at in self.found:
            return True
        leaves = self.graph.leaves(region) - {at}
        others = {self._onward(node, at) for node in leaves} - {at}
        if region in self.graph.loops.values():
            return len(others) <= 1
        if len(others) != 1 or (leaves | others) & self.found:
            return False
        return all(
            self._loop_fits(body, at, others)
            for body in self.graph.loops.values()
            if body <= region
        )

    def _onward(self, node: int, at: int) -> int:
        if node in self.known or node in self.found or self.graph.dominates(node, at):
            return node
        return self.graph.onward[node]

    def _loop_fits(self, body: set[int], at: int, others: set[int]) -> bool:
        ways = self.graph.leaves(body)
        on = {node for node in ways if self._onward(node, at) not in others}
        if len(on) == len(ways):
            return len(on) < 2 or not any(self._reaches(node, others, at) for node in ways)
        return len(on) == 1 and len(self.graph.before[on.pop()]) == 1

    def _reaches(self, node: int, targets: set[int], without: int) -> bool:
        """Whether a path from a node to one of ``targets`` avoids ``without``."""
        reached, todo = {node, without}, [node]
        while todo:
            if (at := todo.pop()) in targets:
                return True
            fresh = set(self.graph.after[at]) - reached
            reached |= fresh
            todo += fresh
        return False
