"""``tilescope view``: run a kernel and draw what happened as one HTML file."""

import dataclasses
import math
import re
import shlex
import time
import webbrowser
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from kernels import Kernel, library
from kernels.arguments.argument_copies import copies
from kernels.library import Agreement
from simulator import Run
from simulator.fixes import find_fixes
from simulator.hazards.folding import fold_causes
from simulator.observe.trace.trace import Trace

from ..check.fix_search import Search
from ..check.outcome import simulate
from ..cli.comparison_target import beside
from ..cli.errors import UserError
from ..cli.kernel_names import is_file
from ..cli.progress import SearchBar, WaitBar
from ..cli.request import Request
from ..cli.target import Target, parse_shape, resolve, settled
from ..gpu.prediction_inputs import GPU, forecast
from ..text.findings import severities
from ..text.launches import command
from ..view import Story, hazard_blocks, page
from ..view.limits import tile_row
from ..view.record import record
from .pipelines import HOW, draw_pipeline, is_pipeline, refuse_others

_RECORDED, _HAZARDS = 64, 8
"""Blocks to record, and the most of them that hazards may add."""
_FROM_ROOT = re.compile(r"@/(?:[^,)]*/)?")
"""Absolute folders of an array's file, in an argument."""
_ONLY_HERE = ("-o", "--output", "--block-at", "--record", "--compare", "--tiles")
"""Options with a value that ``tilescope check`` has not."""
_SMALL = 8
"""Size of a library kernel up to which its inputs are small whole numbers."""
_BY_WARP = 1 << 16
"""Threads of a launch up to which one warp at a time is fast enough."""


def view_command(
    ctx: click.Context,
    request: Request,
    schedule: str | int,
    step_limit: int,
    checks: str | Collection[str],
    other: str | None,
    places: tuple[str, ...],
    output: str,
    tiles: str | None,
    film: str | None,
    show: bool,
    quiet: bool,
) -> None:
    """Run ``tilescope view``; ``tilescope.usage`` has its options."""
    path = Path(output)
    if is_pipeline(request.target):
        refuse_others(ctx, request, (*HOW, "output", "show"))
        how = {"schedule": schedule, "checks": checks, "step_limit": step_limit}
        runs = draw_pipeline(request.target, request.build, how, quiet, path)
    else:
        requests = [request] if other is None else [request, beside(request, other)]
        requests = [_small(r) for r in requests]
        targets = [_whole_numbers(resolve(r), r) for r in requests]
        if ctx.get_parameter_source("schedule") is ParameterSource.DEFAULT:
            schedule = "warps" if max(map(_threads, targets)) <= _BY_WARP else "lockstep"
        said = _said(ctx.meta["words"])
        stories = [
            _story(target, schedule, checks, step_limit, quiet, places, said) for target in targets
        ]
        for story, one in zip(stories, requests, strict=True):
            story.tiles = _tile_rows(one, tiles, step_limit) if tiles else []
        with WaitBar(f"writing {path}", quiet, hint=""):
            path.write_text(page(stories), encoding="utf-8")
        runs = [story.run for story in stories]
    if not quiet:
        click.echo(f"{path}: {path.stat().st_size / 1e6:.2f} MB, opens in any browser")
        if found := severities([one for run in runs for one in fold_causes(run.hazards)]):
            click.echo("\n".join([f"{found}, which check reports:", *_check(ctx.meta["words"])]))
    if film:
        frames = record(path.read_text(encoding="utf-8"), Path(film))
        if not quiet:
            click.echo(f"{film}: {frames} frames")
    if show:
        webbrowser.open(path.resolve().as_uri())


def _small(request: Request) -> Request:
    """Return the request with the smallest tile, for a small library kernel without ``--tile``.

    Otherwise one tile would cover the whole matrix.
    """
    if is_file(request.target) or request.size is None or request.tile is not None:
        return request
    entry = library.get(request.target)
    if not entry.tiles or max(entry.parse_size(request.size)) > _SMALL:
        return request
    return dataclasses.replace(request, tile=min(entry.tiles))


def _whole_numbers(target: Target, request: Request) -> Target:
    """Return the target; give a small library kernel inputs 1 to 5, whose sums are easy."""
    launch = target.launch
    if target.entry is None or launch is None or max(target.size, default=99) > _SMALL:
        return target
    rng = np.random.default_rng(request.seed)
    for place, array in enumerate(launch.args):
        given = place not in launch.outputs.values() and isinstance(array, np.ndarray)
        if given and array.dtype.kind == "f":
            array[...] = rng.integers(1, 6, array.shape)
    target.expected = launch.expected()
    return target


def _tile_rows(request: Request, tiles: str, step_limit: int) -> list[dict[str, Any]]:
    """Predict the launch with each tile size, for one GPU."""
    rows = []
    try:
        wanted = [int(text) for text in tiles.split(",")]
    except ValueError:
        raise UserError(f"--tiles {tiles}: whole numbers with commas between them") from None
    for tile in wanted:
        target = resolve(dataclasses.replace(request, tile=tile), reference=False)
        before, symbols = copies([target.args, target.symbols])
        found = forecast(target, before, symbols, GPU, quiet=True)
        if found.prediction is None:
            continue
        run = simulate(
            target, target.kernel, copies(before), True, schedule="lockstep", checks="none",
            step_limit=step_limit, trace=False,
        )  # fmt: skip
        rows.append(tile_row(tile, run, math.prod(target.block), found.prediction))
    return rows


def _threads(target: Target) -> int:
    return math.prod(target.grid) * math.prod(target.block)


def _said(words: Sequence[str]) -> str:
    """Return the command line without output options and ``--block-at``.

    Absolute paths are reduced to their names, because pages are published.
    """
    shown: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word in ("-o", "--output", "--block-at", "--record"):
            next(remaining, None)
        elif word not in ("--open", "-q", "--quiet") and not word.startswith(("--output=", "-o")):
            known = Path(word).is_absolute() and Path(word).exists()
            shown.append(Path(word).name if known else _FROM_ROOT.sub("@", word))
    return shlex.join(["tilescope", "view", *shown])


def _check(words: Sequence[str]) -> list[str]:
    """Return the command that checks what was drawn."""
    shown: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word in _ONLY_HERE:
            next(remaining, None)
        elif word != "--open" and not word.startswith(tuple(f"{one}=" for one in _ONLY_HERE)):
            shown.append(word)
    return command(shown, "  ", "check")


def _numbers(places: Sequence[str], grid: Sequence[int]) -> list[int]:
    """Return the linear numbers of the blocks that ``--block-at`` names."""
    extent = (*grid, 1, 1)[:3]
    found = []
    for text in places:
        place = (*parse_shape("block-at", text), 0, 0)[:3]
        if any(at >= size for at, size in zip(place, extent, strict=True)):
            shown = "x".join(map(str, extent))
            raise UserError(f"--block-at {text}: the grid has {shown} blocks, counted from 0")
        found.append(place[0] + extent[0] * (place[1] + extent[1] * place[2]))
    return found


def _story(
    target: Target, schedule: str | int, checks: str | Collection[str], step_limit: int,
    quiet: bool, places: Sequence[str], said: str,
) -> Story:  # fmt: skip
    """Launch a target with a trace, and verify a fix of its races."""
    before, symbols = copies([target.args, target.symbols])
    asked = _numbers(places, target.grid)

    began = time.monotonic()

    def launch(
        kernel: Kernel, args: list[Any] | None = None, trace: Trace | bool = False,
        is_trial: bool = False,
    ) -> Run:  # fmt: skip
        return simulate(
            target, kernel, copies(before) if args is None else args, quiet or is_trial, began,
            schedule=schedule, checks=checks, step_limit=step_limit, trace=trace,
        )  # fmt: skip

    run = launch(target.kernel, target.args, Trace(_spread(target, asked)))
    named = hazard_blocks(run)[:_HAZARDS]
    if run.trace and not run.trace.sampled.issuperset(named):
        run = launch(target.kernel, None, Trace(_spread(target, [*asked, *named])))
    agreements: list[Agreement] = []
    if target.launch is not None and target.expected is not None:
        agreements = target.compare(target.args, run)
    fixed = None
    if any(hazard.row.is_race for hazard in run.hazards):
        with SearchBar(quiet, began) as bar:
            kernel = _fixed(target, run, launch, Search(bar, None, lambda: False))
        if kernel is not None:
            fixed = launch(kernel, None, Trace(set(hazard_blocks(run)[:1])))
    clean = checks != "none" and not run.hazards
    there = forecast(target, before, symbols, GPU, quiet=quiet) if clean else None
    return Story(
        run, target.name, settled(target), [a.to_dict() for a in agreements],
        there.prediction if there else None, asked, said, fixed,
    )  # fmt: skip


def _fixed(target: Target, run: Run, launch: Callable[..., Run], watch: Search) -> Kernel | None:
    """Search for fixes, and return the kernel with the first one without errors."""
    clean: list[Kernel] = []

    def again(kernel: Kernel) -> Run:
        tried = launch(kernel, is_trial=True)
        if tried.build == run.build and not any(h.severity == "error" for h in tried.hazards):
            clean.append(kernel)
        return tried

    find_fixes(target.kernel, run, again, watch=watch)
    return clean[-1] if clean and any(hazard.fix for hazard in run.hazards) else None


def _spread(target: Target, wanted: Sequence[int]) -> set[int]:
    """Return the blocks to record: those wanted, and others spread from first to last."""
    blocks = math.prod(target.grid)
    room = max(2, _RECORDED - len(wanted))
    spread = np.linspace(0, blocks - 1, min(room, blocks)).round()
    return {*wanted, *map(int, spread)}
