"""Usage of ``tilescope help``: its options and help."""

from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand


@click.command("help", cls=GroupedCommand)
@click.argument("topic", nargs=-1)
@click.pass_context
def help_command(*given: Any, **options: Any) -> Any:
    """Explain a command, a kind of hazard, or a word of the reports.

    TOPIC is also a file: then its kernels, its launches and commands for them are shown, as by
    "tilescope FILE".

    \b
    Examples:
      tilescope help check
      tilescope help raw-race
      tilescope help bank conflicts
      tilescope my_kernel.cu
    """  # noqa: D301 - click reads \b
    from ..commands.help import help_command as body

    return body(*given, **options)
