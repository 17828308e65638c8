"""``tilescope check``: find hazards, name their lines, verify fixes."""

from collections.abc import Collection

import click
from click.core import ParameterSource

from kernels.source_access import display_path

from ..check import baseline as baselines
from ..check import fix as fixes
from ..check.checker import Checker
from ..check.demonstrate import Difference, demonstrate
from ..check.fix_search import search
from ..check.launcher import Launcher
from ..check.policy import Policy
from ..cli.errors import INTERRUPTED, UserError
from ..cli.kernel_names import is_file
from ..cli.output import reader_gone, say, say_report, write_json
from ..cli.request import Request
from ..cli.target import resolve_either
from ..formats.report_files import Files
from ..gpu.placement import find
from ..text.findings import demonstration, findings, refusals
from ..text.fixes import fixes_text, unfound
from ..text.layout import fitted, hazard_text
from .pipelines import HOW, check_pipeline, host_pipeline, is_pipeline, refuse_others

_OF_SEVERAL = (
    "equal_writes", "warp_synchronous", "fail_on", "since", "no_fix_search", "fix_time",
    "max_hazards", "json_file", "sarif_file", "junit_file", "baseline", "new_baseline",
)  # fmt: skip
"""Options that a file with several launches takes."""
_OF_TEXT = ("defines", "includes", "nvrtc")
"""Further options that several launches of host code take."""


def check_command(
    ctx: click.Context,
    request: Request,
    schedule: str | int,
    step_limit: int,
    checks: str | Collection[str],
    equal_writes: str,
    warp_synchronous: str,
    fail_on: str,
    gpu: str,
    since: str | None,
    no_fix_search: bool,
    fix_time: float | None,
    fix: bool,
    only_diff: bool,
    show: bool,
    max_hazards: int,
    json_file: str | None,
    sarif_file: str | None,
    junit_file: str | None,
    baseline: str | None,
    new_baseline: str | None,
    quiet: bool,
) -> None:
    """Run ``tilescope check``; ``tilescope.usage`` has its options."""
    if checks == "none":
        raise UserError("--checks none leaves nothing to check")
    _refuse(request, no_fix_search, fix, only_diff)
    known = baselines.read(baseline) if baseline is not None else frozenset()
    files = Files(json_file, sarif_file, junit_file, new_baseline, known)
    files.check(only_diff)
    policy = Policy(equal_writes, warp_synchronous, known)
    host = None if is_pipeline(request.target) else host_pipeline(request)
    if host or is_pipeline(request.target):
        refuse_others(ctx, request, (*HOW, *_OF_SEVERAL, *(_OF_TEXT if host else ())))
        how = {"schedule": schedule, "checks": checks, "step_limit": step_limit}
        default = ctx.get_parameter_source("fail_on") is ParameterSource.DEFAULT
        chosen = (request.build,) if request.build else ("device", "source")
        ctx.exit(
            check_pipeline(
                request.target, chosen, how, policy, "" if default else fail_on,
                not no_fix_search, max_hazards, files, quiet, since,
                fix_time, host,
            )
        )  # fmt: skip
    if since is not None:
        raise UserError("--since is for pyproject.toml and pipelines, which list files")
    listed = not (quiet or only_diff or files.quiet)
    target = resolve_either(request, warns=not listed)  # the report has the warnings
    launcher = Launcher(target, schedule, checks, policy, quiet, step_limit, gpu=find(gpu))
    checker = Checker(launcher)
    builds = (request.build,) if request.build else ("device", "source")
    verdict = checker.find(builds)
    if quiet:
        for text in [hazard_text(hazard) for hazard in verdict.hazards] + refusals(verdict):
            say_report(text, err=True)
    elif listed:
        say_report(fitted(findings(verdict, max_hazards)))
    needed = bool(fix or only_diff or quiet or files.any)
    if not no_fix_search:
        search(checker, verdict, fix_time, lambda: not needed and reader_gone())
    if (quiet or listed) and (text := fixes_text(verdict)):
        say_report(fitted(text) if quiet else f"\n{fitted(text)}", err=quiet)
    difference = _demonstrate(launcher, verdict.builds) if show else None
    if json_file is not None:
        shown = {"demonstration": difference.to_dict() if difference else None} if show else {}
        write_json(json_file, verdict.to_dict() | shown)
    files.write([verdict], fail_on)
    if show and listed:
        racy = any(hazard.row.is_race for hazard in verdict.hazards)
        say_report(f"\n{fitted(demonstration(difference, racy))}")
    if only_diff:
        patch = fixes.as_diff(verdict.hazards)
        say(patch, nl=False)
        if not patch:
            say(f"--diff: {unfound(verdict) or 'no fix to show'}", err=True)
    if fix:
        written = fixes.write(verdict.hazards)
        if not quiet:
            names = ", ".join(display_path(str(file)) for file in written)
            said = f"written: {names}" if written else "nothing written: no fix to write"
            say(said, err=files.quiet or only_diff)
    failed = verdict.fails(fail_on, fixed=fix)
    ctx.exit(INTERRUPTED if verdict.interrupted and not failed else int(failed))


def _refuse(request: Request, no_fix_search: bool, fix: bool, only_diff: bool) -> None:
    """Reject options that contradict each other or the target.

    Raises:
        UserError: There are such options.
    """
    asked = "--fix" if fix else "--diff"
    if not fix and not only_diff:
        return
    if no_fix_search:
        raise UserError(f"{asked} needs the search for fixes; drop --no-fix-search")
    if request.target.endswith(".ptx"):
        raise UserError(f"{request.target} is PTX: {asked} edits CUDA C++")
    if fix and not is_file(request.target):
        raise UserError(
            f"{request.target} comes along with tilescope: --fix writes to files of your own; "
            "--diff shows the edit"
        )


def _demonstrate(launcher: Launcher, builds: Collection[str]) -> Difference | None:
    """Return the difference of the first build that shows one."""
    for build in builds:
        if difference := demonstrate(launcher, launcher.kernel(build)):
            return difference
    return None
