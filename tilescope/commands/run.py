"""``tilescope run``: launch a kernel on the simulator and report its traffic."""

from collections.abc import Collection
from typing import Any

import click

from device import roofline_svg
from kernels.arguments.argument_copies import copies

from ..check.outcome import Outcome, execute
from ..cli.comparison_target import beside
from ..cli.errors import UserError
from ..cli.output import say_report, write_json, write_text
from ..cli.request import Request
from ..cli.target import resolve
from ..gpu.placement import Placement, find, place
from ..gpu.prediction_inputs import GPU, Forecast, forecast
from ..text.comparison import comparison, ratios
from ..text.layout import fitted
from ..text.lines import by_line as traffic_of_lines
from ..text.placement import placement
from ..text.prediction import advice
from ..text.report import report, verdict, wrong
from .pipelines import HOW, is_pipeline, refuse_others, run_pipeline


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
    """Run ``tilescope run``; ``tilescope.usage`` has its options."""
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
    targets = [resolve(r) for r in requests]  # impossible launches are reported before any launch
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
