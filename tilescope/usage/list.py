"""Usage of ``tilescope list``: its options and help."""

from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand


@click.command("list", cls=GroupedCommand)
@click.argument("file", required=False)
@click.option("--faulty", is_flag=True, help="Those with a known fault, each beside its twin.")
def list_command(*given: Any, **options: Any) -> Any:
    """Show the kernels of the library, one line each, or those of a FILE.

    Behind a name: what --size and --tile choose. A file's kernels have their parameters, and its
    launches a command each.

    Each faulty kernel commits one mistake for tilescope check to find; its twin is the same
    without it.

    \b
    Examples:
      tilescope list
      tilescope run matmul_padded --size 128      # then run one
      tilescope list --faulty
      tilescope check faulty_shared_raw
      tilescope list my_program.cu
    """  # noqa: D301 - click reads \b
    from ..commands.list import list_command as body

    return body(*given, **options)
