"""Control-flow graph of a function: execution order of its blocks, and control dependence."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from ...isa.decoded import callee, roles
from .basic_blocks import EXIT, Block, successors

T = TypeVar("T")


def order_for_reconvergence(blocks: list[Block]) -> list[Block]:
    """Renumber a function's blocks so that the lowest number should run first."""
    order = run_order(blocks)
    first = blocks[0].number
    number = {first + old: first + new for new, old in enumerate(order)} | {EXIT: EXIT}
    for block in blocks:
        block.number, block.follow = number[block.number], number[block.follow]
        block.targets = tuple(number[target] for target in block.targets)
    return [blocks[old] for old in order]


def run_order(blocks: Sequence[Block]) -> list[int]:
    """Return the block order that reconverges diverged lanes soonest.

    Each block precedes its successors, and a whole loop precedes what follows it, whatever the
    compiler's layout. Lanes that leave a branch or loop early wait until all have reached the
    immediate post-dominator, where a GPU's compiler reconverges them as well. Input blocks are in
    text order; the first is the entry.
    """
    first = blocks[0].number
    after = [[n - first for n in successors(b) if n != EXIT] for b in blocks]
    loops = list(_natural(_loops(after)).values())

    def preference(at: int) -> list[int]:
        """Return the successors, last to run first: out of most loops, then latest in the text."""

        def shared(to: int) -> int:
            return sum(at in loop and to in loop for loop in loops)

        return sorted(after[at], key=lambda to: (shared(to), -_place(blocks, after, to)))

    order = _postorder(preference)[::-1]
    return order + sorted(set(range(len(blocks))) - set(order))  # blocks that nothing leads to


def _place(blocks: Sequence[Block], after: list[list[int]], at: int) -> int:
    """Return the text position of a path; a block that only jumps stands for its target."""
    for _ in blocks:
        if blocks[at].body or len(after[at]) != 1:
            break
        at = after[at][0]
    return at


def _postorder(after: Callable[[int], list[int]]) -> list[int]:
    """Return a depth-first postorder from 0.

    It is iterative, as there may be thousands of blocks in a row.
    """
    done: list[int] = []
    visited = {0}
    stack = [(0, iter(after(0)))]
    while stack:
        at, rest = stack[-1]
        to = next((n for n in rest if n not in visited), None)
        if to is None:
            done.append(at)
            stack.pop()
        else:
            visited.add(to)
            stack.append((to, iter(after(to))))
    return done


def _loops(after: list[list[int]]) -> list[tuple[int, set[int]]]:
    """Return for each back edge its head and the loop's blocks."""
    before: list[list[int]] = [[] for _ in after]
    for at, following in enumerate(after):
        for to in following:
            before[to].append(at)
    loops: list[tuple[int, set[int]]] = []
    state = [0] * len(after)  # 1: on the way here, 2: finished
    state[0] = 1
    stack = [(0, iter(after[0]))]
    while stack:
        at, rest = stack[-1]
        to = next(rest, -1)
        if to < 0:
            state[at] = 2
            stack.pop()
        elif state[to] == 0:
            state[to] = 1
            stack.append((to, iter(after[to])))
        elif state[to] == 1:
            loop, todo = {to}, [at]
            loops.append((to, loop))
            while todo:
                found = todo.pop()
                if found not in loop:
                    loop.add(found)
                    todo += before[found]
    return loops


def loops_of(blocks: Sequence[Block]) -> dict[int, set[int]]:
    """Return the natural loops of a function: head and blocks of each."""
    return _natural(_edges_back(blocks))


def _natural(loops: Iterable[tuple[int, set[int]]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for head, members in loops:
        found.setdefault(head, set()).update(members)
    return found


def single_exit_loops(blocks: Sequence[Block]) -> list[set[int]]:
    """Return loops with a single exiting block, even if they share their head.

    ``for (...) { while (!right()) {} ... }`` may be one natural loop that contains the wait.
    """
    after = {block.number: set(successors(block)) for block in blocks}
    loops = [members for _, members in _edges_back(blocks)]
    return [loop for loop in loops if sum(bool(after[n] - loop) for n in loop) == 1]


def _edges_back(blocks: Sequence[Block]) -> list[tuple[int, set[int]]]:
    first = blocks[0].number
    after = [[n - first for n in successors(b) if n != EXIT] for b in blocks]
    return [(head + first, {n + first for n in members}) for head, members in _loops(after)]


def transitive_control_dependence(blocks: Sequence[Block]) -> Callable[[int], list[set[int]]]:
    """Return a function from a block to the branches that it is transitively control-dependent on.

    Control dependence is that of Ferrante, Ottenstein and Warren (1987): a block depends on a
    branch if one successor of the branch cannot avoid the block and another can. A block also
    depends on the branches on which such a branch, or the call of its function, depends. All blocks
    of the program are given; those of a function are adjacent.

    Returns:
        A function from a block's number to the numbers of the branches, nearest first: the direct
            dependences, then those of these branches, and so on.
    """
    direct: dict[str, dict[int, set[int]]] = {}
    calls: dict[str, list[int]] = {}
    for block in blocks:
        if block.end is not None and (name := callee(block.end)):
            calls.setdefault(name, []).append(block.number)

    def nearest_first(number: int) -> list[set[int]]:
        found: list[set[int]] = []
        visited: set[int] = set()
        todo, visited = {number}, {number}
        while todo:
            next_ones: set[int] = set()
            for block in (blocks[n] for n in todo):
                function = block.function
                if function.name not in direct:
                    mine = [b for b in blocks if b.function is function]
                    direct[function.name] = control_dependence(mine)
                next_ones |= direct[function.name].get(block.number, set())
            next_ones -= visited
            visited |= next_ones
            if next_ones:
                found.append(next_ones)
            todo = set(next_ones)
            functions = {blocks[n].function.name for n in visited | {number}}
            # A branch that controls a call controls the whole function.
            of_these = {call for name in functions for call in calls.get(name, ())} - visited
            visited |= of_these
            todo |= of_these
        return found

    return nearest_first


def control_dependence(blocks: list[Block]) -> dict[int, set[int]]:
    """Return for each block the branches on which it is directly control-dependent."""
    after = {b.number: successors(b) or [EXIT] for b in blocks}
    bits = {n: 1 << i for i, n in enumerate([EXIT, *after])}
    everything = (1 << len(bits)) - 1
    inevitable = dict.fromkeys(bits, everything)  # post-dominators, as sets of bits
    inevitable[EXIT] = bits[EXIT]
    changed = True
    while changed:
        changed = False
        for n in sorted(after, reverse=True):
            common = everything
            for to in after[n]:
                common &= inevitable[to]
            common |= bits[n]
            if common != inevitable[n]:
                inevitable[n] = common
                changed = True
    made: dict[int, set[int]] = {n: set() for n in after}
    for branch, ways in after.items():
        if len(ways) < 2:
            continue
        for block in after:
            bit = bits[block]
            some = any(inevitable[to] & bit for to in ways)
            every = block != branch and inevitable[branch] & bit
            if some and not every:
                made[block].add(branch)
    return made


_Place = tuple[int, bool]
"""A block, and whether it is gone back from there to where its function was called."""


class BlockReachability:
    """Reachability between blocks, through calls and returns.

    ``passes``: whether an edge is open.
    """

    def __init__(self, blocks: Sequence[Block], passes: Callable[[Block, int], bool]) -> None:
        self.blocks, self.passes = blocks, passes
        self.entries: dict[str, int] = {}
        self.returns: dict[str, list[int]] = {}
        for block in blocks:
            self.entries.setdefault(block.function.name, block.number)
            end = block.end
            if end is not None and (called := callee(end)):
                self.returns.setdefault(called, []).append(block.follow)
        self._through: dict[str, bool] = {}
        self._steps: dict[_Place, tuple[list[_Place], bool]] = {}
        self._deciding = 0  # while it is, what comes after a call is not known yet

    def after(self, number: int) -> set[int]:
        """Return the blocks that may run after one, in its function, callees and callers."""
        found, _ = self._walk(number, up=True)
        return found

    def inside(self, function: str) -> set[int]:
        """Return the blocks that a call may run; empty for an unknown function."""
        entry = self.entries.get(function)
        return set() if entry is None else {entry} | self._walk(entry, up=False)[0]

    def _walk(self, number: int, up: bool) -> tuple[set[int], bool]:
        """Return the blocks after one, and whether its function's end is among them."""
        visited: set[_Place] = set()
        todo = [(number, up)]
        ended = False
        while todo:
            at = todo.pop()
            following, leaves = self._steps.get(at) or self._step(at)
            ended |= leaves and self.blocks[at[0]].function is self.blocks[number].function
            for to in following:
                if to not in visited:
                    visited.add(to)
                    todo.append(to)
        return {to for to, _ in visited}, ended

    def _step(self, place: _Place) -> tuple[list[_Place], bool]:
        """Return the direct successors of a place, and whether a function ends there."""
        at, climbs = place
        block = self.blocks[at]
        end = block.end
        following = [(to, climbs) for to in successors(block)]
        called = callee(end) if end is not None else ""
        leaves = called not in self.entries and end is not None and roles(end).flow.leaves
        if called in self.entries:
            if not self._passable(called):
                following = []
            following.append((self.entries[called], False))
        elif leaves and climbs:
            following += [(to, True) for to in self.returns.get(block.function.name, [])]
        step = [to for to in following if to[0] >= 0 and self.passes(block, to[0])], leaves
        if not self._deciding:
            self._steps[place] = step
        return step

    def _passable(self, function: str) -> bool:
        """Whether a call may return on open edges only."""
        if function not in self._through:
            self._through[function] = True  # also where it calls itself
            self._deciding += 1
            self._through[function] = self._walk(self.entries[function], up=False)[1]
            self._deciding -= 1
        return self._through[function]


def transitive_closure(
    start: Iterable[T], leads: Sequence[tuple[Collection[T], Iterable[T]]]
) -> set[T]:
    """Return everything reachable from a start; each pair leads from any first to all second."""
    reached, size = set(start), -1
    while size != len(reached):
        size = len(reached)
        for some, others in leads:
            if not reached.isdisjoint(some):
                reached.update(others)
    return reached
