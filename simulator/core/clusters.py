"""Clusters: grouping of a grid's blocks (PTX ISA, "Cluster of Cooperative Thread Arrays")."""

import functools
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, int, int]
"""Extents or coordinates, x first."""
Numbers = NDArray[Any]
"""A number a block."""
_Number = TypeVar("_Number", int, Numbers)


def coordinates(number: _Number, shape: Shape) -> tuple[_Number, _Number, _Number]:
    """Return the coordinates of linear numbers."""
    x, y, _ = shape
    return number % x, number // x % y, number // (x * y)


def linear(at: tuple[_Number, _Number, _Number], shape: Shape) -> _Number:
    """Return the linear numbers of coordinates."""
    x, y, _ = shape
    number: _Number = at[0] + at[1] * x + at[2] * (x * y)
    return number


def blocks_of(first: int, last: int, grid: Shape, cluster: Shape) -> Numbers:
    """Return the block numbers of a range of clusters, ascending, int64."""
    size = cluster[0] * cluster[1] * cluster[2]
    if size == 1:
        return np.arange(first, last, dtype=np.int64)
    number, rank = np.divmod(np.arange(first * size, last * size, dtype=np.int64), size)
    of = _clusters(grid, cluster)
    begins, inside = coordinates(number, of), coordinates(rank, cluster)
    x, y, z = (b * n + i for b, n, i in zip(begins, cluster, inside, strict=True))
    numbers: Numbers = np.sort(linear((x, y, z), grid))
    return numbers


def _clusters(grid: Shape, cluster: Shape) -> Shape:
    (x, y, z), (of_x, of_y, of_z) = grid, cluster
    return x // of_x, y // of_y, z // of_z


class Clusters:
    """Clusters of some blocks.

    Attributes:
        size: Blocks of a cluster.
        rank: Rank of each block in its cluster, ``%cluster_ctarank``, int64 ``(blocks,)``.
        number: Number of each block's cluster in the grid, int64 ``(blocks,)``.
        columns: Columns of the blocks of each block's cluster, by rank, int64 ``(blocks, size)``.
    """

    def __init__(self, grid: Shape, cluster: Shape, blocks: Numbers) -> None:
        self.size = cluster[0] * cluster[1] * cluster[2]
        self.grid, self.cluster, self._blocks = grid, cluster, blocks

    @functools.cached_property
    def rank(self) -> Numbers:
        """Number of each block in its cluster, ``%cluster_ctarank``, int64 ``(blocks,)``."""
        x, y, z = coordinates(self._blocks, self.grid)
        of_x, of_y, of_z = self.cluster
        return linear((x % of_x, y % of_y, z % of_z), self.cluster)

    @functools.cached_property
    def number(self) -> Numbers:
        """Number of each block's cluster in the grid, int64 ``(blocks,)``."""
        return self.of(self._blocks)

    @functools.cached_property
    def columns(self) -> Numbers:
        """Columns of the blocks of each block's cluster, by rank, int64 ``(blocks, size)``."""
        if self.size == 1:
            return np.arange(len(self._blocks))[:, None]
        order = np.lexsort((self.rank, self.number)).reshape(-1, self.size)
        columns = np.empty((len(self._blocks), self.size), np.int64)
        columns[order] = order[:, None, :]
        return columns

    def of(self, blocks: _Number) -> _Number:
        """Return the cluster numbers of blocks."""
        x, y, z = coordinates(blocks, self.grid)
        of_x, of_y, of_z = self.cluster
        return linear((x // of_x, y // of_y, z // of_z), _clusters(self.grid, self.cluster))

    def together(self, one: _Number, other: _Number) -> Any:
        """Whether pairs of blocks are in one cluster."""
        return self.size > 1 and self.of(one) == self.of(other)
