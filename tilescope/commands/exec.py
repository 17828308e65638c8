"""``tilescope exec``: a Python script or a CUDA program of a GPU's user, run without a GPU."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
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
from ..formats.report_files import Files
from ..formats.sarif import session_sarif
from ..gpu.placement import find
from ..sessions.recording import Session, session
from ..text.layout import wrapped
from ..text.script import hazards, summary


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
    nvcc: tuple[str, ...]


@dataclass
class _Outcome:
    """How the script or program ended.

    ``code``: its own exit code; ``how`` and ``place``: as JSON has them; ``text``: for the report.
    """

    code: int = 0
    how: str = "exit"
    text: str = ""
    place: str = ""
    notes: tuple[str, ...] = ()

    def exit_code(self, wrong: bool, launched: bool) -> int:
        """A refusal before hazards before its own code before nothing launched."""
        if self.how == "refused":
            return 2
        if self.how == "signal":
            return 1 if wrong else 128 + self.code
        return int(wrong) or self.code or (0 if launched or self.how == "stopped" else 3)

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
    ctx: click.Context, only: tuple[str, ...], max_launches: int, sample: int, schedule: str,
    gpu: str, equal_writes: str, fail_on: str, includes: tuple[str, ...], defines: tuple[str, ...],
    folders: tuple[str, ...], libraries: tuple[str, ...], standard: str | None, arch: str | None,
    print_flags: bool, allow_none: bool, page: str | None, json_file: str | None,
    sarif_file: str | None, quiet: bool, script: Path | None, arguments: tuple[str, ...],
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
      tilescope exec -k hist --view hist.html train_step.py --epochs 1
      NVCC_APPEND_FLAGS="$(tilescope exec --nvcc-flags)" make

    Exit code: 0 clean, 1 hazards (--fail-on), 2 refused, 3 nothing was launched (--allow-none);
    its own if it failed by itself, 128 + n for a signal.
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
        only,
        max_launches,
        sample,
        as_schedule(schedule),
        page is not None,
        quiet,
        find(gpu),
        tuple(words),
    )
    is_program = _is_program(script)
    with session() as made:
        run = _run_program if is_program else _run_script
        outcome, unchecked = run(script, arguments, wanted, made)
    absent = [name for name in only if name not in {launch.kernel.name for launch in made.launches}]
    made.judge(Policy(equal_writes=equal_writes))
    if page is not None:
        if not any(launch.run.trace is not None for launch in made.launches):
            raise UserError("--view: the script launched no kernel that is checked")
        made.show().save(page)
    if json_file is not None:
        content = {"outcome": outcome.to_dict(), "notes": list(outcome.notes)}
        write_json(json_file, made.to_dict() | content)
    if sarif_file is not None:
        write_json(sarif_file, session_sarif(made, str(script)))
    if not quiet and not files.quiet:
        click.echo(summary(made, unchecked, ""), err=is_program)
        for note in outcome.notes:
            click.echo(wrapped(f"note: {note}"), err=is_program)
    if outcome.text:
        click.echo(outcome.text, err=True)
    failing = {"never": (), "error": ("error",), "warning": ("error", "warning")}[fail_on]
    wrong = any(h.severity in failing for h in hazards(made))
    code = outcome.exit_code(wrong, bool(made.launches) or allow_none)
    if absent and code in (0, 3):
        launched = dict.fromkeys(launch.kernel.name for launch in made.launches)
        listed = ", ".join(launched) or "none"
        raise UserError(f"-k {absent[0]}: no launch was of that name; launched: {listed}")
    if code == 3 and not outcome.code:
        click.echo("nothing was launched (--allow-none: exit 0 all the same)", err=True)
    ctx.exit(code)


def _is_program(path: Path) -> bool:
    from ..programs.compile import SOURCES
    from ..programs.executable import is_elf

    return path.suffix in SOURCES or is_elf(path)


def _run_script(
    script: Path, arguments: Sequence[str], wanted: _Wanted, made: Session
) -> tuple[_Outcome, dict[str, int]]:
    from ..scripts.run import run_script
    from ..scripts.virtual_device import VirtualDevice

    machine = VirtualDevice(
        wanted.only, wanted.max_launches, wanted.sample, wanted.schedule, wanted.traced,
        wanted.quiet,
        order=made.order, gpu=wanted.gpu,
    )  # fmt: skip
    code, end = run_script(script, arguments, machine)
    how = "exit" if not end else "exception" if code else "stopped"
    return _Outcome(code, how, end), machine.unchecked


def _run_program(
    script: Path, arguments: Sequence[str], wanted: _Wanted, made: Session
) -> tuple[_Outcome, dict[str, int]]:
    from ..programs.compile import SOURCES, CompilationError, compile_program
    from ..programs.executable import ProgramRefusedError, check, executable
    from ..programs.run_program import ProgramRun
    from ..programs.shim.build import ShimError
    from ..scripts.virtual_device import VirtualDevice

    def machine(order: Order) -> VirtualDevice:
        return VirtualDevice(
            wanted.only, wanted.max_launches, wanted.sample, wanted.schedule, wanted.traced, True,
            order=order, gpu=wanted.gpu,
        )  # fmt: skip

    first = machine(made.order)
    with tempfile.TemporaryDirectory(prefix="tilescope-") as folder:
        program, rest = script.resolve(), list(arguments)
        try:
            if script.suffix in SOURCES:
                sources = [script]
                while rest and Path(rest[0]).suffix in SOURCES and Path(rest[0]).is_file():
                    sources.append(Path(rest.pop(0)))
                program = Path(folder) / script.stem
                compile_program(sources, wanted.nvcc, program)
            check(executable(program))
            run = ProgramRun([str(program), *rest], first, machine, [Path.cwd(), script.parent])
            end = run.run()
        except (ProgramRefusedError, CompilationError, ShimError) as error:
            raise UserError(str(error)) from None
    made.order.hazards += run.checks.hazards()
    text = end.message
    if end.how == "signal":
        text = f"the program was ended by signal {end.code}"
    elif end.how == "refused":
        text = f"tilescope: {end.message}"
    notes = tuple(
        f"{what}{f', {count} times' if count > 1 else ''}" for what, count in end.errors.items()
    )
    return _Outcome(end.code, end.how, text, end.place, notes), first.unchecked
