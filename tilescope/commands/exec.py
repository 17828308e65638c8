"""``tilescope exec``: a Python script or a CUDA program of a GPU's user, run without a GPU."""

import functools
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from simulator.gpus.table import Gpu
from simulator.host_order import Order

from ..check.policy import CHOICES, Policy
from ..cli.completion import gpus as gpus_named
from ..cli.errors import UserError
from ..cli.options import as_schedule
from ..cli.output import write_json
from ..cli.progress import WaitBar
from ..formats.report_files import Files
from ..formats.sarif import session_sarif
from ..gpu.launch_forecasts import LaunchForecasts
from ..gpu.placement import find
from ..scripts.virtual_device import VirtualDevice
from ..sessions.recording import Session, session
from ..text.layout import wrapped
from ..text.script import hazards, summary

DEVICE_ONLY = "device build only: tilescope check compares both builds of a kernel"
"""Note on what is not checked in programs."""


@dataclass(frozen=True)
class _Wanted:
    """How launches are simulated, and what is compiled how."""

    only: tuple[str, ...]
    max_launches: int
    sample: int
    schedule: str | int
    traced: bool
    quiet: bool
    gpu: Gpu
    predicted: Gpu | None
    nvcc: tuple[str, ...]

    def machine(self, made: Session, order: Order) -> VirtualDevice:
        """Return a device that records launches in a session."""
        return VirtualDevice(
            self.only, self.max_launches, self.sample, self.schedule, self.traced, self.quiet,
            order=order, gpu=self.gpu, on_launch=made.annotate,
            forecasts=LaunchForecasts(self.predicted) if self.predicted else None,
        )  # fmt: skip


@dataclass
class _Outcome:
    """How the script or program ended.

    Attributes:
        code: Its own exit code, or the signal's number.
        how, place: As in JSON (``ScriptEnd``, ``ProgramEnd``).
        text: For the report: what ended it, if it did not end by itself.
        notes: For the report, a sentence each.
        unchecked: Launches that were made without checks, by kernel.
    """

    code: int = 0
    text: str = ""
    how: str = "exit"
    place: str = ""
    notes: tuple[str, ...] = ()
    unchecked: dict[str, int] = field(default_factory=dict)

    def exit_code(self, wrong: bool, as_wanted: bool) -> int:
        """A refusal before hazards before its own code before too few launches."""
        if self.how == "refused":
            return 2
        if self.how == "signal":
            return 1 if wrong else 128 + self.code
        return int(wrong) or self.code or (0 if as_wanted else 3)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"how": self.how, "code": self.code, "message": self.text, "place": self.place}


@click.command("exec", context_settings={"allow_interspersed_args": False})
@click.option(
    "-k", "--kernel", "only", multiple=True, help="Check this kernel only; may be repeated."
)
@click.option("--max-launches",  type=click.IntRange(0), default=0, metavar="N",
              help="Stop the script after so many launches; 0: never.")  # fmt: skip
@click.option("--sample", type=click.IntRange(0), default=0, metavar="N",
              help="Check N of the launches that are alike (kernel, shapes, types).")  # fmt: skip
@click.option("--expect-launches", type=click.IntRange(1), metavar="N",
              help="Exit 3 unless N launches are made.")  # fmt: skip
@click.option("--predict", shell_complete=gpus_named, metavar="GPU",
              help="Predict the time of each launch on a GPU.")  # fmt: skip
@click.option("--schedule", default="lockstep", show_default=True,
              help="lockstep, warps, reverse, or a seed.")  # fmt: skip
@click.option("--gpu", shell_complete=gpus_named, default="h200", show_default=True, metavar="NAME",
              help="That has to have the registers and shared memory of a block.")  # fmt: skip
@click.option("--equal-writes", type=click.Choice(CHOICES), default="warning", show_default=True,
              help="Races that write the same value.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(["error", "warning", "never"]), default="error",
              show_default=True, help="What makes the exit code 1.")  # fmt: skip
@click.option(
    "-I", "includes", multiple=True, metavar="DIR", help="For nvcc, as -D -L -l -std -arch."
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", hidden=True)
@click.option("-L", "folders", multiple=True, metavar="DIR", hidden=True)
@click.option("-l", "libraries", multiple=True, metavar="NAME", hidden=True)
@click.option("-std", "standard", metavar="STD", hidden=True)
@click.option("-arch", "arch", metavar="ARCH", hidden=True)
@click.option("--nvcc-flags", "print_flags", is_flag=True,
              help="Print what nvcc needs to build a program for exec, and end.")  # fmt: skip
@click.option("--allow-none", is_flag=True, help="Exit 0 where nothing was launched, not 3.")
@click.option("--view", "page", metavar="FILE", help="Write a page of all launches.")
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write SARIF 2.1.0, likewise.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but what the script prints.")
@click.argument("script", required=False,
                type=click.Path(exists=True, dir_okay=False, path_type=Path))  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def exec_command(
    ctx: click.Context, only: tuple[str, ...], max_launches: int, sample: int,
    expect_launches: int | None, predict: str | None, schedule: str, gpu: str, equal_writes: str,
    fail_on: str, includes: tuple[str, ...], defines: tuple[str, ...], folders: tuple[str, ...],
    libraries: tuple[str, ...], standard: str | None, arch: str | None, print_flags: bool,
    allow_none: bool, page: str | None, json_file: str | None, sarif_file: str | None, quiet: bool,
    script: Path | None, arguments: tuple[str, ...],
) -> None:  # fmt: skip
    """Run a Python script or a CUDA program with its kernels on the simulator.

    SCRIPT is a Python script (numba.cuda, Triton, cuda.core, cuda.bindings, PyTorch), a program
    that nvcc has built with --nvcc-flags, or one or several .cu and .cpp files, which are compiled
    with nvcc first. Launches are simulated, counted and checked; nothing is changed, and no driver
    is touched. A program itself runs natively, with your rights. Options of this command stand
    before SCRIPT, those of the script behind it.

    \b
    Examples:
      tilescope exec train_step.py
      tilescope exec ./a.out 1024
      tilescope exec -I include main.cu kernels.cu --size 256
      tilescope exec --json report.json --predict h200 ./a.out 1024
      tilescope exec -k hist --view hist.html train_step.py --epochs 1
      NVCC_APPEND_FLAGS="$(tilescope exec --nvcc-flags)" make

    Exit code: 0 clean, 1 hazards (--fail-on), 2 refused, 3 nothing was launched (--allow-none)
    or other than --expect-launches; its own if it failed by itself, 128 + n for a signal.
    """  # noqa: D301 - click reads \b
    if print_flags:
        from ..programs.executable import FLAGS

        click.echo(FLAGS)
        return
    if script is None:
        raise click.UsageError("Missing argument 'SCRIPT'.")
    given = {"-I": includes, "-D": defines, "-L": folders, "-l": libraries}
    words = [flag + value for flag, values in given.items() for value in values]
    words += [f"-std={standard}"] * bool(standard) + [f"-arch={arch}"] * bool(arch)
    files = Files(json_file, sarif_file)
    files.check(diff=False)
    wanted = _Wanted(
        only, max_launches, sample, as_schedule(schedule), page is not None, quiet, find(gpu),
        find(predict) if predict else None, tuple(words),
    )  # fmt: skip
    is_program = _is_program(script)
    with session() as made:
        run = _run_program if is_program else _run_script
        outcome = run(script, arguments, wanted, made)
    made.judge(Policy(equal_writes=equal_writes))
    if json_file is not None:
        content = {"outcome": outcome.to_dict(), "notes": list(outcome.notes)}
        write_json(json_file, made.to_dict(find(gpu).capability) | content)
    if sarif_file is not None:
        refused = outcome.text if outcome.how == "refused" else ""
        write_json(sarif_file, session_sarif(made, str(script), refused))
    if not quiet and not files.quiet and (made.launches or outcome.how != "refused"):
        click.echo(summary(made, outcome.unchecked, ""), err=is_program)
        for note in outcome.notes:
            click.echo(wrapped(f"note: {note}"), err=is_program)
    if outcome.text:
        click.echo(outcome.text, err=True)
    if page is not None:
        if not any(launch.run.trace is not None for launch in made.launches):
            raise UserError("--view: there was no launch of a kernel that is checked")
        made.show().save(page)
    failing = {"never": (), "error": ("error",), "warning": ("error", "warning")}[fail_on]
    wrong = any(h.severity in failing for h in hazards(made))
    launched = Counter(launch.kernel.name for launch in made.launches)
    count = launched.total()
    as_wanted = count == expect_launches if expect_launches else bool(count) or allow_none
    code = outcome.exit_code(wrong, as_wanted)
    absent = [name for name in only if name not in launched]
    if absent and code in (0, 3):
        listed = ", ".join(launched) or "none"
        raise UserError(f"-k {absent[0]}: no launch was of that name; launched: {listed}")
    if code == 3 and not outcome.code:
        said = "nothing was launched (--allow-none: exit 0 all the same)"
        if expect_launches:
            said = f"{count:,} launches, not {expect_launches:,} (--expect-launches)"
        click.echo(said, err=True)
    ctx.exit(code)


def _is_program(path: Path) -> bool:
    from ..programs.compile import SOURCES
    from ..programs.executable import is_elf

    return path.suffix in SOURCES or is_elf(path)


def _run_script(script: Path, arguments: Sequence[str], wanted: _Wanted, made: Session) -> _Outcome:
    from ..scripts.run import run_script

    machine = wanted.machine(made, made.order)
    return _Outcome(*run_script(script, arguments, machine), unchecked=machine.unchecked)


def _run_program(
    script: Path, arguments: Sequence[str], wanted: _Wanted, made: Session
) -> _Outcome:
    from ..programs.compile import CompilationError, compile_program, split_sources
    from ..programs.executable import ProgramRefusedError, check, executable
    from ..programs.run_program import ProgramRun
    from ..programs.shim.build import ShimError

    first = wanted.machine(made, made.order)
    with tempfile.TemporaryDirectory(prefix="tilescope-") as folder:
        try:
            program, rest = script.resolve(), list(arguments)
            sources, rest = split_sources(script, rest)
            if sources:
                program = Path(folder) / script.stem
                with WaitBar(f"nvcc {script.name}", wanted.quiet, hint=""):
                    compile_program(sources, wanted.nvcc, program)
            check(executable(program))
            run = ProgramRun(
                [str(program), *rest], first, functools.partial(wanted.machine, made),
                [Path.cwd(), script.parent],
            )  # fmt: skip
            end = run.run()
        except (ProgramRefusedError, CompilationError, ShimError) as error:
            return _Outcome(2, f"error: {error}", "refused")
    made.order.hazards += run.checks.hazards()
    text = end.message
    if end.how == "signal" and not text:
        text = f"the program was ended by signal {end.code}"
    elif end.how == "refused":
        text = f"tilescope: {end.message}"
    elif end.how == "signal" and end.place:
        text = f"{end.message} at {end.place}"
    notes = [DEVICE_ONLY] * bool(made.launches)
    for what, count in end.errors.items():
        notes.append(f"{what}{f', {count} times' if count > 1 else ''}")
    return _Outcome(end.code, text, end.how, end.place, tuple(notes), first.unchecked)
