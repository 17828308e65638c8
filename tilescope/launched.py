"""``--launch N``: the Nth launch of a file's host code, and what the command line adds to it."""

import re
from collections.abc import Sequence
from dataclasses import replace

from kernels.host_launches import HostLaunch
from kernels.signatures import parted

from .entries import names_a_kernel
from .failure import UserError
from .host_program import command, host_launch
from .request import Request


def with_launch(request: Request, whole: bool = True) -> Request:
    """A request for what its launch does; what is typed goes first, and stands for what is unknown.

    ``whole``: whether shapes and arguments are wanted, or the kernel alone.

    Raises:
        UserError: There is no such launch, it is of another kernel, or not all of it is known.
    """
    launch = host_launch(request.target, request.launch, request.options)
    words = [word for word in request.words if not word.startswith("sym:")]
    symbols = [word for word in request.words if word.startswith("sym:")]
    entry = launch.kernel
    if words and names_a_kernel(words[0], request.target):
        if _plain(words[0]) != _plain(entry):
            raise UserError(f"--launch {request.launch} is of {entry}, not of {words[0]}")
        entry = words.pop(0)
    if not whole:
        return replace(request, words=(entry,))
    args = _arguments(request.launch, launch, words)
    grid, block = (
        given or (",".join(map(str, known)) if known else None)
        for given, known in ((request.grid, launch.grid), (request.block, launch.block))
    )
    shared = 0 if request.no_shared else request.shared or launch.shared_bytes
    unknown = [
        name for name, value in (("--grid", grid), ("--block", block), ("--shared", shared))
        if value is None
    ]  # fmt: skip
    left = args.count(None)
    unknown += [f"{left} argument{'s' * (left > 1)}"] if left else []
    if unknown:
        raise UserError(
            f"--launch {request.launch}: not all of it is known (?); give {', '.join(unknown)}: "
            f"tilescope run {command(request.target, launch, request.options)}"
        )
    kept = [arg for arg in args if arg is not None]
    return replace(
        request, words=(entry, *kept, *symbols), grid=grid, block=block, shared=shared or 0
    )


def _arguments(number: int, launch: HostLaunch, words: Sequence[str]) -> list[str | None]:
    """The launch's arguments, with the words for all of them or for those that are unknown."""
    unknown, every = launch.args.count(None), len(launch.args)
    if not words or len(words) == every:
        return [*(words or launch.args)]
    if len(words) != unknown:
        counts = f"{every}, or the {unknown} that are unknown" if unknown else f"none, or {every}"
        raise UserError(f"--launch {number} takes {counts}, as arguments, not {len(words)}")
    given = iter(words)
    return [next(given) if arg is None else arg for arg in launch.args]


def _plain(entry: str) -> str:
    """A kernel's name without namespaces, template arguments and types."""
    return re.sub(r"<.*", "", parted(entry)[0], flags=re.S).split("::")[-1].strip()
