"""Usage of ``tilescope barriers``: its options and help."""

from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import explain_option, schedule_options, target_options


@click.command("barriers", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@target_options
@schedule_options
@click.option("--json", "json_file", metavar="FILE", help="Write JSON; - is standard output.")
@explain_option
def barriers_command(*given: Any, **options: Any) -> Any:
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
    from ..commands.barriers import barriers_command as body

    return body(*given, **options)
