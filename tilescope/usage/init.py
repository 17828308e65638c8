"""Usage of ``tilescope init``: its options and help."""

from pathlib import Path
from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand


@click.command("init", cls=GroupedCommand)
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
def init_command(*given: Any, **options: Any) -> Any:
    """Write a kernel, tests of it and a CI recipe to start from.

    FOLDER is made if it is not there; files that are there already stay as they are, and
    then nothing is written. The tests compare with NumPy, and a property test tries sizes,
    contents and schedules.

    \b
    Examples:
      tilescope init
      tilescope init my_kernels
    """  # noqa: D301 - click reads \b
    from ..commands.init import init_command as body

    return body(*given, **options)
