"""``tilescope.check``: both builds of a kernel checked in one call, for notebooks and scripts."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kernels import Kernel
from simulator.gpus.table import find

from ..cli.target import Target
from .checker import Checker, Verdict
from .fix_search import search
from .launcher import Launcher


def check(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    shared_bytes: int = 0,
    *,
    symbols: Mapping[str, Any] | None = None,
    schedule: str | int = "lockstep",
    checks: str | Collection[str] = "all",
    gpu: str = "h200",
    fixes: bool = False,
    **how: Any,
) -> Verdict:
    """Check a launch in the device build and, if there is a source, in the source build.

    Args:
        kernel: The kernel.
        grid: Grid extents in blocks, one to three numbers, x first.
        block: Block extents in threads, one to three numbers, x first.
        args: As for ``launch``; arrays are not modified.
        shared_bytes: Dynamic shared memory of a block, in bytes.
        symbols: Contents of module variables; not modified.
        schedule: As for ``launch``.
        checks: As for ``launch``.
        gpu: GPU whose registers and shared memory a block must fit.
        fixes: Whether to search for verified fixes, which takes more runs.
        how: Further arguments of ``launch``: ``cooperative``, ``cluster``, ``stack_bytes`` and
            ``heap_bytes``.

    Raises:
        TypeError, ValueError: An argument does not fit the kernel.
        LaunchError: The launch is impossible.
    """
    target = Target(
        kernel.name, kernel, _extents(grid), _extents(block), [*args], shared_bytes,
        symbols=dict(symbols or {}), how=how,
    )  # fmt: skip
    launcher = Launcher(target, schedule, checks, quiet=True, gpu=find(gpu))
    checker = Checker(launcher)
    verdict = checker.find(("device",) if kernel.origin is None else ("device", "source"))
    if fixes:
        search(checker, verdict, None, lambda: False)
    return verdict


def _extents(extents: int | Sequence[int]) -> tuple[int, ...]:
    return (extents,) if isinstance(extents, int) else tuple(extents)
