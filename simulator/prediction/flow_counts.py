"""Execution counts of machine-code blocks, from the counts of some instructions.

Inflow equals outflow for each block, and all copies of a load together ran as often as the PTX's
load: non-negative least squares over the flow along each edge (C. Lawson, R. Hanson: "Solving Least
Squares Problems", 1974, chapter 23).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Edges = Sequence[tuple[int, int]]
"""From which piece control passes to which; to -1 at the end. Piece 0 is the first."""
Anchor = tuple[dict[int, float], float, bool]
"""Copies of an instruction by piece, how often it ran in all, and if whenever its piece did."""
_UNSURE = 0.1
"""Weight of a predicated instruction, which may be off where its piece runs."""
_PRICE = 1e-6
"""Weight of the wish for few instructions, which settles what the rest leaves open: an unrolled
loop and what is left over from it could share the rounds in many ways."""
_FORBIDDEN = 1e4


def flows(
    edges: Edges,
    sizes: Sequence[int],
    anchors: Sequence[Anchor],
    entering: float,
    forbidden: Collection[int] = (),
) -> Vector:
    """Return the number of executions of each edge.

    Args:
        edges: Control-flow edges: see ``Edges``.
        sizes: Number of instructions of each block.
        anchors: Known counts.
        entering: Number of executions of the whole code.
        forbidden: Blocks that cannot have run.
    """
    pieces, unit = len(sizes), max(entering, 1e-9)
    leaves, enters = np.zeros((2, pieces, len(edges)))
    for number, (here, there) in enumerate(edges):
        leaves[here, number] = 1
        if there >= 0:
            enters[there, number] = 1
    merged: dict[tuple[tuple[int, float], ...], list[tuple[float, float]]] = {}
    for copies, times, sure in anchors:
        each = min(copies.values())
        key = tuple(sorted((piece, count / each) for piece, count in copies.items()))
        merged.setdefault(key, []).append((times / each, 1.0 if sure else _UNSURE))
    scale = np.full(pieces, unit)
    measured = []
    for pattern, known in merged.items():
        weight = max(w for _, w in known)
        times = sum(t * w for t, w in known) / sum(w for _, w in known)
        measured.append((pattern, times, weight))
        for piece, count in pattern:
            scale[piece] = max(scale[piece], times / count)
    rows, wanted = [], []
    for pattern, times, weight in measured:
        # One that is wrong about a busy piece (a copy that does something else) weighs no more.
        weight /= max(times, *(scale[piece] for piece, _ in pattern))
        rows.append(sum(count * leaves[piece] for piece, count in pattern) * weight)
        wanted.append(times * weight)
    for piece in range(pieces):
        rows.append((leaves[piece] - enters[piece]) / scale[piece])
        wanted.append(unit / scale[piece] if piece == 0 else 0.0)
    magnitude = np.array([scale[here] for here, _ in edges])
    price = np.array(sizes, float) @ leaves * magnitude
    price *= _PRICE / max(float(price.max()), 1e-9)
    closed = [here in forbidden or there in forbidden for here, there in edges]
    price[closed] = _FORBIDDEN
    matrix = np.array(rows) * magnitude
    found: Vector = _not_negative(matrix, np.array(wanted), price) * magnitude
    return found


def _not_negative(matrix: Vector, wanted: Vector, price: Vector) -> Vector:
    """Minimise ``|matrix x - wanted|^2 / 2 + price x`` over ``x >= 0``."""
    square = matrix.T @ matrix
    square[np.diag_indices_from(square)] += 1e-9
    target = matrix.T @ wanted - price
    x, used = np.zeros(len(target)), np.zeros(len(target), bool)
    inverse = np.zeros_like(square)  # of what is used of the square
    for _ in range(3 * len(target)):
        slope = np.where(used, -np.inf, target - _times(square, x))
        best = int(np.argmax(slope))
        if slope[best] <= 1e-10:
            break
        into = _times(inverse, square[best])
        rest = square[best, best] - float((square[best] * into).sum())
        into[best] = -1.0
        inverse += into[:, None] * (into / rest)
        used[best] = True
        while True:
            trial = _times(inverse, target)
            for _ in range(2):
                trial += _times(inverse, target - _times(square, trial))
            below = np.flatnonzero(used & (trial <= 0))
            if not len(below):
                x = trial
                break
            part = float((x[below] / np.maximum(x[below] - trial[below], 1e-300)).min())
            x = x + part * (trial - x)
            for gone in below[x[below] <= 1e-12].tolist():
                used[gone] = False
                inverse -= inverse[:, gone, None] * (inverse[gone] / inverse[gone, gone])
                inverse[gone], inverse[:, gone] = 0.0, 0.0
            x[~used] = 0.0
            if not used.any():
                break
    return x


def _times(matrix: Vector, vector: Vector) -> Vector:
    """``matrix @ vector``, without the threads of BLAS, which cost far more than they gain here."""
    found: Vector = np.einsum("ij,j->i", matrix, vector)
    return found
