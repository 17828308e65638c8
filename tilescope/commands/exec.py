"""``tilescope exec``: a Python script or a CUDA program of a GPU's user, run without a GPU."""

import dataclasses
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernels.source_access import display_path

from ..check import fix as fixes
from ..check.fix_search import Search
from ..check.policy import CHOICES, Policy
from ..cli.completion import gpus as gpus_named
from ..cli.errors import UserError
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import as_schedule
from ..cli.output import say, say_report, write_json
from ..cli.progress import SearchBar
from ..formats.report_files import Files
from ..formats.sarif import session_sarif
from ..gpu.placement import find
from ..sessions.recording import Session, session
from ..text.layout import wrapped
from ..text.script import hazards, summary

if TYPE_CHECKING:
    from ..programs.execution import ExecOutcome, ExecSettings


@click.command("exec", cls=GroupedCommand, context_settings={"allow_interspersed_args": False})
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
@click.option("--nvcc", "further", metavar="WORDS",
              help="Further options of nvcc: --nvcc '--extended-lambda -O3'.")  # fmt: skip
@click.option("--nvcc-flags", "print_flags", is_flag=True,
              help="Print what nvcc needs to build a program for exec, and end.")  # fmt: skip
@click.option("--fix", is_flag=True,
              help="Apply verified fixes to the .cu files and run again.")  # fmt: skip
@click.option("--diff", "only_diff", is_flag=True,
              help="Print fixes as a diff; the program prints on stderr.")  # fmt: skip
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
    libraries: tuple[str, ...], standard: str | None, arch: str | None, further: str | None,
    print_flags: bool, fix: bool, only_diff: bool, allow_none: bool, page: str | None,
    json_file: str | None, sarif_file: str | None, quiet: bool, script: Path | None,
    arguments: tuple[str, ...],
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
      tilescope exec --fix main.cu
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
    words += shlex.split(further or "")
    from ..programs.compile import SOURCES, split_sources
    from ..programs.execution import ExecSettings, is_program
    from ..programs.fixes import LaunchKeeper

    files = Files(json_file, sarif_file)
    files.check(only_diff)
    if (fix or only_diff) and script.suffix not in SOURCES:
        raise UserError(f"--fix and --diff edit CUDA C++: give the .cu files, not {script}")
    settings = ExecSettings(
        only, max_launches, sample, as_schedule(schedule), page is not None, quiet, find(gpu),
        find(predict) if predict else None, tuple(words), files.quiet or only_diff,
        LaunchKeeper() if fix or only_diff else None,
    )  # fmt: skip
    policy = Policy(equal_writes=equal_writes)
    listed = not quiet and not files.quiet
    on_error = is_program(script)

    made, outcome = _run(script, arguments, settings, policy)
    extra: dict[str, Any] = {}
    if settings.keeper is not None:
        sources, _ = split_sources(script, arguments)
        outcome.notes += _search(made, settings, sources, policy)
        if only_diff:
            patch = fixes.as_diff(made.hazards)
            say(patch, nl=False)
            if not patch:
                say("--diff: no fix to show", err=True)
    if listed:
        _print(made, outcome, on_error)
    if fix:
        before = len(hazards(made))
        written = fixes.write(made.hazards)
        names = [display_path(str(file)) for file in written]
        extra["fixed"] = {"files": names, "hazards_before": before}
        said = f"written: {', '.join(names)}" if written else "nothing written: no fix to write"
        say(said, err=True)
        if written:
            settings = dataclasses.replace(settings, keeper=None)
            made, outcome = _run(script, arguments, settings, policy)
            if listed:
                _print(made, outcome, on_error)
    if json_file is not None:
        extra |= {"outcome": outcome.to_dict(), "notes": list(outcome.notes)}
        extra["library_calls"] = outcome.library_calls
        write_json(json_file, made.to_dict(find(gpu).capability) | extra)
    if sarif_file is not None:
        refused = outcome.text if outcome.how == "refused" else ""
        write_json(sarif_file, session_sarif(made, str(script), refused))
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
    as_wanted = bool(count or outcome.library_calls) or allow_none
    if expect_launches:
        as_wanted = count == expect_launches
    code = outcome.exit_code(wrong, as_wanted)
    absent = [name for name in only if name not in launched]
    if absent and code in (0, 3):
        names_of_all = ", ".join(launched) or "none"
        raise UserError(f"-k {absent[0]}: no launch was of that name; launched: {names_of_all}")
    if code == 3 and not outcome.code:
        said = "nothing was launched (--allow-none: exit 0 all the same)"
        if expect_launches:
            said = f"{count:,} launches, not {expect_launches:,} (--expect-launches)"
        click.echo(said, err=True)
    ctx.exit(code)


def _run(
    script: Path, arguments: Sequence[str], settings: "ExecSettings", policy: Policy
) -> tuple[Session, "ExecOutcome"]:
    """Run the script or program once, and judge what was found."""
    from ..programs.execution import execute

    with session() as made:
        outcome = execute(script, arguments, settings, made)
    made.judge(policy)
    return made, outcome


def _search(
    made: Session, settings: "ExecSettings", sources: Sequence[Path], policy: Policy
) -> tuple[str, ...]:
    """Search fixes; return why there was no search for some kernels."""
    from ..programs.fixes import find_fixes

    assert settings.keeper is not None
    with SearchBar(settings.quiet) as bar:
        watch = Search(bar, None, lambda: False)
        return find_fixes(made, settings.keeper, sources, settings.nvcc, policy, watch)


def _print(made: Session, outcome: "ExecOutcome", on_error: bool) -> None:
    """Print the report; ``on_error``: on standard error."""
    if not made.launches and outcome.how == "refused":
        return
    say_report(summary(made, outcome.unchecked, ""), err=on_error)
    for note in outcome.notes:
        say_report(wrapped(f"note: {note}"), err=on_error)
