"""``tilescope barriers``: which barriers of a kernel are needed."""

from typing import Any

import click

from simulator import Run
from simulator.fixes import BarrierVerdict, judge_barriers

from ..check.launcher import Launcher
from ..cli.errors import warn
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import explain_option, schedule_options, target_options
from ..cli.output import say_report, write_json
from ..cli.request import Request
from ..cli.target import resolve
from ..text.barriers import barriers
from ..text.layout import fitted


@click.command("barriers", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@target_options
@schedule_options
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@explain_option
def barriers_command(
    request: Request, schedule: str | int, step_limit: int, json_file: str | None
) -> None:
    """Take out each barrier in turn, and say what goes wrong.

    A barrier is "needed" if hazards appear without it that are not there with it. That
    is said of this launch: another size or block may need a barrier that this one does
    not. Looks at the device build, or at the one that --build picks.

    TARGET, ENTRY and ARGUMENTs are those of tilescope run, but for .toml files.

    \b
    Examples:
      tilescope barriers matmul_tiled --size 64
      tilescope barriers my.cu reduce --grid 4 --block 256 f32[1024]=normal f32[4]

    Exit code 0: every barrier was judged; 2: it could not run.
    """  # noqa: D301 - click reads \\b
    launcher = Launcher(resolve(request), schedule, step_limit=step_limit)
    kernel = launcher.target.kernel
    for note in kernel.notes:
        warn(note)
    run = launcher.rerun(kernel)
    verdicts = judge_barriers(kernel, run, launcher.rerun)
    if json_file is not None:
        write_json(json_file, _content(launcher, run, verdicts))
    if json_file != "-":
        say_report(fitted(barriers(launcher.target.name, run, verdicts)))


def _content(launcher: Launcher, run: Run, verdicts: list[BarrierVerdict]) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": launcher.target.name,
        "kernel": run.kernel,
        "build": run.build,
        "grid": list(run.grid),
        "block": list(run.block),
        "schedule": run.schedule,
        "hazards": [hazard.to_dict() for hazard in run.hazards],
        "barriers": [
            {
                **verdict.source.to_dict(),
                "which": list(verdict.which),
                "copies": verdict.copies,
                "needed": verdict.needed,
                "hazards": [hazard.to_dict() for hazard in verdict.hazards],
            }
            for verdict in verdicts
        ],
    }
