"""``tilescope barriers``: which barriers of a kernel are needed."""

from typing import Any

from simulator import Run
from simulator.fixes import BarrierVerdict, judge_barriers

from ..check.launcher import Launcher
from ..cli.errors import warn
from ..cli.output import say_report, write_json
from ..cli.request import Request
from ..cli.target import resolve
from ..text.barriers import barriers
from ..text.layout import fitted


def barriers_command(
    request: Request, schedule: str | int, step_limit: int, json_file: str | None
) -> None:
    """Run ``tilescope barriers``; ``tilescope.usage`` has its options."""
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
