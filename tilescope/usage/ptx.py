"""Usage of ``tilescope ptx``: its options and help."""

from typing import Any

import click

from ..cli.menu.option_groups import GroupedCommand
from ..cli.options import target_options


@click.command("ptx", cls=GroupedCommand, context_settings={"ignore_unknown_options": True})
@target_options
@click.option("--steps", is_flag=True, help="Show the simulator's steps instead, block by block.")
def ptx_command(*given: Any, **options: Any) -> Any:
    """Show the PTX of a kernel, or the steps the simulator takes for it.

    TARGET and ENTRY are those of tilescope run; nothing is launched, so arguments and shapes
    may be left out. A line of --steps has the line of the PTX, the line of the source, and
    what each thread does; r5 is a register, @r5 a guard, and r5:f32 its bits as that type.

    \b
    Examples:
      tilescope ptx matmul_tiled
      tilescope ptx matmul_tiled --steps --build source
      tilescope ptx my.cu 'tiled<16>' --steps
    """  # noqa: D301 - click reads \b
    from ..commands.ptx import ptx_command as body

    return body(*given, **options)
