"""``tilescope view``: run a kernel and draw what happened as one HTML file."""

import math
import webbrowser
from collections.abc import Collection
from pathlib import Path

import click
from click.core import ParameterSource

from device.copies import copies
from kernels import Kernel
from kernels.library import Agreement
from simulator import Run
from simulator.cures import find_cures

from ..beside import beside
from ..forecast import GPU, forecast
from ..options import launch_options, target_options
from ..outcome import simulate
from ..target import Request, Target, resolve, settled
from ..view import Story, page
from .pipelines import draw_pipeline, is_pipeline

_BY_WARP = 1 << 16
"""Threads of a launch up to which one warp at a time is fast enough."""


@click.command(
    "view",
    short_help="Draw a run, step by step, as one HTML file.",
    context_settings={"ignore_unknown_options": True},
)
@target_options
@launch_options
@click.option("--compare", "other", metavar="OTHER", help="What to put beside it, as run has it.")
@click.option(
    "-o", "--output", default="run.html", show_default=True, metavar="FILE", help="The page."
)
@click.option("--open", "show", is_flag=True, help="Show it in a browser.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def view_command(
    ctx: click.Context,
    request: Request,
    schedule: str | int,
    step_limit: int,
    checks: str | Collection[str],
    other: str | None,
    output: str,
    show: bool,
    quiet: bool,
) -> None:
    """Run a kernel and draw what happened: one HTML file that opens from disk.

    TARGET, ENTRY and ARGUMENTs are as in tilescope run. The page steps through the run,
    shows who reads what, who waits at which barrier, sectors and banks; a hazard's moment
    is a click away. Unless --schedule says otherwise, one warp runs at a time (all threads
    in lockstep, if there are more than 65,536). Of a pipeline's file (.toml) the page shows
    every launch.

    \b
    Examples:
      tilescope view matmul_tiled --size 64 --open
      tilescope view matmul_naive --size 64 --compare matmul_tiled -o tiling.html
      tilescope view matmul_missing_first_barrier --size 32 --open
      tilescope view my.cu 'tiled<2>' --grid 3,3 --block 2,2 \\
          f32[6,6]=arange f32[6,6]=ones f32[6,6] 6 6 6

    Exit code 0: the page was written; 2: it could not run.
    """  # noqa: D301 - click reads \b
    path = Path(output)
    if is_pipeline(request.target):
        how = {"schedule": schedule, "checks": checks, "step_limit": step_limit}
        draw_pipeline(request.target, request.build, how, quiet, path)
    else:
        requests = [request] if other is None else [request, beside(request, other)]
        targets = [resolve(r) for r in requests]
        if ctx.get_parameter_source("schedule") is ParameterSource.DEFAULT:
            schedule = "warps" if max(map(_threads, targets)) <= _BY_WARP else "lockstep"
        stories = [_story(target, schedule, checks, step_limit, quiet) for target in targets]
        path.write_text(page(stories), encoding="utf-8")
    if not quiet:
        click.echo(f"{path}: {path.stat().st_size / 1e6:.2f} MB, opens in any browser")
    if show:
        webbrowser.open(path.resolve().as_uri())


def _threads(target: Target) -> int:
    return math.prod(target.grid) * math.prod(target.block)


def _story(
    target: Target, schedule: str | int, checks: str | Collection[str], step_limit: int, quiet: bool
) -> Story:
    """Launch a target with everything recorded, and prove a cure of each race."""
    before, symbols = copies([target.args, target.symbols])

    def launch(kernel: Kernel, trace: bool = False) -> Run:
        args = target.args if trace else copies(before)
        return simulate(
            target, kernel, args, quiet,
            schedule=schedule, checks=checks, step_limit=step_limit, trace=trace,
        )  # fmt: skip

    run = launch(target.kernel, trace=True)
    agreements: list[Agreement] = []
    if target.launch is not None and target.expected is not None:
        agreements = target.launch.compare(target.expected)
    if any(hazard.row.is_race for hazard in run.hazards):
        find_cures(target.kernel, run, launch)
    clean = checks != "none" and not run.hazards
    there = forecast(target, before, symbols, GPU, quiet=quiet) if clean else None
    expected = there.prediction if there else None
    return Story(run, target.name, settled(target), [a.to_dict() for a in agreements], expected)
