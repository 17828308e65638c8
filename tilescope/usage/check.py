"""Usage of ``tilescope check``: its options and help."""

from collections.abc import Callable
from typing import Any

import click

from ..cli.completion import gpus as gpus_named
from ..cli.menu.choices import CHOICES
from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import explain_option, launch_options, result_options

_MAX_HAZARDS = 20


def _policy(name: str, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        name, type=click.Choice(CHOICES), default="warning", show_default=True, help=text
    )


@click.command("check", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@result_options
@launch_options
@_policy("--equal-writes", "Races that write the same value.")
@_policy("--warp-synchronous", "Races between lanes of one warp.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    show_default=True,
    help="What makes the exit code 1.",
)
@click.option(
    "--gpu", shell_complete=gpus_named, default="h200", show_default=True, metavar="NAME",
    help="GPU whose registers and shared memory a block must fit into.",
)  # fmt: skip
@click.option("--since", metavar="REF", help="Of pyproject.toml: what git says has changed.")
@click.option("--no-fix-search", "--no-cure", "no_fix_search", is_flag=True,
              help="Report hazards without searching for fixes.")  # fmt: skip
@click.option(
    "--fix-time", type=click.FloatRange(0), metavar="SECONDS", help="Limit of the search for fixes."
)
@click.option("--fix", is_flag=True, help="Apply the verified fixes to the source files.")
@click.option("--diff", "only_diff", is_flag=True, help="Print only the fixes, as a unified diff.")
@click.option("--demonstrate", "show", is_flag=True, help="Find a schedule that shows the race.")
@click.option(
    "--max",
    "max_hazards",
    type=click.IntRange(0),
    default=_MAX_HAZARDS,
    show_default=True,
    metavar="N",
    help="Hazards to print; 0: all.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write SARIF 2.1.0, likewise.")
@click.option("--junit", "junit_file", metavar="FILE", help="Write JUnit's XML, likewise.")
@click.option("--baseline", metavar="FILE", help="Leave out the hazards that a file names.")
@click.option("--write-baseline", "new_baseline", metavar="FILE", help="Write such a file.")
@click.option("-q", "--quiet", is_flag=True, help="Print hazards only, on stderr.")
@explain_option
@click.pass_context
def check_command(*given: Any, **options: Any) -> Any:
    """Look for races, wrong barriers and bad memory accesses.

    Runs both builds of a CUDA source, what a GPU would run and the unoptimised source
    (--build picks one), reports each hazard with its lines, and tries barriers that
    remove a race: an edit of the source is shown only if it compiles in both builds and
    is free of that race in all schedules, with nothing new. --fix writes it to the file.

    TARGET, ENTRY and ARGUMENTs are those of tilescope run. Of a .cu file alone, each launch in its
    host code is checked, as far as the text says it; host code is read and never executed
    (tilescope exec does that). If there is none, a launch is proposed from the signature.

    \b
    Examples:
      tilescope check my_program.cu
      tilescope check matmul_missing_first_barrier --size 64
      tilescope check matmul_missing_first_barrier --size 64 --demonstrate
      tilescope check matmul_tiled --size 70x50x90 --fail-on warning
      tilescope check my.cu 'tiled<16>' --grid 4,4 --block 16,16 \\
          f32[64,64]=normal f32[64,64]=normal f32[64,64] 64 64 64
      tilescope check my.cu fill --grid 4 --block 256 f32[1000] --sarif out.sarif
      tilescope check my.cu reduce --grid 4 --block 256 f32[1024] f32[4] --fix

    A pyproject.toml as TARGET checks the kernels of [tool.tilescope], with --since REF
    those whose files have changed; one --baseline, --sarif and --junit is of all kernels
    (docs/testing.md). A pipeline's file has --json and --baseline only; --fix, --diff and
    --demonstrate are for one kernel.

    Hazards are printed before the search for fixes, which Ctrl-C ends: the exit code,
    and files that are written, then have what was found.

    A comment "// tilescope: ignore[raw-race] why" on a line leaves out its hazards of
    that kind; what was left out is counted.

    Exit code 0: clean; 1: an error was found (or, with --fail-on warning, a warning)
    that --fix did not mend; 2: no build could be checked. Where one build alone is
    refused, the report says so.
    """  # noqa: D301 - click reads \b
    from ..commands.check import check_command as body

    return body(*given, **options)
