"""Validation of a launch's cluster shape, as CUDA does it."""

import math
from collections.abc import Sequence

from ..errors import LaunchError
from ..ptx.module import Function
from .convert import Dim3, dim3, times

MAX_BLOCKS = 8
"""Blocks of a cluster that every GPU with clusters can run (CUDA C++ Programming Guide, "Thread
Block Clusters"); more have to be allowed function by function, and depend on the GPU."""
ONE: Dim3 = (1, 1, 1)


def check_cluster(cluster: Dim3, grid: Dim3) -> None:
    """Check that a GPU accepts a cluster.

    Raises:
        LaunchError: The cluster has too many blocks, or the grid is no multiple of it.
    """
    blocks = math.prod(cluster)
    if blocks > MAX_BLOCKS:
        raise LaunchError(
            f"{blocks} blocks in a cluster of {times(cluster)}; a GPU allows {MAX_BLOCKS}, and "
            "more only where a program asks for what is not portable"
        )
    if any(n % of for n, of in zip(grid, cluster, strict=True)):
        raise LaunchError(
            f"a grid of {times(grid)} is no multiple of its clusters of {times(cluster)}"
        )


def cluster_shape(
    asked: int | Sequence[int] | None, grid: Dim3, entry: Function
) -> tuple[Dim3, bool]:
    """Return the cluster shape of a launch, and whether launch or kernel specify one.

    The rules are in PTX ISA, "Cluster Dimension Directives". ``asked``: one to three numbers, x
    first.

    Raises:
        LaunchError: Launch and kernel contradict each other, or no GPU runs the cluster.
    """
    required = dim3(entry.required_cluster, "cluster") if entry.required_cluster else None
    given = None if asked is None else dim3(asked, "cluster")
    if given is None and required is None:
        if entry.explicit_cluster:
            raise LaunchError(
                "the kernel is compiled for clusters whose shape the launch has to say: cluster="
            )
        return ONE, False
    if given and required and given != required:
        raise LaunchError(
            f"the kernel requires a cluster of {times(required)} (.reqnctapercluster, "
            f"__cluster_dims__), not {times(given)}"
        )
    found = given or required or ONE
    check_cluster(found, grid)
    if entry.max_cluster and math.prod(found) > entry.max_cluster:
        raise LaunchError(
            f"{math.prod(found)} blocks in a cluster, but the kernel is compiled for "
            f"{entry.max_cluster} at most (.maxclusterrank)"
        )
    return found, True
