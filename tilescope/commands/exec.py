"""``tilescope exec``: run a Python script for GPUs without one."""

from pathlib import Path

import click

from ..check.policy import CHOICES, Policy
from ..cli.completion import gpus as gpus_named
from ..cli.errors import UserError
from ..cli.options import as_schedule
from ..cli.output import write_json
from ..formats.report_files import Files
from ..formats.sarif import session_sarif
from ..gpu.placement import find
from ..sessions.recording import session
from ..text.script import hazards, summary


@click.command("exec", context_settings={"allow_interspersed_args": False})
@click.option(
    "-k", "--kernel", "only", multiple=True, help="Check this kernel only; may be repeated."
)
@click.option("--max-launches",  type=click.IntRange(0), default=0, metavar="N",
              help="Stop the script after so many launches; 0: never.")  # fmt: skip
@click.option("--sample", type=click.IntRange(0), default=0, metavar="N",
              help="Check N of the launches that are alike (kernel, shapes, types).")  # fmt: skip
@click.option("--schedule", default="lockstep", show_default=True,
              help="lockstep, warps, reverse, or a seed.")  # fmt: skip
@click.option("--gpu", shell_complete=gpus_named, default="h200", show_default=True, metavar="NAME",
              help="That has to have the registers and shared memory of a block.")  # fmt: skip
@click.option("--equal-writes", type=click.Choice(CHOICES), default="warning", show_default=True,
              help="Races that write the same value.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(["error", "warning", "never"]), default="error",
              show_default=True, help="What makes the exit code 1.")  # fmt: skip
@click.option("--view", "page", metavar="FILE", help="Write a page of all launches.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write SARIF 2.1.0, likewise.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but what the script prints.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def exec_command(
    ctx: click.Context, only: tuple[str, ...], max_launches: int, sample: int, schedule: str,
    gpu: str, equal_writes: str, fail_on: str, page: str | None, json_file: str | None,
    sarif_file: str | None, quiet: bool, script: Path, arguments: tuple[str, ...],
) -> None:  # fmt: skip
    """Run a Python script with its kernels on the simulator.

    The launches of numba.cuda, Triton, cuda.core and cuda.bindings are simulated, counted
    and checked; the script is not changed, and no driver is touched. Options of this
    command stand before SCRIPT, those of the script behind it.

    \b
    Examples:
      tilescope exec train_step.py
      tilescope exec -k hist --view hist.html train_step.py --epochs 1
      tilescope exec --sample 3 --sarif out.sarif train_step.py

    Exit code: the script's own; if that is 0, 1 for a hazard (--fail-on).
    """  # noqa: D301 - click reads \b
    from ..scripts.run import run_script
    from ..scripts.virtual_device import VirtualDevice

    order, chip = as_schedule(schedule), find(gpu)
    files = Files(json_file, sarif_file)
    files.check(diff=False)
    with session() as made:
        traced = page is not None
        machine = VirtualDevice(
            only, max_launches, sample, order, traced, quiet, order=made.order, gpu=chip
        )
        code, end = run_script(script, arguments, machine)
    absent = [name for name in only if name not in {launch.kernel.name for launch in made.launches}]
    made.judge(Policy(equal_writes=equal_writes))
    if page is not None:
        if not any(launch.run.trace is not None for launch in made.launches):
            raise UserError("--view: the script launched no kernel that is checked")
        made.show().save(page)
    if json_file is not None:
        write_json(json_file, made.to_dict())
    if sarif_file is not None:
        write_json(sarif_file, session_sarif(made, str(script)))
    if not quiet and not files.quiet:
        click.echo(summary(made, machine.unchecked, ""))
    if end:
        click.echo(end, err=True)
    if absent and not code:
        launched = dict.fromkeys(launch.kernel.name for launch in made.launches)
        listed = ", ".join(launched) or "none"
        raise UserError(f"-k {absent[0]}: no launch was of that name; launched: {listed}")
    failing = {"never": (), "error": ("error",), "warning": ("error", "warning")}[fail_on]
    wrong = [h for h in hazards(made) if h.severity in failing]
    ctx.exit(code or int(bool(wrong)))
