"""``tilescope run``: launch a kernel on the simulator and report its traffic."""

from collections.abc import Collection
from typing import Any

import click

from device import roofline_svg
from kernels.arguments.argument_copies import copies

from ..check.outcome import Outcome, execute
from ..cli.comparison_target import beside
from ..cli.completion import gpus as gpus_named
from ..cli.errors import UserError
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import explain_option, launch_options, result_options
from ..cli.output import say_report, write_json, write_text
from ..cli.request import Request
from ..cli.target import resolve
from ..gpu.placement import Placement, find, place
from ..gpu.prediction_inputs import GPU, Forecast, forecast
from ..text.comparison import comparison, ratios
from ..text.layout import fitted
from ..text.lines import SORTS
from ..text.lines import by_line as traffic_of_lines
from ..text.placement import placement
from ..text.prediction import advice
from ..text.report import report, verdict, wrong
from .pipelines import HOW, is_pipeline, refuse_others, run_pipeline


@click.command("run", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@result_options
@launch_options
@click.option("--compare", "other", metavar="OTHER", help="What to put beside it.")
@click.option("--by-line", is_flag=True, help="The traffic of every source line.")
@click.option("--sort", type=click.Choice(SORTS), help="What the lines are sorted by.")
@click.option(
    "--gpu",
    shell_complete=gpus_named,
    metavar="NAME",
    help="Occupancy, roofline, advice there: a100, h200...",
)
@click.option(
    "--registers",
    type=click.IntRange(1, 255),
    metavar="N",
    help="Registers a thread, for occupancy without that GPU.",
)
@click.option("--plot", "plot_file", metavar="FILE", help="Write the roofline as SVG; - is stdout.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only; the exit code tells.")
@explain_option
@click.pass_context
def run_command(
    ctx: click.Context,
    request: Request,
    schedule: str | int,
    step_limit: int,
    checks: str | Collection[str],
    other: str | None,
    by_line: bool,
    sort: str | None,
    gpu: str | None,
    registers: int | None,
    plot_file: str | None,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Run a kernel and report its memory traffic.

    TARGET is a kernel of the library, a .cu file, a .ptx file, or a .toml file with
    several launches (docs/scripts.md). For a file, ENTRY is the kernel as C++ writes it
    ('tiled<16>', of overloads 'k(float*)'; in PTX its name there), followed by its arguments:

    \b
      f32[64,64]=normal    an array: bf16 f16 f32 f64, i8 to i64, u8 to u64;
                           zeros (if left out), ones, normal, uniform, arange,
                           a number, @file.npy, or unset: as cudaMalloc leaves it
      64  1.5  -3  u8:3    a number, of the parameter's type or of its own
      A[32:]               a part of the array that is the parameter A
      struct(f32[64], 64)  a structure by value: a word for each field
      sym:coeff=f32[3]=1   what a __constant__ or __device__ variable holds:
                           an array, a number, struct(...), a texture
      texture:linear:wrap:normalized:f32[64,64]=normal  an object; also point,
                           clamp, border, mirror, layered, x2, x4 (channels),
                           floats (of integers), fetch (for tex1Dfetch)
      surface:f32[8,8]     likewise

    \b
    Examples:
      tilescope run matmul_tiled --size 256x256x256 --tile 16
      tilescope run matmul_naive --size 256 --compare matmul_tiled
      tilescope run matmul_transposed --size 64 --by-line
      tilescope run matmul_tiled --gpu h200 --registers 34 --plot roofline.svg
      tilescope run my.cu 'tiled<16>' --grid 4,4 --block 16,16 \\
          f32[64,64]=normal f32[64,64]=normal f32[64,64] 64 64 64
      tilescope run my.cu slow --grid 4 --block 256 f32[1000]=ones --compare fast
      tilescope run kernel.ptx scale --grid 4 --block 256 f32[1000]=ones -3
      tilescope run matmul_naive --json - --quiet

    --compare takes a kernel of the library; beside a file, a kernel of that file or
    another file, with what of the launch is different: 'fast.cu tiled --block 8,8'.

    Where nothing is wrong, the report ends with what would make the kernel faster there
    (on an H200, if no GPU is named): three sentences at most, those of tilescope predict.

    Exit code 0: nothing wrong; 1: a hazard or a wrong result; 2: it could not run.
    """  # noqa: D301 - click reads \b
    if is_pipeline(request.target):
        refuse_others(ctx, request, (*HOW, "json_file"))
        how = {"schedule": schedule, "checks": checks, "step_limit": step_limit}
        ctx.exit(run_pipeline(request.target, request.build, how, json_file, quiet))
    if gpu is None and (registers is not None or plot_file is not None):
        raise UserError("--registers and --plot belong to --gpu")
    if json_file == plot_file == "-":
        raise UserError("--json and --plot cannot both be standard output")
    chip = find(gpu) if gpu is not None else None
    requests = [request] if other is None else [request, beside(request, other)]
    targets = [resolve(r) for r in requests]  # what cannot run is told before any of it has run
    outcomes: list[Outcome] = []
    forecasts: list[Forecast | None] = []
    for target in targets:
        wanted = not quiet or json_file is not None
        args, symbols = copies([target.args, target.symbols]) if wanted else ([], {})
        outcomes.append(execute(target, schedule, checks, quiet, step_limit, limits=chip))
        clean = wanted and all(h.severity == "note" for h in outcomes[-1].run.hazards)
        there = forecast(target, args, symbols, chip or GPU, registers, quiet) if clean else None
        forecasts.append(there)
    placements = [place(outcome, chip, registers) for outcome in outcomes] if chip else []
    if json_file is not None:
        _write(json_file, outcomes, placements, forecasts)
    if plot_file is not None:
        _plot(plot_file, outcomes, placements)
    if quiet:
        for outcome in outcomes:
            for line in wrong(outcome):
                click.echo(line, err=True)
    elif "-" not in (json_file, plot_file):
        say_report(fitted(_text(outcomes, by_line, sort, placements, forecasts)))
    ctx.exit(int(any(outcome.failed for outcome in outcomes)))


def _text(
    outcomes: list[Outcome], lines: bool, sort: str | None, placements: list[Placement],
    forecasts: list[Forecast | None],
) -> str:  # fmt: skip
    two = len(outcomes) == 2
    parts = [comparison(*outcomes) if two else report(outcomes[0], sort or "cost")]
    for outcome, there in zip(outcomes, placements, strict=False):
        parts.append(placement(there, outcome.target.name if two else ""))
    if lines or (two and sort):  # two reports have no busiest lines to sort
        parts += [traffic_of_lines(outcome.run, sort or "line") for outcome in outcomes]
    for outcome, made in zip(outcomes, forecasts, strict=True):
        if made:
            parts += advice(made, outcome.target.name if two else "")
    if not two:
        parts.append(verdict(outcomes[0]))
    return "\n\n".join(parts)


def _write(
    file: str, outcomes: list[Outcome], placements: list[Placement],
    forecasts: list[Forecast | None],
) -> None:  # fmt: skip
    contents = [outcome.to_dict() for outcome in outcomes]
    for made, there in zip(contents, placements, strict=False):
        made["gpu"] = there.to_dict()
    for made, ahead in zip(contents, forecasts, strict=True):
        made["prediction"] = ahead.to_dict() if ahead else None
    content: dict[str, Any] = contents[0]
    if len(outcomes) == 2:
        content["compare"] = contents[1]
        content["ratios"] = ratios(*outcomes)
    write_json(file, content)


def _plot(file: str, outcomes: list[Outcome], placements: list[Placement]) -> None:
    names = [outcome.target.name for outcome in outcomes]
    roofs = [there.roofline for there in placements]
    try:
        svg = roofline_svg(dict(zip(names, roofs, strict=True)))
    except ValueError as error:
        raise UserError(str(error)) from None
    write_text(file, svg)
