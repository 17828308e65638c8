"""``tilescope exec``: a Python script or a CUDA program of a GPU's user, run without a GPU."""

import dataclasses
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernels.source_access import display_path, missing

from ..check import fix as fixes
from ..check.fix_search import Search
from ..check.policy import Policy
from ..cli.errors import UserError
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


def exec_command(
    ctx: click.Context, only: tuple[str, ...], max_launches: int, sample: int,
    expect_launches: int | None, predict: str | None, schedule: str, gpu: str, equal_writes: str,
    fail_on: str, includes: tuple[str, ...], defines: tuple[str, ...], folders: tuple[str, ...],
    libraries: tuple[str, ...], standard: str | None, arch: str | None, further: str | None,
    print_flags: bool, fix: bool, only_diff: bool, allow_none: bool, page: str | None,
    json_file: str | None, sarif_file: str | None, quiet: bool, script: Path | None,
    arguments: tuple[str, ...],
) -> None:  # fmt: skip
    """Run ``tilescope exec``; ``tilescope.usage`` has its options."""
    if print_flags:
        from ..programs.compile import make_flags

        click.echo(make_flags())
        return
    if script is None:
        raise click.UsageError("Missing argument 'SCRIPT'.")
    if not script.exists():
        raise UserError(missing(script))
    if script.is_dir():
        raise UserError(f"{script} is a folder; exec runs a script, a program or .cu files")
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
    if not quiet:
        for word in _astray(ctx, split_sources(script, arguments)[0] or [script], arguments):
            note = f"{word} stands behind the program, so it is the program's"
            say_report(wrapped(f"note: {note}; options of exec stand before it"), err=True)
    listed = not quiet and not files.quiet
    on_error = is_program(script)
    options = [word for word in words if word.startswith(("-I", "-D"))]

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
        _print(made, outcome, on_error, options)
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
                _print(made, outcome, on_error, options)
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


def _astray(ctx: click.Context, files: Sequence[Path], arguments: Sequence[str]) -> list[str]:
    """Return long options of this command among a program's arguments that it has no text of."""
    own = {word for option in ctx.command.params for word in option.opts if word[:2] == "--"}
    found = dict.fromkeys(word.split("=")[0] for word in arguments)
    some = [word for word in found if word in own]
    texts = [file.read_bytes() for file in files if some]
    return [word for word in some if not any(word.encode() in text for text in texts)]


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


def _print(made: Session, outcome: "ExecOutcome", on_error: bool, options: Sequence[str]) -> None:
    """Print the report; ``on_error``: on standard error."""
    if not made.launches and outcome.how == "refused":
        return
    is_interrupted = outcome.how == "signal"
    say_report(summary(made, outcome.unchecked, options, is_interrupted), err=on_error)
    for note in outcome.notes:
        say_report(wrapped(f"note: {note}"), err=on_error)
