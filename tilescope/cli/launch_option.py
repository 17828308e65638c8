"""``--launch N``: the Nth launch of a file's host code, completed by the command line."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kernels.host.host_launches import HostLaunch
from kernels.source_access import plain_name, source_text

from ..text.launches import command, error_text, place, spelled_options, wanted
from ..text.layout import fitted
from .errors import UserError
from .host_program import headers_of, host_launch, kernels_of, plain_entry, whole_program
from .kernel_names import names_a_kernel
from .request import Request


def with_launch(request: Request, whole: bool = True) -> Request:
    """Return a request with a launch's shape and arguments; explicit options take precedence.

    ``whole``: whether shapes and arguments are needed, or only the kernel.

    Raises:
        UserError: There is no such launch, it launches another kernel, or parts are unknown.
    """
    launch = host_launch(request.target, request.launch, request.options)
    words = [word for word in request.words if not word.startswith("sym:")]
    symbols = [word for word in request.words if word.startswith("sym:")]
    entry = launch.kernel
    named = bool(words) and names_a_kernel(words[0], request.target, request.options)
    if named:
        if entry != "?" and plain_entry(words[0]) != plain_entry(entry):
            raise UserError(f"--launch {request.launch} is of {entry}, not of {words[0]}")
        entry = words.pop(0)
    missing = ["kernel"] if launch.lacking and not named else []
    if not whole:
        if missing:
            raise _lacking(request, launch, missing, [], ())
        return replace(request, words=(entry,))
    args = _arguments(request.launch, launch, words)
    grid, block = (
        given or (",".join(map(str, known)) if known else None)
        for given, known in ((request.grid, launch.grid), (request.block, launch.block))
    )
    shared = 0 if request.no_shared else request.shared or launch.shared_bytes
    shapes = (("--grid", grid), ("--block", block), ("--shared", shared))
    missing += [option for option, value in shapes if value is None]
    unknown = [number for number, arg in enumerate(args) if arg is None]
    if missing or unknown:
        raise _lacking(request, launch, missing, unknown, words)
    known_args = [arg for arg in args if arg is not None]
    return replace(
        request, words=(entry, *known_args, *symbols), grid=grid, block=block, shared=shared or 0,
        cooperative=request.cooperative or launch.cooperative,
    )  # fmt: skip


def _lacking(
    request: Request, launch: HostLaunch, missing: Sequence[str], unknown: Sequence[int],
    words: Sequence[str],
) -> UserError:  # fmt: skip
    """Return the error for a partly unknown launch: its missing parts, and an example."""
    sources = {request.target: source_text(Path(request.target))}
    sources |= headers_of(request.target, request.options)
    lines, examples = wanted(launch, missing, unknown, sources)
    number = str(request.launch)
    options = spelled_options(request.options)
    typed = [request.target, "--launch", number, *words, *examples, *options]
    count = len(unknown)
    parts = ["its kernel" if part == "kernel" else part for part in missing]
    if "kernel" in missing:
        known = kernels_of(request.target, request.options)
        lines.append(fitted(f"kernels: {plain_name(', '.join(known) or 'none found')}"))
    parts += [f"{count} argument{'s' * (count != 1)}"] * bool(count)
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    where = place(launch.file, launch.line)
    head = error_text(f"launch {number}, {where}: the host code does not say {listed}; give")
    whole = whole_program(request.target)
    return UserError("\n".join([head, *lines, "as in", *command(typed, "  "), *whole]))


def _arguments(number: int, launch: HostLaunch, words: Sequence[str]) -> list[str | None]:
    """Return the launch's arguments, with words for all or for the unknown ones."""
    unknown, every = launch.args.count(None), len(launch.args)
    if not words or len(words) == every:
        return [*(words or launch.args)]
    if len(words) != unknown:
        counts = f"{every}, or the {unknown} that are unknown" if unknown else f"none, or {every}"
        counts = str(every) if unknown == every else counts
        shapes = {"--grid": launch.grid, "--block": launch.block, "--shared": launch.shared_bytes}
        missing_shape = " and ".join(option for option, known in shapes.items() if known is None)
        missing_shape = f"; give {missing_shape} apart" if missing_shape else ""
        raise UserError(
            f"--launch {number} takes {counts}, as arguments, not {len(words)}{missing_shape}"
        )
    given = iter(words)
    return [next(given) if arg is None else arg for arg in launch.args]
