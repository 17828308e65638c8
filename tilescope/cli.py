"""The command ``tilescope``; each subcommand is a module in ``tilescope.commands``."""

from __future__ import annotations

import click

from .commands.list import list_command
from .commands.run import run_command
from .failure import CommandGroup


@click.group(
    "tilescope", cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
def main() -> None:
    """Run CUDA kernels without a GPU and count their memory traffic.

    \b
    Examples:
      tilescope list
      tilescope run matmul_tiled --size 256x256x256 --tile 16
      tilescope run matmul_naive --size 256 --compare matmul_tiled
      tilescope run my.cu 'fill<float>' --grid 4 --block 256 f32[1000] 1.5

    \b
    Exit codes:
      0  it ran, and nothing is wrong
      1  it ran, and an error was found: a hazard, or a wrong result
      2  it could not run: the line that starts with "error:" says why
    """


main.add_command(run_command)
main.add_command(list_command)
