"""Choice of the stage's layout from the recorded blocks, never from a kernel's name."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simulator.observe.trace.access_counts import ArrayMap

from .reach import BlockReach, window
from .roles import Roles

_TABLES = ("__cudart_", "__internal_")
"""How names of tables begin that functions of the toolkit read: no inputs of the user."""
MIN_ROWS = 3
"""Rewrites of a shared variable from which the page draws a row for each."""


@dataclass(frozen=True)
class BlockFacts:
    """Facts about one recorded block from which the layout is chosen.

    Attributes:
        terms: Executions of running arithmetic by its threads.
        rewrites: Barrier intervals that store computed values, by shared variable.
        tensor: Whether tensor cores multiply.
        full: Whether the recording stopped before the block finished.
    """

    reach: BlockReach
    terms: int
    rewrites: dict[int, int]
    tensor: bool = False
    full: bool = False


@dataclass(frozen=True)
class StageLayout:
    """Name of a layout with its input and output arrays; those of a product are a, b and c."""

    name: str
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    variable: int = -1


def layout_of(
    maps: dict[int, ArrayMap], roles: Roles, blocks: Sequence[BlockFacts], has_atomics: bool
) -> StageLayout:
    """Return the first layout that fits."""
    outputs = [n for n, m in maps.items() if m.writes.any()]
    inputs = [
        n
        for n, m in maps.items()
        if m.reads.any() and n not in outputs and not m.name.startswith(_TABLES)
    ]
    found = _product(maps, blocks, inputs, outputs)
    if found:
        return found
    io = tuple(inputs), tuple(outputs)
    if has_atomics:
        return StageLayout("atomics", *io)
    variable, times = _rewritten(blocks)
    if times >= MIN_ROWS:
        return StageLayout("rows", *io, variable)
    if _planes(maps, inputs, outputs):
        return StageLayout("planes", *io)
    flat = [n for n in (*inputs, *outputs) if len(maps[n].shape) < 2]
    if inputs and outputs and len(flat) == len(inputs) + len(outputs) and len(flat) <= 4:
        return StageLayout("strips", *io)
    return StageLayout("plain", *io)


def _product(
    maps: dict[int, ArrayMap], blocks: Sequence[BlockFacts], inputs: list[int], outputs: list[int]
) -> StageLayout | None:
    """Return the layout of c = a b if the shapes fit and blocks read rows of a, columns of b."""
    flat = [n for n in inputs if len(maps[n].shape) == 2]
    for c in (n for n in outputs if len(maps[n].shape) == 2):
        for a in flat:
            for b in flat:
                m, k = maps[a].shape
                fits = maps[b].shape[0] == k and maps[c].shape == (m, maps[b].shape[1])
                if a != b and fits and k > 1 and _meet(maps, blocks, a, b, c):
                    return StageLayout("product", (a, b), (c,))
    return None


def _meet(maps: dict[int, ArrayMap], blocks: Sequence[BlockFacts], a: int, b: int, c: int) -> bool:
    fits_all = False
    k = maps[a].shape[1]
    for block in blocks:
        reach = block.reach
        if a not in reach.read or b not in reach.read:
            continue
        if block.full:
            fits_all = fits_all or _walks(maps, block, a, b)
            continue
        if c not in reach.written:
            continue
        rows_read, above, out = (
            window(elements, maps[n].shape)
            for n, elements in ((a, reach.read[a]), (b, reach.read[b]), (c, reach.written[c]))
        )
        rows = out[0] <= rows_read[0] and rows_read[2] <= out[2]
        columns = out[1] <= above[1] and above[3] <= out[3]
        whole = rows_read[3] - rows_read[1] == k and above[2] - above[0] == k
        enough = block.tensor or block.terms >= k * len(reach.written[c]) * 0.9
        if not (rows and columns and whole and enough):
            return False
        fits_all = True
    return fits_all


def _walks(maps: dict[int, ArrayMap], block: BlockFacts, a: int, b: int) -> bool:
    """Return whether a block's first steps walk along rows of a and columns of b in tiles."""
    first = {
        place: next(w for w in block.reach.windows if w[1] == place and not w[2])
        for place in (a, b)
    }
    k = maps[a].shape[1]
    deep = first[a][6] - first[a][4], first[b][5] - first[b][3]
    from_edge = first[a][4] == 0 and first[b][3] == 0
    return from_edge and deep[0] == deep[1] <= k and (block.tensor or block.terms > 0)


def _rewritten(blocks: Sequence[BlockFacts]) -> tuple[int, int]:
    """Return the shared variable with most rewriting intervals, and their number."""
    counts: dict[int, int] = {}
    for block in blocks:
        for variable, times in block.rewrites.items():
            counts[variable] = max(times, counts.get(variable, 0))
    return max(counts.items(), key=lambda item: item[1], default=(-1, 0))


def _planes(maps: dict[int, ArrayMap], inputs: list[int], outputs: list[int]) -> bool:
    """Return whether an input and an output have 2 or 3 equal, permuted or similar extents."""
    for i in inputs:
        for o in outputs:
            shapes = maps[i].shape, maps[o].shape
            if min(map(len, shapes)) < 2:
                continue
            if sorted(shapes[0]) == sorted(shapes[1]):
                return True
            near = math.prod(shapes[0]) / max(1, math.prod(shapes[1]))
            if len(shapes[0]) == len(shapes[1]) and 0.5 < near < 2:
                return True
    return False
